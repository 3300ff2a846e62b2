// The entry of a page that has someone to ask: a notebook's kernel or a server.

import { createFetched } from "./fetched.js";
import { open } from "./opening.js";

open(createFetched(document.getElementById("regard-data").dataset.rows));

// The entry of a page that is a file: shows the document that the page carries.

import { open } from "./opening.js";
import { NO_SOURCE } from "./source.js";

open(NO_SOURCE);

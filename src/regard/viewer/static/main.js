// The entry of a page that is a file: shows the document that the page carries.

import { open } from "./viewer.js";

open(null);

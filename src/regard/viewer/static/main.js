// The entry of a page that is a file: shows the document that the page carries. The folders:
//
// - page/    the shell, its controls, colours, exports, and strings.js with everything it says
// - data/    the document as it is read: reader.js has every answer a view may want
// - views/   one module a view; views.js is their table and says what a view is
// - parts/   what several views draw with: matrices, lines of text, lists
// - model/   a model that the page carries: it runs what is typed

import { open } from "./page/viewer.js";

open(null);

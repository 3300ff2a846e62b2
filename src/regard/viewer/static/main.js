// The entry of a page: shows the document that the page carries.

import { element } from "./dom.js";
import { show } from "./viewer.js";

const root = document.getElementById("regard");
try {
  show(root, JSON.parse(document.getElementById("regard-data").textContent));
} catch (error) {
  root.append(element("p", { class: "failure", role: "alert" }, `This page could not be drawn. ${error.message}`));
  throw error;
}

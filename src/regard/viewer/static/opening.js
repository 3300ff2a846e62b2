// Shows the document that a page carries, or says why it cannot be shown.

import { element } from "./dom.js";
import { show } from "./viewer.js";

/** Shows it inside the element `#regard`. */
export function open(source) {
  const root = document.getElementById("regard");
  try {
    show(root, JSON.parse(document.getElementById("regard-data").textContent), { source });
  } catch (error) {
    root.append(element("p", { class: "failure", role: "alert" }, `This page could not be drawn. ${error.message}`));
    throw error;
  }
}

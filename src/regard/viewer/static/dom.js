// Elements, made plainly. Text only ever enters a page as text.

// Asked of the parser, so that a page holds no web address at all.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

/** An element with attributes, listeners (`onclick: f`) and children (nodes or text). */
export function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/** The same for the shapes of a drawing. */
export function shape(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Gives a node its weight, from which the style sheet mixes its colour. */
export function weigh(node, share) {
  node.style.setProperty("--w", share.toFixed(4));
}

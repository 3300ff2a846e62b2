// The keys there are, on a line below the page and in a window of their own.

import { element } from "./dom.js";

const KEYS = [
  [["1", "…", "9"], "view"],
  [["g"], "grid of heads"],
  [["←", "↑", "→", "↓"], "move"],
  [["Enter"], "open a head"],
  [["+", "−", "0"], "zoom in, out, all"],
  [["[", "]"], "head"],
  [["{", "}"], "layer"],
  [[",", "."], "example"],
  [["k"], "kind of attention"],
  [["m"], "mean of heads and layers"],
  [["s"], "colour scale"],
  [["w"], "tokens or words, on arcs"],
  [["Space"], "play a translation"],
  [["/"], "search a token"],
  [["n", "p"], "next, previous found"],
  [["t"], "light or dark"],
  [["Esc"], "let go"],
  [["?"], "this help"],
];
const SHORT = ["view", "move", "head", "layer", "search a token", "let go", "this help"];

const MEANING =
  "A weight says how much of a token was mixed in, not why the model answered as it did: it leaves out how large " +
  "the mixed value was, all that flows past attention and through other heads, and other weights can give the same answer.";

/** Text on what weights do and do not explain. */
export function meaning() {
  return element("p", { class: "meaning" }, element("strong", {}, "What attention shows. "), MEANING);
}

/** The line of the most needed keys. */
export function helpLine(open) {
  const keys = KEYS.filter(([, does]) => SHORT.includes(does)).map(keyLabel);
  const more = element("button", { type: "button", class: "plain", onclick: open }, "All keys");
  return element("footer", { class: "help", "aria-label": "Keys" }, ...keys, more);
}

/** A window with all of them; `open()` shows it. */
export function createHelp() {
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = element(
    "dialog",
    { class: "keys", "aria-label": "Keys" },
    element("h2", {}, "Keys"),
    element("div", { class: "list" }, ...KEYS.map(keyLabel)),
    meaning(),
    close,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return { dialog, open: () => dialog.open || dialog.showModal() };
}

function keyLabel([names, does]) {
  const keys = names.map((name) => (name === "…" ? "…" : element("kbd", {}, name)));
  return element("span", {}, ...keys, ` ${does}`);
}

// What to look at: example, kind, layer and head, by hand or by key.

import { element } from "./dom.js";
import { KINDS, headsOf, kindsOf, layersOf } from "./maps.js";

const HELP = [
  [["←", "↑", "→", "↓"], "move"],
  [["[", "]"], "head"],
  [["{", "}"], "layer"],
  [[",", "."], "example"],
  [["k"], "kind"],
  [["m"], "mean"],
  [["s"], "scale"],
  [["t"], "theme"],
  [["Esc"], "let go"],
];

/** The controls inside `host`; `choose(changes)` is told what was chosen. */
export function createControls(host, data, { choose }) {
  const select = element("select", {
    id: "example",
    onchange: () => choose({ example: select.selectedIndex }),
  });
  data.examples.forEach((example, at) =>
    select.append(element("option", {}, `${at + 1}. ${example.source}`)),
  );
  const groups = {
    kind: choiceGroup("Attention", (value) => choose({ kind: value })),
    layer: choiceGroup("Layer", (value) => choose({ layer: value })),
    head: choiceGroup("Head", (value) => choose({ head: value })),
    scale: choiceGroup("Colour scale", (value) => choose({ scale: value })),
  };
  const count = element("span", { class: "count" });
  const picker = element(
    "div",
    { class: "picker" },
    element("label", { class: "name", for: "example" }, "Example"),
    element("div", { class: "row" }, select, count),
  );
  if (data.examples.length > 1) host.append(picker);
  host.append(...Object.values(groups).map((group) => group.node));

  /** Shows what is chosen, and what there is to choose from. */
  function show(state) {
    const example = data.examples[state.example];
    select.selectedIndex = state.example;
    count.textContent = `of ${data.examples.length}`;
    groups.kind.show(kindsOf(example).map((kind) => [kind, KINDS[kind].name]), state.kind);
    groups.layer.show(layersOf(example, state.kind).map(numbered), state.layer);
    groups.head.show(headsOf(example, state.kind, state.layer).map(numbered), state.head);
    groups.scale.show([["largest", "0 – largest"], ["one", "0 – 1"]], state.scale);
  }

  return { show };
}

/** The line that says which keys there are. */
export function helpLine() {
  const keys = HELP.map(([names, does]) =>
    element("span", {}, ...names.map((name) => element("kbd", {}, name)), ` ${does}`),
  );
  return element("footer", { class: "help", "aria-label": "Keys" }, ...keys);
}

/** What a key changes, or null for a key that changes nothing. */
export function changeOf(key, state, data) {
  const example = data.examples[state.example];
  const step = (name, values, by) => {
    const at = values.indexOf(state[name]) + by;
    return { [name]: values[(at + values.length) % values.length] };
  };
  const examples = data.examples.map((_, at) => at);
  switch (key) {
    case "[": case "H": return step("head", headsOf(example, state.kind, state.layer), -1);
    case "]": case "h": return step("head", headsOf(example, state.kind, state.layer), 1);
    case "{": case "L": return step("layer", layersOf(example, state.kind), -1);
    case "}": case "l": return step("layer", layersOf(example, state.kind), 1);
    case ",": return step("example", examples, -1);
    case ".": return step("example", examples, 1);
    case "k": return step("kind", kindsOf(example), 1);
    case "m": return { layer: "mean", head: "mean" };
    case "s": return step("scale", ["largest", "one"], 1);
    default: return null;
  }
}

// A layer or head as an option: counted from 1, unless it is "mean".
function numbered(value) {
  return [value, value === "mean" ? value : value + 1];
}

// Radio buttons dressed as one strip: arrow keys, focus and names come with them.
function choiceGroup(title, chosen) {
  const name = title.toLowerCase().replace(" ", "-");
  const strip = element("div", { class: "strip" });
  const node = element("fieldset", { "data-group": name }, element("legend", { class: "name" }, title), strip);
  let shown = "";

  function show(options, value) {
    const asked = JSON.stringify(options);
    if (asked !== shown) {
      shown = asked;
      strip.replaceChildren(...options.map(([key, label]) => option(key, label)));
    }
    options.forEach(([key], at) => {
      strip.children[at].firstChild.checked = key === value;
    });
    node.hidden = options.length < 2;
  }

  function option(key, label) {
    const input = element("input", { type: "radio", name, value: key, onchange: () => chosen(key) });
    return element("label", {}, input, element("span", {}, String(label)));
  }

  return { node, show };
}

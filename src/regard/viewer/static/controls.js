// What to look at: example, kind, layer and head, by hand or by key.

import { element } from "./dom.js";
import { KINDS } from "./maps.js";

const MOST_BUTTONS = 14; // beyond, a list to choose from
const SCALES = [["largest", "0 – largest"], ["one", "0 – 1"], ["log", "log"]];

/** The controls inside `host`; `choose(changes)` is told what was chosen. */
export function createControls(host, reader, { choose }) {
  const { examples } = reader.data;
  const select = element("select", {
    id: "example",
    onchange: () => choose({ example: select.selectedIndex, row: null, column: null }),
  });
  examples.forEach((example, at) => select.append(element("option", {}, titleOf(example, at))));
  const groups = {
    kind: choiceGroup("Attention", (value) => choose({ kind: value })),
    layer: choiceGroup("Layer", (value) => choose({ layer: value })),
    head: choiceGroup("Head", (value) => choose(reader.withHead(state, value))),
    scale: choiceGroup("Colour scale", (value) => choose({ scale: value })),
  };
  const count = element("span", { class: "count" });
  let state = null;
  const picker = element(
    "div",
    { class: "picker" },
    element("label", { class: "name", for: "example" }, "Example"),
    element("div", { class: "row" }, select, count),
  );
  if (examples.length > 1) host.append(picker);
  host.append(...Object.values(groups).map((group) => group.node));

  /** Shows what is chosen, and what there is to choose from; only the named groups. */
  function show(next, named) {
    state = next;
    const { example, kind, layer } = state;
    select.selectedIndex = example;
    count.textContent = `of ${examples.length}`;
    picker.hidden = !named.includes("example");
    const options = {
      kind: reader.kinds(example).map((name) => [name, KINDS[name].name]),
      layer: reader.layerChoices(example, kind).map(numbered),
      head: reader.headOffers(example, kind, layer).map((head) => [...numbered(head), keptSays(state, head)]),
      scale: SCALES,
    };
    for (const [name, group] of Object.entries(groups)) {
      group.show(named.includes(name) ? options[name] : [], state[name]);
    }
    host.hidden = [...host.children].every((child) => child.hidden);
  }

  // Of long texts: what the document has of a head besides its map.
  function keptSays({ example, kind, layer }, head) {
    const kept = layer === "mean" || head === "mean" ? 0 : reader.keptOf({ example, kind, layer, head });
    return kept > 0 && kept < Infinity ? `${kept} largest weight${kept === 1 ? "" : "s"} of each token kept` : "";
  }

  return { show };
}

/** What a key changes, or null for a key that changes nothing. */
export function changeOf(key, state, reader) {
  const { example, kind, layer } = state;
  const step = (name, values, by) => {
    const at = values.indexOf(state[name]) + by;
    return { [name]: values[(at + values.length) % values.length] };
  };
  const examples = reader.data.examples.map((_, at) => at);
  const moved = { row: null, column: null };
  switch (key) {
    case "[": case "H": return reader.withHead(state, step("head", reader.headOffers(example, kind, layer), -1).head);
    case "]": case "h": return reader.withHead(state, step("head", reader.headOffers(example, kind, layer), 1).head);
    case "{": case "L": return step("layer", reader.layerChoices(example, kind), -1);
    case "}": case "l": return step("layer", reader.layerChoices(example, kind), 1);
    case ",": return { ...step("example", examples, -1), ...moved };
    case ".": return { ...step("example", examples, 1), ...moved };
    case "k": return { ...step("kind", reader.kinds(example), 1), ...moved };
    case "m": return { layer: "mean", head: "mean" };
    case "s": return step("scale", SCALES.map(([name]) => name), 1);
    default: return null;
  }
}

function titleOf(example, at) {
  if (example.image) return `${at + 1}. ${example.label ?? "picture"}`;
  const text = [...(example.source || example.output)];
  const start = text.length > 80 ? `${text.slice(0, 80).join("")}…` : text.join("");
  return `${at + 1}. ${example.label ? `${example.label}: ` : ""}${start}`;
}

// A layer or head as an option: counted from 1, unless it is "mean".
function numbered(value) {
  return [value, value === "mean" ? value : value + 1];
}

// Radio buttons dressed as one strip: arrow keys, focus and names come with them. Many are a list.
function choiceGroup(title, chosen) {
  const name = title.toLowerCase().replace(" ", "-");
  const strip = element("div", { class: "strip" });
  const list = element("select", { "aria-label": title, onchange: () => chosen(keys[list.selectedIndex]) });
  const node = element("fieldset", { "data-group": name }, element("legend", { class: "name" }, title), strip, list);
  let shown = "";
  let keys = [];

  function show(options, value) {
    const asked = JSON.stringify(options);
    const isList = options.length > MOST_BUTTONS;
    if (asked !== shown) {
      [shown, keys] = [asked, options.map(([key]) => key)];
      strip.replaceChildren(...(isList ? [] : options.map((one) => option(...one))));
      list.replaceChildren(...(isList ? options.map(([, label, says]) => element("option", {}, `${label}${says ? ` · ${says}` : ""}`)) : []));
    }
    strip.hidden = isList;
    list.hidden = !isList;
    if (isList) list.selectedIndex = keys.indexOf(value);
    else keys.forEach((key, at) => (strip.children[at].firstChild.checked = key === value));
    node.hidden = options.length < 2;
  }

  function option(key, label, says = "") {
    const input = element("input", { type: "radio", name, value: key, onchange: () => chosen(key) });
    return element("label", { title: says || null, class: says ? "kept" : null }, input, element("span", {}, String(label)));
  }

  return { node, show };
}

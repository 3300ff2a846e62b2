// Chooses example, kind, layer and head, by hand or by key.

import { button, element, radios } from "./dom.js";
import { phrase, t } from "./language.js";
import { nameOf, numberOf } from "../data/maps.js";

const MOST_BUTTONS = 14; // beyond, or with more letters, a list to choose from
const MOST_LETTERS = 60;
const moved = { row: null, column: null, picked: null }; // to another text
const SCALES = ["largest", "one", "log"];

/** The controls inside `host`; `choose(changes)` receives the changes. */
export function createControls(host, reader, { choose }) {
  const { examples } = reader.data;
  const titles = examples.map((example, at) => element("option", titleOf(example, at)));
  const onchange = () => choose({ example: select.selectedIndex, ...moved });
  const select = element("select", { id: "example", onchange }, ...titles);
  const groups = {
    kind: choiceGroup("attention", (value) => choose({ kind: value })),
    layer: choiceGroup("layer", (value) => choose({ layer: value })),
    head: choiceGroup("head", (value) => choose(reader.withHead(state, value))),
    pair: choiceGroup("pair", (value) => choose({ pair: value })),
    scale: choiceGroup("colour-scale", (value) => choose({ scale: value })),
  };
  const count = element("span.count", t("example.count", { count: examples.length }));
  let state = null;
  const label = element("label.name", { for: "example" }, t("example"));
  const picker = element("div.picker", label, element("div.row", select, count));
  if (examples.length > 1) host.append(picker);
  host.append(...Object.values(groups).map((group) => group.node));

  /** Shows what is chosen, and what there is to choose from; only the named groups. */
  function show(next, named) {
    state = next;
    const { example, kind, layer } = state;
    select.selectedIndex = example;
    picker.hidden = !named.includes("example");
    const options = {
      kind: reader.kinds(example).map((name) => [name, reader.kindName(example, name)]),
      layer: reader.layerChoices(example, kind).map((layer) => [layer, numberOf(layer)]),
      head: reader
        .headOffers(example, kind, layer)
        .map((head) => [head, reader.headOption(example, head), storedNote(state, head)]),
      pair: reader.pairs(example, kind).map((name) => [name, [...name.toUpperCase()].join(" → ") || t("all")]),
      scale: SCALES.map((name) => [name, t(`scale.${name}`)]),
    };
    for (const [name, group] of Object.entries(groups)) {
      const isOverlaid = name === "head" && named.includes("heads") && state.heads;
      group.show(named.includes(name) ? options[name] : [], isOverlaid ? null : state[name]);
    }
    host.hidden = [...host.children].every((child) => child.hidden);
  }

  // Of long texts: what the document has of a head besides its map.
  function storedNote({ example, kind, layer }, head) {
    const stored = layer === "mean" || head === "mean" ? 0 : reader.storedCount({ example, kind, layer, head });
    return stored > 0 && stored < Infinity ? t(stored === 1 ? "stored.one" : "stored.many", { count: stored }) : "";
  }

  return { show };
}

/** What a key changes, or null for a key that changes nothing. */
export function changeOf(key, state, reader) {
  const { example, kind, layer } = state;
  /** @returns {Record<string, any>} */
  const step = (name, values, by) => {
    const at = values.indexOf(state[name]) + by;
    return { [name]: values[(at + values.length) % values.length] };
  };
  const ofHead = (by) => reader.withHead(state, step("head", reader.headOffers(example, kind, layer), by).head);
  const ofLayer = (by) => step("layer", reader.layerChoices(example, kind), by);
  const ofExample = (by) => ({ ...step("example", [...reader.data.examples.keys()], by), ...moved });
  const changes = {
    "[": () => ofHead(-1),
    "]": () => ofHead(1),
    "{": () => ofLayer(-1),
    "}": () => ofLayer(1),
    ",": () => ofExample(-1),
    ".": () => ofExample(1),
    k: () => ({ ...step("kind", reader.kinds(example), 1), ...moved }),
    m: () => ({ layer: "mean", head: "mean", heads: null }),
    s: () => step("scale", SCALES, 1),
  };
  return changes[{ H: "[", h: "]", L: "{", l: "}" }[key] ?? key]?.() ?? null;
}

/** An example in a list to choose from. */
export function titleOf(example, at) {
  if (example.image) return `${at + 1}. ${phrase(example.label ?? t("example.picture"))}`;
  const text = [...(example.source || example.output)];
  const start = text.length > 80 ? `${text.slice(0, 80).join("")}…` : text.join("");
  return `${at + 1}. ${example.label ? `${phrase(example.label)}: ` : ""}${start}`;
}

// Radio buttons dressed as one strip: arrow keys, focus and names come with them. Many are a list.
function choiceGroup(name, chosen) {
  const title = t(`group.${name}`);
  const strip = element("div.strip");
  const list = element("select", { "aria-label": title, onchange: () => chosen(keys[list.selectedIndex]) });
  const node = element("fieldset", { "data-group": name }, element("legend.name", title), strip, list);
  let drawn = "";
  let keys = [];

  function show(options, value) {
    const signature = JSON.stringify(options);
    const isList = options.length > MOST_BUTTONS || options.map(([, label]) => label).join("").length > MOST_LETTERS;
    if (signature !== drawn) {
      [drawn, keys] = [signature, options.map(([key]) => key)];
      const items = isList
        ? options.map(([, label, note]) => element("option", `${label}${note ? ` · ${note}` : ""}`))
        : radios(name, options, value, chosen);
      strip.replaceChildren(...(isList ? [] : items));
      list.replaceChildren(...(isList ? items : []));
    }
    strip.hidden = isList;
    list.hidden = !isList;
    if (isList) list.selectedIndex = keys.indexOf(value);
    else for (const [at, input] of [...strip.querySelectorAll("input")].entries()) input.checked = keys[at] === value;
    node.hidden = options.length < 2;
  }

  return { node, show };
}

/** A search box; `go(position)` receives the target, `choose({find})` what was typed. */
export function createFinding(host, { choose, go }) {
  const input = element("input", {
    type: "search",
    id: "find",
    placeholder: t("find"),
    "aria-label": t("find"),
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => choose({ find: input.value }),
    onkeydown: pressed,
  });
  const count = element("output.count", { for: "find" });
  const stepButton = (sign, by, says, key) =>
    button(sign, () => step(by), { title: t("view.tab", { says, key }), "aria-label": says });
  const [previous, next] = [stepButton("‹", -1, t("find.previous"), "p"), stepButton("›", 1, t("find.next"), "n")];
  host.append(input, previous, next, count);
  let positions = [];
  let at = -1;

  function pressed(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && input.value) {
      input.value = "";
      choose({ find: "" });
      event.stopPropagation();
    }
  }

  function step(by) {
    if (!positions.length) return;
    at = at < 0 && by < 0 ? positions.length - 1 : (at + by + positions.length) % positions.length;
    showCount();
    go(positions[at]);
  }

  function showCount() {
    const isSearching = input.value.trim() !== "";
    const key = !positions.length ? "find.none" : at < 0 ? "find.found" : "find.at";
    count.textContent = isSearching ? t(key, { at: at + 1, count: positions.length }) : "";
    previous.hidden = next.hidden = !positions.length;
  }

  function show(find, { rows, columns }) {
    if (input.value !== find) input.value = find;
    const ofRows = rows.map((row) => ({ row, column: null }));
    const ofColumns = rows === columns ? [] : columns.map((column) => ({ row: null, column }));
    const matches = [...ofRows, ...ofColumns];
    if (JSON.stringify(matches) !== JSON.stringify(positions)) [positions, at] = [matches, -1];
    showCount();
  }

  return { show, step, focus: () => input.focus() };
}

/** Places of the tokens that hold the text, whatever the case and the width of its letters. */
export function hitsOf(tokens, find) {
  const wanted = plain(find.trim());
  if (!wanted) return [];
  return tokens.flatMap((token, at) => (plain(nameOf(token)).includes(wanted) ? [at] : []));
}

function plain(text) {
  return text.normalize("NFKC").toLocaleLowerCase();
}

/** @type {[string[], string][]} */
const KEYS = [
  [["1", "…", "9"], "view"],
  [["g"], "grid"],
  [["←", "↑", "→", "↓"], "move"],
  [["Shift"], "several"],
  [["Enter"], "open"],
  [["+", "−", "0"], "zoom"],
  [["[", "]"], "head"],
  [["{", "}"], "layer"],
  [[",", "."], "example"],
  [["k"], "kind"],
  [["m"], "mean"],
  [["s"], "scale"],
  [["w"], "words"],
  [["o"], "overlay"],
  [["Space"], "play"],
  [["/"], "search"],
  [["n", "p"], "found"],
  [["t"], "theme"],
  [["Esc"], "release"],
  [["?"], "help"],
];
const SHORT = ["view", "move", "head", "layer", "search", "release", "help"];

/** Text on what weights do and do not explain. */
export const meaning = () => element("p.meaning", element("strong", t("meaning.title")), t("meaning"));

/** The line of the most needed keys. */
export function helpLine(open) {
  const keys = KEYS.filter(([, does]) => SHORT.includes(does)).map(keyLabel);
  return element("footer.help", { "aria-label": t("keys") }, ...keys, button(t("keys.all"), open, { class: "plain" }));
}

/** A window with all of them; `open()` shows it. */
export function createHelp() {
  const dialog = element(
    "dialog.keys",
    { "aria-label": t("keys"), onclick: (event) => event.target === dialog && dialog.close() },
    element("h2", t("keys")),
    element("div.list", ...KEYS.map(keyLabel)),
    meaning(),
    button(t("keys.close"), () => dialog.close()),
  );
  return { dialog, open: () => dialog.open || dialog.showModal() };
}

function keyLabel([names, does]) {
  const keys = names.map((name) => (name === "…" ? name : element("kbd", name === "Space" ? t("keys.space") : name)));
  return element("span", ...keys, ` ${t(`keys.${does}`)}`);
}

// The texts as prose, shaded: by a value of each token, or by where the token pointed at looks.

import { element, section } from "../page/dom.js";
import { sentences, t } from "../page/language.js";
import { createLooking, listOf } from "../parts/looking.js";
import { chosenOf, figure } from "../data/maps.js";
import { ramp, shareOf } from "../page/palette.js";
import { createProse } from "../parts/prose.js";

const SIDES = { received: "columns", entropy: "rows", distance: "rows", first: "rows", surprise: "rows" }; // of each measure
const MOST = 64; // entries that shade the text
const LISTED = 8;
const LARGE = 0.98; // the share of values up to the deepest colour: few tokens may receive nearly all

export const running = {
  id: "text",
  picks: true,
  reads: "links",
  controls: ["example", "kind", "layer", "head", "scale"],
  applies: ({ reader }, example) => reader.kinds(example).length > 0 && isProse(reader.exampleAt(example)),
  create,
};

// Queries and keys may be mere numbers.
const isProse = ({ sides, source, output }) => sides !== "queries and keys" || /\p{L}/u.test(source + output);

function create(host, context) {
  const { reader, point, choose } = context;
  const strip = element("div", { class: "strip", role: "radiogroup", "aria-label": t("text.shade") });
  const says = element("p", { class: "caption" });
  const texts = element("div", { class: "running" });
  const aside = element("aside", { class: "readout", "aria-label": t("weights") });
  const [lowest, most] = [element("span", {}, "0"), element("span", {})];
  const legend = element("div", { class: "legend" }, element("span", { class: "key" }, lowest, ramp(), most));
  host.append(section(t("text"), strip, says, element("div", { class: "split wide" }, texts, aside), legend));
  let built = "";
  let view = null;
  let axes = null;
  let looking = null;
  let proses = {}; // by side: "source", "output"
  let lines = {}; // values along the text, by measure
  let measure = "received";
  let scale = "largest";
  let turn = 0;
  let hits = null;

  async function show(state) {
    view = { example: state.example, kind: state.kind, layer: state.layer, head: state.head };
    axes = reader.axes(view);
    scale = state.scale;
    looking = createLooking(reader, view);
    const key = `${state.example} ${state.kind}`;
    const isNew = built !== key;
    if (isNew) build(key);
    const found = await Promise.all(Object.keys(SIDES).map((name) => (name === "surprise" ? surprise() : reader.line(view, name).catch(() => null))));
    lines = Object.fromEntries(Object.keys(SIDES).map((name, at) => [name, found[at]]).filter(([, line]) => line));
    const names = Object.keys(lines);
    measure = names.includes(state.shade) ? state.shade : names[0];
    strip.replaceChildren(...names.map(option));
    strip.hidden = names.length < 2;
    hits = context.hits();
    if (isNew && (state.row ?? state.column ?? null) !== null) reveal({ row: state.row ?? null, column: state.column ?? null });
  }

  // How unexpected each output token was, whatever head is looked at.
  function surprise() {
    const values = reader.exampleAt(view.example).surprise ?? [];
    return values.length && sideOf(axes.looks) === "output" ? { places: 1, values: Float32Array.from(values, (value) => value ?? 0), counted: values.filter((value) => typeof value === "number") } : null;
  }

  function reveal({ row, column }) {
    if (row !== null) proses[sideOf(axes.looks)].reveal(row);
    else if (column !== null) proses[sideOf(axes.seen)].reveal(column - shift());
  }

  function option(name) {
    const input = element("input", { type: "radio", name: "shade", value: name, checked: name === measure, onchange: () => choose({ shade: name }) });
    return element("label", {}, input, element("span", {}, t(`measure.${name}`)));
  }

  const sideOf = (name) => (name === "output so far" ? "output" : name);
  const shift = () => (axes.seen === "output so far" ? 1 : 0); // its columns begin with the start sign

  function build(key) {
    built = key;
    const example = reader.exampleAt(view.example);
    const languages = context.languages(view.example);
    for (const prose of Object.values(proses)) prose.destroy();
    texts.replaceChildren();
    proses = {};
    for (const side of [...new Set([sideOf(axes.seen), sideOf(axes.looks)])]) {
      const called = side === sideOf(axes.looks) ? axes.called.rows : axes.called.columns;
      const place = element("div", {}, element("h3", { class: "side" }, called));
      texts.append(place);
      const told = (at, isFirm) => point(at === null ? null : placeOf(side, at), isFirm);
      proses[side] = createProse(place, { point: told, label: called });
      proses[side].show(side === "source" ? example.source_tokens : example.output_tokens, example[side], languages[side]);
    }
  }

  // In a text that looks at itself, a token that is pointed at is one that looks.
  function placeOf(side, at) {
    return side === sideOf(axes.looks) ? { row: at, column: null } : { row: null, column: at + shift() };
  }

  /** Shades by the measure where nothing is pointed at, else by the links of the token. */
  async function mark(where) {
    const mine = ++turn;
    const asked = looking;
    const { rows, columns } = chosenOf(where);
    const marked = [...rows.map((at) => [sideOf(axes.looks), at]), ...columns.map((at) => [sideOf(axes.seen), at - shift()])];
    for (const [side, prose] of Object.entries(proses)) {
      prose.mark([...marked.filter(([name]) => name === side).map(([, at]) => at), ...(marked.length ? [] : hitsIn(side))]);
    }
    if (!marked.length) return shadeByMeasure();
    const isRow = rows.length > 0;
    const by = (amount) => (at) => at + amount;
    const isSelf = sideOf(axes.looks) === sideOf(axes.seen); // one text: a token looks, and is looked at
    const [from, to] = [isRow ? rows : columns.map(by(-shift())), columns.length ? columns : rows.map(by(shift()))];
    const looks = isRow || isSelf ? asked.rowsOf(from, MOST).then((found) => found?.map((entry) => ({ at: entry.column, weight: entry.weight }))) : null;
    const lookers = columns.length || isSelf ? asked.lookersOf(to, MOST).then((found) => found?.map((entry) => ({ at: entry.row, weight: entry.weight }))) : null;
    const isWhole = Math.max(rows.length, columns.length) < 2 || (await asked.isWhole());
    const entries = await (isRow ? looks : lookers);
    if (mine !== turn) return null;
    if (!entries) return tellMissing();
    const largest = scale === "one" ? 1 : entries.reduce((top, entry) => Math.max(top, entry.weight), 0);
    const shares = new Map(entries.map(({ at, weight }) => [at - (isRow ? shift() : 0), shareOf(weight, largest, scale)]));
    const shaded = sideOf(isRow ? axes.seen : axes.looks);
    for (const [side, prose] of Object.entries(proses)) prose.shade(side === shaded ? (at) => shares.get(at) ?? 0 : () => 0);
    [lowest.textContent, most.textContent] = ["0", figure(largest, 3)];
    const note = isWhole ? [] : [element("p", { class: "hint" }, t("picked.kept"))];
    const lists = [isRow ? listed(from, null, entries, largest) : listed(null, to, entries, largest)];
    aside.replaceChildren(...lists.flat(), ...note);
    if (!isSelf) return null;
    const others = await (isRow ? lookers : looks);
    if (mine !== turn) return null;
    const fuller = Math.max(largest, others?.[0]?.weight ?? 0); // a sum may be more than a mean
    lists.push(isRow ? listed(null, to, others, fuller) : listed(from, null, others, fuller));
    aside.replaceChildren(...lists.flat(), ...note);
    return null;
  }

  // The text stays shaded by its measure where the links of this view were not kept.
  function tellMissing() {
    shadeByMeasure();
    const { layer, head } = reader.nearestKept(view);
    const isOther = layer !== view.layer || head !== view.head;
    aside.replaceChildren(
      element("p", { class: "hint" }, t("no-weights")),
      ...(isOther ? [element("p", { class: "hint" }, element("button", { type: "button", onclick: () => choose({ layer, head }) }, reader.viewName(view.example, layer, head)))] : []),
    );
    return null;
  }

  function hitsIn(side) {
    const rows = side === sideOf(axes.looks) ? hits.rows : [];
    const columns = side === sideOf(axes.seen) ? hits.columns.map((at) => at - shift()) : [];
    return [...rows, ...columns];
  }

  function shadeByMeasure() {
    const line = lines[measure];
    aside.replaceChildren(element("p", { class: "hint" }, t("text.point")));
    if (!line) {
      says.textContent = t("text.none");
      for (const prose of Object.values(proses)) prose.shade(() => 0);
      most.textContent = "";
      return;
    }
    const side = SIDES[measure];
    const by = side === "columns" ? shift() : 0;
    const largest = largeOf(line.values);
    const shaded = sideOf(side === "columns" ? axes.seen : axes.looks);
    const least = measure === "received" || measure === "surprise" ? 0 : leastOf(line.values); // what is received adds up from nothing
    const valueAt = (at) => line.values[Math.floor((at + by) / line.places)] ?? 0;
    for (const [name, prose] of Object.entries(proses)) {
      prose.shade(name === shaded ? (at) => Math.min(1, (valueAt(at) - least) / (largest - least || 1)) : () => 0);
    }
    const groups = line.places > 1 && t("text.groups", { count: line.places });
    const start = by && line.places === 1 && t("text.start", { value: figure(line.values[0], 3) });
    says.textContent = sentences(t(`text.${measure}`, line.counted ? lossOf(line.counted) : {}), groups, start);
    lowest.textContent = figure(least, 3);
    most.textContent = `${largest < maxOf(line.values) ? "≥ " : ""}${figure(largest, 3)}`;
  }

  function listed(from, to, entries, full) {
    const languages = context.languages(view.example);
    const isRow = from !== null;
    const [own, others] = isRow ? [from.map((at) => axes.rows[at]), axes.columns] : [to.map((at) => axes.columns[at]), axes.rows];
    if (!own.every(Boolean)) return [];
    const [looks, seen] = isRow ? [axes.looks, axes.seen] : [axes.seen, axes.looks];
    const list = listOf({
      of: own, language: languages[looks], verb: isRow ? "looks-at" : "looked-at-by", entries: entries?.slice(0, LISTED), tokens: others,
      other: languages[seen], full, scale, go: (at) => proses[sideOf(seen)].reveal(isRow ? at - shift() : at),
    });
    if (own.length > 1) return list;
    const values = Object.entries(lines)
      .filter(([name]) => (SIDES[name] === "rows") === isRow)
      .map(([name, line]) => [t(`measure.${name}`), line.values[Math.floor((isRow ? from : to)[0] / line.places)]])
      .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, figure(value, 3))));
    return [...list, element("dl", { class: "measures" }, ...values)];
  }

  function table() {
    const names = Object.keys(lines);
    const valueAt = (name, at) => {
      const side = SIDES[name];
      const value = lines[name].values[Math.floor(at / lines[name].places)];
      return at < axes[side].length && value !== undefined ? figure(value) : "";
    };
    const length = Math.max(axes.rows.length, axes.columns.length);
    const rows = Array.from({ length }, (_, at) => [at + 1, axes.rows[at]?.text ?? "", axes.columns[at]?.text ?? "", ...names.map((name) => valueAt(name, at))]);
    return { columns: ["place", "token that looks", "token looked at", ...names], rows };
  }

  return {
    show, mark, table,
    reveal,
    focus: () => proses[sideOf(axes.looks)].focus(),
    destroy: () => {
      for (const prose of Object.values(proses)) prose.destroy();
      host.replaceChildren();
    },
  };
}

// The loss of a text in words: its sum, and what it is for a token.
function lossOf(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  const mean = sum / values.length;
  return { count: values.length, sum: figure(sum), mean: figure(mean, 3), bits: figure(mean / Math.LN2, 3), perplexity: figure(Math.exp(mean), 3) };
}

function maxOf(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

function leastOf(values) {
  return values.reduce((least, value) => Math.min(least, value), Infinity);
}

// The value of the deepest colour: the largest of a short text, of a long one that of most tokens.
function largeOf(values) {
  if (values.length < 50) return maxOf(values);
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(LARGE * (sorted.length - 1))] || maxOf(values);
}

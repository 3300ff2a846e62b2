// The texts as prose, shaded: by a value of each token, or by where the token pointed at looks.

import { element, radios, section } from "../page/dom.js";
import { sentences, t } from "../page/language.js";
import { createLooking, listsOf, offersOf } from "../parts/looking.js";
import { chosenOf, figure, mostOf } from "../data/maps.js";
import { createLegend, shareOf } from "../page/palette.js";
import { createProse, markTexts, shadeTexts } from "../parts/prose.js";

const SIDES = { received: "columns", entropy: "rows", distance: "rows", first: "rows", surprise: "rows" }; // of each measure
const MOST = 64; // entries that shade the text
const LISTED = 8;
const LARGE = 0.98; // the share of values up to the deepest colour: few tokens may receive nearly all

export const running = {
  id: "text",
  picks: true,
  reads: "links",
  needs: ({ shade }) => shade === "surprise",
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
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
  const legend = createLegend();
  host.append(section(t("text"), strip, says, element("div", { class: "split wide" }, texts, aside), legend.node));
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
    view = state;
    axes = reader.axes(view);
    scale = state.scale;
    looking = createLooking(reader, view);
    const key = `${state.example} ${state.kind}`;
    const isNew = built !== key;
    if (isNew) build(key);
    const found = await Promise.all(Object.keys(SIDES).map((name) => (name === "surprise" ? surprise() : reader.line(view, name).catch(() => null))));
    lines = Object.fromEntries(Object.keys(SIDES).map((name, at) => [name, found[at]]).filter(([, line]) => line));
    const names = [...Object.keys(lines), ...(canBeSurprised() && context.canExplain(view.example) ? ["surprise"] : [])];
    measure = names.includes(state.shade) ? state.shade : names[0];
    strip.replaceChildren(...radios("shade", names.map((name) => [name, t(`measure.${name}`)]), measure, (shade) => choose({ shade })));
    strip.hidden = names.length < 2;
    hits = context.hits();
    if (isNew) reveal({ row: state.row ?? null, column: state.column ?? null });
  }

  // How unexpected each output token was, whatever head is looked at.
  function surprise() {
    const values = reader.exampleAt(view.example).surprise ?? [];
    if (!values.length || !canBeSurprised()) return null;
    return { places: 1, values: Float32Array.from(values, (value) => value ?? 0), counted: values.filter((value) => typeof value === "number") };
  }

  const canBeSurprised = () => !view.pair && axes.sideOf("rows") === "output";

  function reveal({ row, column }) {
    const [axis, place] = row !== null ? ["rows", row] : ["columns", column];
    if (place !== null) proses[axes.sideOf(axis)].reveal(axes.tokenAt(axis, place));
  }

  const isSelf = () => (view.pair ? axes.rows === axes.columns : axes.sideOf("rows") === axes.sideOf("columns")); // a token looks, and is looked at

  function build(key) {
    built = key;
    const example = reader.exampleAt(view.example);
    const languages = context.languages(view.example);
    const whole = reader.axes({ ...view, pair: "" });
    for (const prose of Object.values(proses)) prose.destroy();
    texts.replaceChildren();
    proses = {};
    for (const side of new Set([axes.sideOf("columns"), axes.sideOf("rows")])) {
      const called = whole.called[side === axes.sideOf("rows") ? "rows" : "columns"];
      const place = element("div", {}, element("h3", { class: "side" }, called));
      texts.append(place);
      proses[side] = createProse(place, { point: (token, isFirm) => axes.tell(point, side, token, isFirm), label: called });
      proses[side].show(side === "source" ? example.source_tokens : example.output_tokens, example[side], languages[side]);
    }
  }

  /** Shades by the measure where nothing is pointed at, else by the links of the token. */
  async function mark(where) {
    const mine = ++turn;
    const asked = looking;
    const chosen = chosenOf(where);
    const isAny = chosen.rows.length + chosen.columns.length > 0;
    markTexts(proses, axes, isAny ? chosen : hits);
    if (!isAny) return shadeByMeasure();
    const isRow = chosen.rows.length > 0;
    const across = (from, to, places) => places.map((place) => axes.placeOf(to, axes.tokenAt(from, place))).filter((place) => place >= 0);
    const from = isRow ? chosen.rows : isSelf() ? across("columns", "rows", chosen.columns) : [];
    const to = chosen.columns.length ? chosen.columns : isSelf() ? across("rows", "columns", chosen.rows) : [];
    const looks = from.length ? asked.rowsOf(from, MOST) : undefined;
    const lookers = to.length ? asked.lookersOf(to, MOST) : undefined;
    const isWhole = Math.max(from.length, to.length) < 2 || (await asked.isWhole());
    const entries = await (isRow ? looks : lookers);
    if (mine !== turn) return null;
    if (!entries) return tellMissing();
    const largest = scale === "one" ? 1 : (entries[0]?.weight ?? 0);
    shadeTexts(proses, axes, isRow ? "columns" : "rows", entries.map(({ at, weight }) => [at, shareOf(weight, largest, scale)]));
    legend.tell("0", figure(largest, 3));
    says.textContent ||= axes.says;
    const list = (isLooks, found, full) => listsOf({
      axes, from, to, [isLooks ? "looks" : "lookers"]: (found ?? null)?.slice(0, LISTED) ?? null, full, scale,
      go: reveal,
    }).flat().concat(measuresOf(isLooks ? "rows" : "columns", isLooks ? from : to));
    const note = isWhole ? [] : [element("p", { class: "hint" }, t("picked.kept"))];
    const first = list(isRow, entries, largest);
    aside.replaceChildren(...first, ...note);
    if (!isSelf()) return null;
    const others = await (isRow ? lookers : looks);
    if (mine !== turn) return null;
    const fuller = Math.max(largest, others?.[0]?.weight ?? 0); // a sum may be more than a mean
    aside.replaceChildren(...first, ...list(!isRow, others, fuller), ...note);
    return null;
  }

  // The text stays shaded by its measure where the links of this view were not kept.
  function tellMissing() {
    shadeByMeasure();
    const { layer, head } = reader.nearestKept(view);
    const others = layer !== view.layer || head !== view.head ? [{ layer, head }] : [];
    aside.replaceChildren(element("p", { class: "hint" }, t("no-weights"), ...offersOf(reader, view.example, others, choose)));
    return null;
  }

  function shadeByMeasure() {
    const line = lines[measure];
    aside.replaceChildren(element("p", { class: "hint" }, t("text.point")));
    if (!line) {
      says.textContent = t("text.none");
      for (const prose of Object.values(proses)) prose.shade(() => 0);
      legend.tell("0", "");
      return;
    }
    const axis = SIDES[measure];
    const largest = largeOf(line.values);
    const least = measure === "received" || measure === "surprise" ? 0 : leastOf(line.values); // what is received adds up from nothing
    const shares = axes[axis].map((_, place) => [place, Math.min(1, ((line.values[Math.floor(place / line.places)] ?? 0) - least) / (largest - least || 1))]);
    shadeTexts(proses, axes, axis, shares);
    const groups = line.places > 1 && t("text.groups", { count: line.places });
    const start = axes.shift(axis) > 0 && line.places === 1 && t("text.start", { value: figure(line.values[0], 3) });
    says.textContent = sentences(view.pair && axes.says, t(`text.${measure}`, line.counted ? lossOf(line.counted) : {}), groups, start);
    legend.tell(figure(least, 3), `${largest < mostOf(line.values) ? "≥ " : ""}${figure(largest, 3)}`);
  }

  // The values of one token that is pointed at.
  function measuresOf(axis, places) {
    if (places.length !== 1) return [];
    const values = Object.entries(lines)
      .filter(([name]) => SIDES[name] === axis)
      .map(([name, line]) => element("div", {}, element("dt", {}, t(`measure.${name}`)), element("dd", {}, figure(line.values[Math.floor(places[0] / line.places)], 3))));
    return [element("dl", { class: "measures" }, ...values)];
  }

  function table() {
    const names = Object.keys(lines);
    const valueAt = (name, at) => {
      const value = lines[name].values[Math.floor(at / lines[name].places)];
      return at < axes[SIDES[name]].length && value !== undefined ? figure(value) : "";
    };
    const length = Math.max(axes.rows.length, axes.columns.length);
    const rows = Array.from({ length }, (_, at) => [at + 1, axes.rows[at]?.text ?? "", axes.columns[at]?.text ?? "", ...names.map((name) => valueAt(name, at))]);
    return { columns: ["place", "token that looks", "token looked at", ...names], rows };
  }

  return {
    show, mark, table, reveal,
    focus: () => proses[axes.sideOf("rows")].focus(),
    destroy: () => Object.values(proses).forEach((prose) => prose.destroy()),
  };
}

// The loss of a text in words: its sum, and what it is for a token.
function lossOf(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  const mean = sum / values.length;
  return { count: values.length, sum: figure(sum), mean: figure(mean, 3), bits: figure(mean / Math.LN2, 3), perplexity: figure(Math.exp(mean), 3) };
}

function leastOf(values) {
  return values.reduce((least, value) => Math.min(least, value), Infinity);
}

// The value of the deepest colour: the largest of a short text, of a long one that of most tokens.
function largeOf(values) {
  if (values.length < 50) return mostOf(values);
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(LARGE * (sorted.length - 1))] || mostOf(values);
}

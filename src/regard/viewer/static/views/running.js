// The texts as prose, shaded: by a value of each token, or by the attention of a token that is pointed at.

import { element, namedValues, radios, sectionWith } from "../page/dom.js";
import { textAt } from "../page/exporting.js";
import { sentences, t } from "../page/language.js";
import { createAttention, listsOf, offersOf } from "../parts/attention.js";
import { chosenOf, figure, mostOf, sumOf } from "../data/maps.js";
import { createLegend, cssOf, inkOn, inks, shareOf } from "../page/palette.js";
import { createProse, markTexts, shadeTexts } from "../parts/prose.js";
import { WIDTH, shadedTokens } from "../parts/shading.js";

const SIDES = { received: "columns", entropy: "rows", distance: "rows", first: "rows", surprise: "rows" }; // of each measure
const MOST = 64; // entries that shade the text
const LISTED = 8;
const LARGE = 0.98; // the share of values up to the deepest colour: few tokens may receive nearly all

/** @type {import("./views.js").ViewType} */
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
/** @param {import("../data/contents.js").Example} example */
const isProse = ({ sides, source, output }) => sides !== "queries and keys" || /\p{L}/u.test(source + output);

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, choose } = context;
  const strip = element("div.strip", { role: "radiogroup", "aria-label": t("text.shade") });
  const caption = element("p.caption");
  const texts = element("div.running");
  const aside = element("aside.readout", { "aria-label": t("weights") });
  const legend = createLegend();
  host.append(sectionWith(strip, t("text"), caption, element("div.split.wide", texts, aside), legend.node));
  let built = "";
  /** @type {import("./views.js").State} */
  let view = null;
  /** @type {import("../data/contents.js").Axes} */
  let axes = null;
  /** @type {ReturnType<typeof createAttention>} */
  let attention = null;
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
    attention = createAttention(reader, view);
    const key = `${state.example} ${state.kind}`;
    const isNew = built !== key;
    if (isNew) build(key);
    const values = await Promise.all(
      Object.keys(SIDES).map((name) => (name === "surprise" ? surprise() : reader.line(view, name).catch(() => null))),
    );
    lines = Object.fromEntries(Object.keys(SIDES).flatMap((name, at) => (values[at] ? [[name, values[at]]] : [])));
    const names = Object.keys(lines).concat(canBeSurprised() && context.canExplain(view.example) ? "surprise" : []);
    measure = names.includes(state.shade) ? state.shade : names[0];
    const options = names.map((name) => [name, t(`measure.${name}`)]);
    strip.replaceChildren(...radios("shade", options, measure, (shade) => choose({ shade })));
    strip.hidden = names.length < 2;
    hits = context.hits();
    if (isNew) reveal({ row: state.row ?? null, column: state.column ?? null });
  }

  // How unexpected each output token was, whatever the head.
  function surprise() {
    const values = reader.exampleAt(view.example).surprise ?? [];
    if (!values.length || !canBeSurprised()) return null;
    return {
      span: 1,
      values: Float32Array.from(values, (value) => value ?? 0),
      counted: values.filter((value) => typeof value === "number"),
    };
  }

  const canBeSurprised = () => !view.pair && axes.sideOf("rows") === "output";

  function reveal({ row, column }) {
    const [axis, position] = row !== null ? ["rows", row] : ["columns", column];
    if (position !== null) proses[axes.sideOf(axis)].reveal(axes.tokenAt(axis, position));
  }

  const isSelf = () => (view.pair ? axes.rows === axes.columns : axes.sideOf("rows") === axes.sideOf("columns")); // a token is a query and a key

  function build(key) {
    built = key;
    const example = reader.exampleAt(view.example);
    const languages = context.languages(view.example);
    const whole = reader.axes({ ...view, pair: "" });
    for (const prose of Object.values(proses)) prose.destroy();
    texts.replaceChildren();
    proses = {};
    for (const side of new Set([axes.sideOf("columns"), axes.sideOf("rows")])) {
      const name = whole.axisNames[side === axes.sideOf("rows") ? "rows" : "columns"];
      const container = element("div", element("h3.side", name));
      texts.append(container);
      proses[side] = createProse(container, {
        point: (token, isFirm) => axes.pointAt(point, side, token, isFirm),
        label: name,
      });
      proses[side].show(
        side === "source" ? example.source_tokens : example.output_tokens,
        example[side],
        languages[side],
      );
    }
  }

  /** Shades by the measure where nothing is pointed at, else by the links of the token. */
  async function mark(where) {
    const mine = ++turn;
    const snapshot = attention;
    const chosen = chosenOf(where);
    const isAny = chosen.rows.length + chosen.columns.length > 0;
    markTexts(proses, axes, isAny ? chosen : hits);
    if (!isAny) return shadeByMeasure();
    const isRow = chosen.rows.length > 0;
    const across = (from, to, positions) =>
      positions
        .map((position) => axes.positionOf(to, axes.tokenAt(from, position)))
        .filter((position) => position >= 0);
    const from = isRow ? chosen.rows : isSelf() ? across("columns", "rows", chosen.columns) : [];
    const to = chosen.columns.length ? chosen.columns : isSelf() ? across("rows", "columns", chosen.rows) : [];
    const topKeys = from.length ? snapshot.meanTopKeys(from, MOST) : undefined;
    const topQueries = to.length ? snapshot.summedTopQueries(to, MOST) : undefined;
    const isWhole = Math.max(from.length, to.length) < 2 || (await snapshot.isWhole());
    const entries = await (isRow ? topKeys : topQueries);
    if (mine !== turn) return null;
    if (!entries) return showMissing();
    const largest = scale === "one" ? 1 : (entries[0]?.weight ?? 0);
    shadeTexts(
      proses,
      axes,
      isRow ? "columns" : "rows",
      entries.map(({ at, weight }) => [at, shareOf(weight, largest, scale)]),
    );
    legend.setEnds("0", figure(largest, 3));
    caption.textContent ||= axes.description;
    const list = (isTopKeys, listed, full) =>
      listsOf({
        axes,
        from,
        to,
        [isTopKeys ? "topKeys" : "topQueries"]: listed?.slice(0, LISTED) ?? null,
        full,
        scale,
        go: reveal,
      })
        .flat()
        .concat(measuresOf(isTopKeys ? "rows" : "columns", isTopKeys ? from : to));
    const note = isWhole ? [] : [element("p.hint", t("picked.stored"))];
    const first = list(isRow, entries, largest);
    aside.replaceChildren(...first, ...note);
    if (!isSelf()) return null;
    const others = await (isRow ? topQueries : topKeys);
    if (mine !== turn) return null;
    const fuller = Math.max(largest, others?.[0]?.weight ?? 0); // a sum may be more than a mean
    aside.replaceChildren(...first, ...list(!isRow, others, fuller), ...note);
    return null;
  }

  /**
   * Leaves the text shaded by its measure where the links of this view were not stored.
   *
   * @returns {null}
   */
  function showMissing() {
    shadeByMeasure();
    const { layer, head } = reader.nearestStored(view);
    const others = layer !== view.layer || head !== view.head ? [{ layer, head }] : [];
    aside.replaceChildren(element("p.hint", t("no-weights"), ...offersOf(reader, view.example, others, choose)));
    return null;
  }

  function shadeByMeasure() {
    const line = lines[measure];
    aside.replaceChildren(element("p.hint", t("text.point")));
    if (!line) {
      caption.textContent = t("text.none");
      for (const prose of Object.values(proses)) prose.shade(() => 0);
      legend.setEnds("0", "");
      return;
    }
    const axis = SIDES[measure];
    const largest = largeOf(line.values);
    const least = measure === "received" || measure === "surprise" ? 0 : leastOf(line.values); // what is received adds up from nothing
    const shares = axes[axis].map((_, position) => [
      position,
      Math.min(1, ((line.values[Math.floor(position / line.span)] ?? 0) - least) / (largest - least || 1)),
    ]);
    shadeTexts(proses, axes, axis, shares);
    const groups = line.span > 1 && t("text.groups", { count: line.span });
    const start = axes.shift(axis) > 0 && line.span === 1 && t("text.start", { value: figure(line.values[0], 3) });
    caption.textContent = sentences(
      view.pair && axes.description,
      t(`text.${measure}`, line.counted ? lossOf(line.counted) : {}),
      groups,
      start,
    );
    legend.setEnds(figure(least, 3), `${largest < mostOf(line.values) ? "≥ " : ""}${figure(largest, 3)}`);
  }

  // The values of one token that is pointed at.
  /** @returns {Node[]} */
  function measuresOf(axis, positions) {
    if (positions.length !== 1) return [];
    const values = Object.entries(lines)
      .filter(([name]) => SIDES[name] === axis)
      .map(([name, { values, span }]) => [t(`measure.${name}`), figure(values[Math.floor(positions[0] / span)], 3)]);
    return [namedValues("dl.measures", values)];
  }

  function table() {
    const names = Object.keys(lines);
    const valueAt = (name, at) => {
      const value = lines[name].values[Math.floor(at / lines[name].span)];
      return at < axes[SIDES[name]].length && value !== undefined ? figure(value) : "";
    };
    const length = Math.max(axes.rows.length, axes.columns.length);
    const rows = Array.from({ length }, (_, at) => [
      at + 1,
      axes.rows[at]?.text ?? "",
      axes.columns[at]?.text ?? "",
      ...names.map((name) => valueAt(name, at)),
    ]);
    return { columns: ["position", "token that looks", "token looked at", ...names], rows };
  }

  function picture() {
    const { quiet } = inks();
    const shapes = [];
    let height = 0;
    for (const prose of Object.values(proses)) {
      const tokens = prose
        .shaded()
        .map(({ text, before, share }) => ({ text, before, fill: share > 0 ? cssOf(share) : null, ink: inkOn(share) }));
      const drawn = shadedTokens(tokens, WIDTH);
      shapes.push(textAt(prose.node.getAttribute("aria-label"), [0, height + 14], 12, quiet));
      shapes.push({ group: drawn.shapes, at: [0, height + 22] });
      height += drawn.height + 34;
    }
    return { width: WIDTH, height, shapes, legend: { ...legend.ends(), notes: [caption.textContent] } };
  }

  return {
    show,
    mark,
    table,
    picture,
    reveal,
    focus: () => proses[axes.sideOf("rows")].focus(),
    destroy: () => Object.values(proses).forEach((prose) => prose.destroy()),
  };
}

// The loss of a text in words: its sum, and what it is for a token.
function lossOf(values) {
  const sum = sumOf(values);
  const mean = sum / values.length;
  return {
    count: values.length,
    sum: figure(sum),
    mean: figure(mean, 3),
    bits: figure(mean / Math.LN2, 3),
    perplexity: figure(Math.exp(mean), 3),
  };
}

const leastOf = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);

// The value of the deepest colour: the largest of a short text, of a long one that of most tokens.
function largeOf(values) {
  if (values.length < 50) return mostOf(values);
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(LARGE * (sorted.length - 1))] || mostOf(values);
}

// Two heads, two inputs or two models side by side: both maps, and their difference where they match.

import { titleOf } from "../page/controls.js";
import { button, element, redraw, sectionWith, tokenLabel, weigh } from "../page/dom.js";
import { textAt, wrapped } from "../page/exporting.js";
import { listed, phrase, sentences, t } from "../page/language.js";
import { arrowOf, figure, nameOf, numberOf, within } from "../data/maps.js";
import { colourOf, createLegend, inks, shareOf } from "../page/palette.js";
import { differing } from "../parts/differing.js";
import { LEGIBLE, MARGIN, createChart, drawable, gapColour, gapOf, gapsOf, largeOf } from "./charts.js";
import { tokenizations } from "./tokenizations.js";

const LARGEST = 420; // pixels of a map
const MOST_NAMED = 24; // tokens that are always written
const NARROW = 240; // pixels of a map below which they stand one below the other

/** @type {import("./views.js").ViewType} */
export const compare = {
  id: "compare",
  controls: ["example", "kind", "layer", "head", "scale"],
  applies: ({ reader }, example) =>
    reader.kinds(example).length > 0 &&
    (reader.data.examples.length > 1 ||
      reader.headCount(example) > 1 ||
      (reader.exampleAt(example).changes ?? []).length > 0),
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, choose, point, say } = context;
  const picks = element("div.tools.other", { role: "group", "aria-label": t("compare.picks") });
  const swap = button(t("compare.swap"), () => turnAround(), { title: t("compare.swap.title") });
  const outputs = element("section.outputs", { "aria-label": t("compare.outputs") });
  const caption = element("p.caption");
  const why = element("p.hint", { hidden: true });
  const row = element("div.sides");
  const reading = element("p.caption.reading", { role: "status" });
  const [less, more] = [element("span"), element("span")];
  const difference = element("span.key", less, element("span.diverging", { "aria-hidden": "true" }), more);
  const legend = createLegend(difference);
  host.append(element("div", outputs, sectionWith(picks, t("compare"), caption, row, why, reading, legend.node)));
  const charts = {
    one: createChart("one", "A", pointAt),
    other: createChart("other", "B", pointAt),
    change: createChart("change", "B − A", pointAt),
  };
  row.append(charts.one.node, charts.other.node, charts.change.node);
  let views = null; // {one, other} views of the reader
  let maps = null; // what is drawn of them
  let matches = false;
  let full = 1;
  let largestGap = 1; // the difference of the deepest colour
  let isEqual = false;
  let scale = "largest";

  async function show(state) {
    scale = state.scale;
    const one = { example: state.example, kind: state.kind, layer: state.layer, head: state.head };
    const other = otherOf(state);
    views = { one, other };
    drawPicks();
    drawOutputs();
    maps = { one: await drawable(reader, one), other: await drawable(reader, other) };
    const isDrawn = maps.one && maps.other;
    why.hidden = Boolean(isDrawn);
    row.hidden = !isDrawn;
    if (!isDrawn) {
      why.textContent = t("compare.no-map");
      return;
    }
    matches = maps.one.rows === maps.other.rows && maps.one.columns === maps.other.columns;
    full = scale === "one" ? 1 : Math.max(maps.one.largest, maps.other.largest);
    const gaps = matches ? gapsOf(maps) : [];
    [isEqual, largestGap] = [matches && gaps.at(-1) === 0, largeOf(gaps) || 1];
    caption.textContent = describePair();
    legend.setEnds("0", figure(full, 3));
    difference.hidden = !matches || isEqual;
    const beyond = largestGap < gaps.at(-1) ? "≥ " : "";
    [less.textContent, more.textContent] = ["a", "b"].map((side) =>
      t(`compare.more.${side}`, { value: `${beyond}${figure(largestGap, 3)}` }),
    );
    draw();
  }

  // The other side: as chosen, else the next example, else the next head of this one.
  function otherOf(state) {
    const count = reader.data.examples.length;
    const wished = Number(state.otherexample ?? NaN) - 1;
    const example = wished >= 0 && wished < count && !reader.isEmpty(wished) ? wished : partnerOf(state.example);
    const read = (value) =>
      value === undefined || value === null ? null : value === "mean" ? "mean" : Number(value) - 1;
    const kind = state.kind;
    let layer = read(state.otherlayer) ?? state.layer;
    let head = read(state.otherhead) ?? state.head;
    const isSame = example === state.example && layer === state.layer && head === state.head;
    if (isSame && state.otherhead === undefined) {
      const heads = reader.headOffers(example, kind, layer);
      ({ layer, head } = reader.withHead({ example, kind, layer }, after(heads, head)));
      if (heads.length < 2 && state.otherlayer === undefined) layer = after(reader.layerChoices(example, kind), layer);
    }
    const near = reader.nearest(example, { kind, layer, head });
    return { example, ...near };
  }

  // Examples of one text stand side by side: before and after, one model and another.
  function partnerOf(at) {
    const { examples } = reader.data;
    const textOf = ({ source, output }) => source || output;
    const like = examples.findIndex(
      (example, other) => other !== at && !reader.isEmpty(other) && textOf(example) === textOf(examples[at]),
    );
    if (like >= 0) return like;
    const next = examples.findIndex((_, other) => other > at && !reader.isEmpty(other));
    return next >= 0 ? next : examples.findIndex((_, other) => !reader.isEmpty(other));
  }

  function drawPicks() {
    const { example, kind, layer, head } = views.other;
    const { examples } = reader.data;
    const available = examples.map((_, at) => at).filter((at) => !reader.isEmpty(at));
    const offers = {
      example: [available.map((at) => [String(at + 1), titleOf(examples[at], at)]), String(example + 1)],
      layer: [reader.layerChoices(example, kind).map((one) => [numbered(one), numberOf(one)]), numbered(layer)],
      head: [
        reader.headChoices(example, kind, layer).map((one) => [numbered(one), reader.headOption(example, one)]),
        numbered(head),
      ],
    };
    const selects = Object.entries(offers).map(([name, [options, value]]) => {
      if (options.length < 2) return null;
      const title = t(`keys.${name}`);
      const list = options.map(([key, label]) => element("option", { value: key, selected: key === value }, label));
      const onchange = () => choose({ [`other${name}`]: select.value });
      const select = element("select", { "aria-label": t("compare.pick", { name: title }), onchange }, ...list);
      return element("label", element("span", title), select);
    });
    redraw(picks, element("span.name", t("compare.with")), ...selects, swap);
  }

  function turnAround() {
    const { one, other } = views;
    choose({
      example: other.example,
      kind: other.kind,
      layer: other.layer,
      head: other.head,
      otherexample: String(one.example + 1),
      otherlayer: numbered(one.layer),
      otherhead: numbered(one.head),
      row: null,
      column: null,
    });
  }

  // Both outputs with what differs marked, and what edits did.
  function drawOutputs() {
    const [one, other] = [views.one, views.other].map(({ example }) => reader.exampleAt(example));
    const languages = context.languages(views.one.example);
    const isOneText = views.one.example === views.other.example;
    const changes = isOneText ? (one.changes ?? []) : [...(one.changes ?? []), ...(other.changes ?? [])];
    const lines = [];
    if (!isOneText) {
      const side = one.output || other.output ? "output" : "source";
      const parts = differing(one[side], other[side], languages[side]);
      lines.push(lineOf("A", one, parts.one, languages[side]), lineOf("B", other, parts.other, languages[side]));
    }
    for (const { edit, output, score } of changes) {
      const parts = differing(one.output, output, languages.output);
      const note = output === one.output ? t("compare.same-output") : null;
      lines.push(lineOf(phrase(edit), { score }, parts.other, languages.output, note));
    }
    outputs.hidden = !lines.length;
    outputs.replaceChildren(
      element("h2", t(changes.length && isOneText ? "compare.edits" : "compare.texts")),
      element("dl.texts.versions", ...lines),
      ...chancesOf(one, other, languages),
      ...tokenizations(one, other, languages),
    );
  }

  // Where both wrote the same, or were given it: the probability of every token in each.
  function chancesOf(one, other, languages) {
    const [before, after] = [one, other].map((example) => example.search?.probabilities ?? []);
    const isSame =
      one !== other && one.output === other.output && one.output_tokens.length === other.output_tokens.length;
    if (!isSame || !before.length || !after.length) return [];
    const rows = one.output_tokens.map((token, at) => {
      const chances = [before[at], after[at]];
      const bars = chances.map((chance, side) => {
        const bar = element(side ? "i.B" : "i.A");
        weigh(bar, chance ?? 0);
        return bar;
      });
      const [first, second] = chances.map((chance) => (typeof chance === "number" ? figure(chance, 2) : "–"));
      const label = t("compare.chance", { token: nameOf(token), first, second });
      return element(
        "li",
        { title: label, "aria-label": label },
        element("span.both", { "aria-hidden": "true" }, ...bars),
        tokenLabel(token, languages.output),
        element("small", `${first} → ${second}`),
      );
    });
    return [element("h3", t("compare.chances")), element("ol.chances-compared", ...rows)];
  }

  function lineOf(name, { score = null, label = null }, parts, language, note = null) {
    const says = typeof score === "number" && t("compare.score", { score: score.toFixed(3).replace("-", "−") });
    const figures = [phrase(label ?? ""), says, note]
      .filter(Boolean)
      .flatMap((one, at) => [at ? " · " : "", element("span", { title: one === says ? t("score.says") : null }, one)]);
    const notes = figures.length > 0 && element("small", ...figures);
    return element("div", element("dt", name), element("dd", { lang: language ?? "", dir: "auto" }, ...parts, notes));
  }

  function nameOfView({ example, layer, head }) {
    const { label } = reader.exampleAt(example);
    const named = label
      ? phrase(label)
      : reader.data.examples.length > 1
        ? t("example.number", { number: example + 1 })
        : null;
    return listed([named, reader.viewName(example, layer, head)].filter(Boolean));
  }

  function describePair() {
    const pooled = [maps.one, maps.other].some((map) => map.isPooled) ? t("compare.pooled") : "";
    const gap = !matches ? t("compare.sizes") : isEqual ? t("compare.equal") : "";
    return sentences(t("compare.sides", { one: nameOfView(views.one), other: nameOfView(views.other) }), gap, pooled);
  }

  function draw() {
    const most = Math.max(maps.one.rows, maps.one.columns, maps.other.rows, maps.other.columns);
    const named = !maps.one.isPooled && most <= MOST_NAMED ? MARGIN + LEGIBLE * most : 0; // rather on lines of their own than without tokens
    const columnWidth = Math.floor((host.clientWidth - 60) / (matches ? 3 : 2)) - 24;
    const share = columnWidth < NARROW ? row.clientWidth : columnWidth; // each on a line of its own
    const width = Math.max(160, Math.min(LARGEST, Math.max(share, Math.min(named, row.clientWidth))));
    const shade = (map) => (at, to) => colourOf(shareOf(map.weight(at, to), full, scale));
    charts.one.draw(maps.one, width, shade(maps.one), reader.axes(views.one));
    charts.other.draw(maps.other, width, shade(maps.other), reader.axes(views.other));
    charts.change.node.hidden = !matches;
    const gap = (at, to) => gapColour(gapOf(maps, at, to) / largestGap);
    if (matches) charts.change.draw(maps.one, width, gap, reader.axes(views.one));
  }

  // The page's position is one of A; a cell that only B has is marked in passing.
  function pointAt(cell, isFirm) {
    if (!maps?.one) return;
    if (cell && (cell.row >= maps.one.rows || cell.column >= maps.one.columns)) markCell(cell);
    else point(cell && { row: cell.row * maps.one.bucket[0], column: cell.column * maps.one.bucket[1] }, isFirm);
  }

  function mark({ row: at, column: to }) {
    if (!maps?.one || !maps?.other) return;
    const [height, width] = maps.one.bucket;
    const bucketOf = (at, size) => (at === null ? null : Math.floor(at / size));
    markCell({ row: bucketOf(at, height), column: bucketOf(to, width) });
  }

  function markCell(cell) {
    for (const chart of Object.values(charts)) chart.mark(cell);
    if (cell.row === null || cell.column === null) {
      reading.textContent = t("compare.point");
      return;
    }
    const [first, second] = [maps.one, maps.other].map((map) => {
      const weight = weightAt(map, cell.row, cell.column);
      return weight === null ? t("none") : figure(weight, 3);
    });
    const [one, other] = ["one", "other"].map((name) => {
      const { rows, columns } = reader.axes(views[name]);
      const [height, width] = maps[name].bucket;
      if (maps[name].isPooled) return `${spanOf(cell.row, height, rows)} → ${spanOf(cell.column, width, columns)}`;
      const [query, key] = [rows[cell.row], columns[cell.column]];
      return query && key ? `${nameOf(query)} → ${nameOf(key)}` : "";
    });
    const gap = matches ? gapOf(maps, cell.row, cell.column) : 0;
    const key = !matches ? "compare.cell" : gap ? "compare.cell.gap" : "compare.cell.same";
    const gapText = `${gap < 0 ? "−" : "+"}${figure(Math.abs(gap), 3)}`;
    reading.textContent = t(key, { one, first, other, second, gap: gapText });
  }

  function press(event) {
    const by = arrowOf(event.key);
    if (!by || !maps?.one) return false;
    const current = charts.one.marked();
    const [row, column] = current.row === null ? [0, 0] : [current.row + by[0], (current.column ?? 0) + by[1]];
    pointAt({ row: within(row, maps.one.rows), column: within(column, maps.one.columns) }, true);
    say(reading.textContent);
    return true;
  }

  function table() {
    const rows = [];
    for (let at = 0; at < Math.max(maps.one.rows, maps.other.rows); at++) {
      for (let to = 0; to < Math.max(maps.one.columns, maps.other.columns); to++) {
        const [one, other] = [weightAt(maps.one, at, to), weightAt(maps.other, at, to)];
        const gap = one === null || other === null ? null : matches ? gapOf(maps, at, to) : other - one;
        rows.push([at + 1, to + 1, ...[one, other, gap].map((value) => (value === null ? "" : figure(value)))]);
      }
    }
    return { columns: ["row", "column", "A", "B", "B − A"], rows };
  }

  function picture() {
    const { ink } = inks();
    const visible = Object.values(charts).filter((chart) => !chart.node.hidden);
    let left = 12;
    const shapes = [];
    let height = 0;
    const drawn = visible.map((chart) => {
      const one = chart.picture();
      const view = { A: views.one, B: views.other }[one.title];
      const lines = wrapped(view ? `${one.title}: ${nameOfView(view)}` : one.title, Math.max(one.width, 150), 12, true);
      return { ...one, lines };
    });
    const top = 12 + 16 * Math.max(...drawn.map(({ lines }) => lines.length));
    for (const { lines, shapes: chartShapes, width, height: tall } of drawn) {
      const title = lines.map((text, at) => textAt(text, [left, 20 + 16 * at], 12, ink, "start", true));
      shapes.push(...title, { group: chartShapes, at: [left, top] });
      left += Math.max(width, 150) + 24;
      height = Math.max(height, tall + top);
    }
    const change = matches && !isEqual ? [t("compare.change", { less: less.textContent, more: more.textContent })] : [];
    return { width: left, height, shapes, legend: { ...legend.ends(), notes: change } };
  }

  return {
    show,
    mark,
    press,
    table,
    picture,
    fit: () => maps?.one && maps?.other && draw(),
    focus: () => charts.one.focus(),
  };
}

const numbered = (value) => (value === "mean" ? "mean" : String(value + 1));
const weightAt = (map, at, to) => (at < map.rows && to < map.columns ? map.weight(at, to) : null);
const after = (choices, one) => choices[(choices.indexOf(one) + 1) % choices.length];

// The tokens of a bucket, by their numbers.
function spanOf(at, size, tokens) {
  const ends = [at * size + 1, Math.min(tokens.length, (at + 1) * size)];
  const [from, to] = ends.map((number) => number.toLocaleString("en"));
  return t(from === to ? "compare.token" : "compare.tokens", { from, to });
}

// Short texts, whole: both texts, the links between their words, and the matrix with its figures.

import { element, section, tokenLabel } from "../page/dom.js";
import { t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { entryOf, headingOf } from "../parts/looking.js";
import { chosenOf, figure, meanOver, sideName, signed, sumOver, weightsTable } from "../data/maps.js";
import { bestMark, createMatrix, goldMark } from "../parts/matrix.js";
import { createProse } from "../parts/prose.js";
import { DECADES, createLegend, inks, sample, shareOf } from "../page/palette.js";

const MOST_ENTRIES = 8; // tokens listed
const FAINTEST = 0.01; // weights below are no link

function createReadout(host) {
  let map = null;
  let sides = null;
  let full = 1;

  function paint(next, axes, deepest) {
    [map, sides, full] = [next, axes, deepest];
    const lines = Math.min(MOST_ENTRIES, Math.max(map.rows.length, map.columns.length));
    host.style.setProperty("--lines", lines); // room kept, so that nothing jumps under the pointer
  }

  function mark(place) {
    const { rows, columns } = chosenOf(place);
    const parts = [];
    if (rows.length && columns.length) parts.push(...cellParts(rows[0], columns[0]));
    if (rows.length) {
      const weights = Array.from(meanOver(rows.map((row) => map.weights[row])));
      parts.push(...listParts(rows.map((at) => map.rows[at]), "looks-at", weights, map.columns, "columns", columns));
    } else if (columns.length) {
      parts.push(...listParts(columns.map((at) => map.columns[at]), "looked-at-by", sumOver(map.weights, columns), map.rows, "rows"));
    } else {
      parts.push(...largestParts(), element("p", { class: "hint" }, t("words.point")));
    }
    host.replaceChildren(...parts);
  }

  function largestParts() {
    const all = map.weights.flatMap((weights, row) => weights.map((weight, column) => ({ row, column, weight })));
    const largest = all.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight).slice(0, MOST_ENTRIES);
    const items = largest.map(({ row, column, weight }) => itemOf(pairOf(row, column), weight));
    return items.length ? [element("h3", {}, t("words.largest")), element("ol", { class: "pairs" }, ...items)] : [];
  }

  const pairOf = (row, column) => [tokenLabel(map.rows[row], sides.languages.rows), " → ", tokenLabel(map.columns[column], sides.languages.columns)];
  const itemOf = (nodes, weight, isChosen = false) =>
    entryOf([element("span", { class: "named" }, ...nodes)], shareOf(weight, full), weight, { digits: 4, class: isChosen ? "marked" : null });

  function cellParts(row, column) {
    const link = map.gold.get(`${row},${column}`);
    const parts = [element("p", { class: "weight" }, figure(map.weights[row][column])), element("p", { class: "pair" }, ...pairOf(row, column))];
    return link ? [...parts, element("p", { class: "hint" }, t(`gold.${link}`))] : parts;
  }

  function listParts(tokens, verb, weights, others, end, chosen = []) {
    const seen = [...weights.keys()].filter((at) => weights[at] > 0).sort((a, b) => weights[b] - weights[a]);
    const items = seen.slice(0, MOST_ENTRIES).map((at) => itemOf([tokenLabel(others[at], sides.languages[end])], weights[at], chosen.includes(at)));
    const list = items.length ? element("ol", {}, ...items) : element("p", { class: "hint" }, t("nothing"));
    const rest = seen.length - items.length;
    return [headingOf(tokens, sides.languages[end === "rows" ? "columns" : "rows"], verb), list, ...(rest > 0 ? [element("p", { class: "hint" }, t("and-more", { count: rest }))] : [])];
  }

  return { paint, mark };
}

// The texts inside `host`; `point` is told as by the matrix.
function createTexts(host, { point }) {
  const score = element("dd", { class: "score" });
  const scored = element("div", {}, element("dt", {}, t("score")), score);
  const lines = Object.fromEntries(["source", "output"].map((side) => {
    const [name, text] = [element("dt", {}), element("dd", {})];
    const prose = createProse(text, { point: (token, isFirm) => sides.tell(point, side, token, isFirm), hasSigns: false });
    return [side, { name, prose, node: element("div", {}, name, text) }];
  }));
  host.append(element("dl", { class: "texts" }, lines.source.node, lines.output.node, scored));
  let sides = null;

  /** Shows an example; `axes` are those of what is looked at. */
  function show(example, languages, task, axes) {
    sides = axes;
    for (const [side, { name, prose, node }] of Object.entries(lines)) {
      const tokens = example[`${side}_tokens`];
      node.hidden = !tokens.length;
      name.textContent = sideName(example, side, task);
      prose.node.setAttribute("aria-label", name.textContent);
      prose.show(tokens, example[side], languages[side]);
    }
    scored.hidden = example.score === null || example.score === undefined;
    score.textContent = scored.hidden ? "" : signed(example.score);
  }

  /** Shades the tokens at the other end of rows or columns: `shares` by place. */
  function mark({ rows, columns }, end, shares) {
    const { sideOf, tokenAt } = sides;
    const ofTokens = new Map(Array.from(shares, ([place, share]) => [tokenAt(end, place), share]));
    const marked = [...rows.map((at) => ["rows", at]), ...columns.map((at) => ["columns", at])];
    for (const [side, { prose }] of Object.entries(lines)) {
      prose.shade(side === sideOf(end) ? (token) => ofTokens.get(token) ?? 0 : () => 0);
      prose.mark(marked.filter(([axis]) => sideOf(axis) === side).map(([axis, at]) => tokenAt(axis, at)));
    }
  }

  return { show, mark, destroy: () => Object.values(lines).forEach(({ prose }) => prose.destroy()) };
}

const MOST = 64; // tokens on a side

export const words = {
  id: "words",
  picks: true,
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
  applies: ({ reader }, example) =>
    reader.kinds(example).length > 0 &&
    reader.kinds(example).every((kind) => {
      const { rows, columns } = reader.axes({ example, kind });
      return Math.max(rows.length, columns.length) <= MOST && reader.holdsRows({ example, kind, ...reader.nearest(example, { kind }) });
    }),
  create,
};

function create(host, context) {
  const { reader, point } = context;
  const place = (name) => element("div", { class: name });
  const [reading, lines, holder] = ["reading", "arcs", "holder"].map(place);
  const aside = element("aside", { class: "readout", "aria-label": t("weights") });
  const caption = element("p", { class: "caption" });
  const gold = element("span", { class: "key" }, sample({ "data-gold": "sure" }), t("gold.sure"), sample({ "data-gold": "possible" }), t("gold.possible.short"));
  const legend = createLegend(element("span", { class: "key" }, sample({ class: "best" }), t("words.best")), gold);
  host.append(
    reading,
    section(t("words.links"), null, lines),
    section(t("words.matrix"), null, caption, element("div", { class: "split" }, holder, aside), legend.node),
  );
  const texts = createTexts(reading, { point });
  const arcs = createLines(lines, { point, areFew: true });
  const matrix = createMatrix(holder, { point });
  const readout = createReadout(aside);
  let built = "";
  let map = null;
  let full = 1;

  async function show(state) {
    const sides = reader.axes(state);
    const languages = context.languages(state.example);
    map = await reader.map(state);
    full = state.scale === "one" ? 1 : map.largest;
    const key = `${state.example} ${state.kind} ${state.pair}`;
    if (built !== key) {
      built = key;
      texts.show(reader.exampleAt(state.example), languages, reader.data.task, sides);
      arcs.build(sides);
      matrix.build(map, sides);
    }
    arcs.draw(linksOf());
    matrix.paint(map, full, state.scale, context.hits());
    readout.paint(map, sides, full);
    caption.textContent = sides.says;
    legend.tell(state.scale === "log" ? figure(full / 10 ** DECADES, 2) : "0", figure(full));
    gold.hidden = map.gold.size === 0;
  }

  function linksOf() {
    const links = map.weights.flatMap((weights, row) => weights.map((weight, column) => ({ row, column, weight, share: shareOf(weight, full) })));
    return links.filter(({ weight }) => weight >= FAINTEST);
  }

  function mark(where) {
    const { rows, columns } = chosenOf(where);
    const end = rows.length ? "columns" : "rows";
    const weights = rows.length ? meanOver(rows.map((row) => map.weights[row])) : columns.length ? sumOver(map.weights, columns) : [];
    const shares = new Map(Array.from(weights, (weight, at) => [at, weight >= FAINTEST ? shareOf(weight, full) : 0]));
    arcs.mark(where, { [end]: shares });
    texts.mark({ rows, columns }, end, shares);
    matrix.mark(where);
    readout.mark(where);
  }

  function picture() {
    const [above, below] = [arcs.picture(), matrix.picture()];
    const shapes = [{ group: above.shapes, at: [0, 0] }, { group: below.shapes, at: [0, above.height] }];
    const dot = { shapes: [bestMark([12, 4], inks().ink)], text: t("words.best") };
    const links = map.gold.size ? ["sure", "possible"].map((strength) => ({ shapes: [goldMark([1, 1, 14, 14], strength, inks().gold)], text: t(`gold.${strength}`) })) : [];
    return { width: Math.max(above.width, below.width), height: above.height + below.height, shapes, legend: { ...legend.ends(), marks: [dot, ...links] } };
  }

  return {
    show, mark, picture,
    reveal: (where) => {
      arcs.reveal(where);
      matrix.reveal(where);
    },
    fit: () => {
      matrix.fit();
      arcs.fit();
    },
    focus: () => matrix.focus(),
    table: () => weightsTable(map),
    destroy: () => {
      arcs.destroy();
      texts.destroy();
    },
  };
}

// Short texts, whole: both texts, the links between their words, and the matrix with its figures.

import { element, section, sectionWith } from "../page/dom.js";
import { t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { entryOf, listsOf, pairOf } from "../parts/attention.js";
import { chosenOf, figure, largestOf, meanOver, sideName, signed, sumOver, weightsTable } from "../data/maps.js";
import { createColours, headMarks, laneOf } from "../parts/overlay.js";
import { bestMark, createMatrix, goldMark } from "../parts/matrix.js";
import { createProse, markTexts, shadeTexts } from "../parts/prose.js";
import { DECADES, createLegend, inks, sample, shareOf } from "../page/palette.js";

const MOST_ENTRIES = 8; // tokens listed
const FAINTEST = 0.01; // weights below are no link
const FAINTEST_OF_MANY = 0.1; // nor those below where heads are overlaid

function createReadout(host, point) {
  let map = null;
  /** @type {import("../data/contents.js").Axes} */
  let sides = null;
  let full = 1;

  function paint(next, axes, deepest) {
    [map, sides, full] = [next, axes, deepest];
    const lines = Math.min(MOST_ENTRIES, Math.max(map.rows.length, map.columns.length));
    host.style.setProperty("--lines", lines); // a fixed height, so that nothing jumps under the pointer
  }

  /** Lists the largest `weights` of the rows that are pointed at, or of the columns where there are none. */
  function mark({ rows, columns }, weights) {
    const entries = largestOf(weights, MOST_ENTRIES);
    const isRow = rows.length > 0;
    const go = (position) => point(position, true);
    const list = { topKeys: entries, topQueries: entries, full, marked: isRow ? columns : [], go };
    host.replaceChildren(
      ...(isRow && columns.length ? cellParts(rows[0], columns[0]) : []),
      ...listsOf({ axes: sides, from: rows, to: isRow ? [] : columns, ...list }).flat(),
      ...(isRow || columns.length ? [] : largestParts()),
    );
  }

  function largestParts() {
    const { length } = map.columns;
    const items = largestOf(map.weights.flat(), MOST_ENTRIES).map(({ at, weight }) => {
      const pair = pairOf(sides, Math.floor(at / length), at % length);
      return entryOf([element("span.named", ...pair)], shareOf(weight, full), weight, { digits: 4 });
    });
    const list = items.length ? [element("h3", t("words.largest")), element("ol.pairs", ...items)] : [];
    return [...list, element("p.hint", t("words.point"))];
  }

  function cellParts(row, column) {
    const link = map.gold.get(`${row},${column}`);
    const weight = element("p.weight", figure(map.weights[row][column]));
    return [
      weight,
      element("p.pair", ...pairOf(sides, row, column)),
      ...(link ? [element("p.hint", t(`gold.${link}`))] : []),
    ];
  }

  return { paint, mark };
}

// The texts inside `host`; `point` as in the matrix.
function createTexts(host, { point }) {
  const score = element("dd.score");
  const scored = element("div", element("dt", t("score")), score);
  const lines = Object.fromEntries(
    ["source", "output"].map((side) => {
      const [name, text] = [element("dt"), element("dd")];
      const prose = createProse(text, {
        point: (token, isFirm) => sides.pointAt(point, side, token, isFirm),
        hasSigns: false,
      });
      return [side, { name, prose, node: element("div", name, text) }];
    }),
  );
  host.append(element("dl.texts", lines.source.node, lines.output.node, scored));
  /** @type {import("../data/contents.js").Axes} */
  let sides = null;

  /** Shows an example; `axes` are those of the view. */
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
    if (!scored.hidden) score.replaceChildren(signed(example.score), " ", element("small", t("score.says")));
  }

  return { show, proses: Object.fromEntries(Object.entries(lines).map(([side, { prose }]) => [side, prose])) };
}

const MOST = 64; // tokens on a side

/** @type {import("./views.js").ViewType} */
export const words = {
  id: "words",
  picks: true,
  controls: ["example", "kind", "layer", "head", "heads", "pair", "scale"],
  applies: ({ reader }, example) =>
    reader.kinds(example).length > 0 &&
    reader.kinds(example).every((kind) => {
      const { rows, columns } = reader.axes({ example, kind });
      return (
        Math.max(rows.length, columns.length) <= MOST &&
        reader.holdsRows({ example, kind, ...reader.nearest(example, { kind }) })
      );
    }),
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, choose } = context;
  const colours = createColours({ reader, choose, light: (head) => arcs.light(head) });
  const box = (name) => element("div", { class: name });
  const [reading, lines, holder] = ["reading", "arcs", "holder"].map(box);
  const aside = element("aside.readout", { "aria-label": t("weights") });
  const caption = element("p.caption");
  const gold = element(
    "span.key",
    sample({ "data-gold": "sure" }),
    t("gold.sure"),
    sample({ "data-gold": "possible" }),
    t("gold.possible.short"),
  );
  const legend = createLegend(element("span.key", sample({ class: "best" }), t("words.best")), gold);
  host.append(
    reading,
    sectionWith(colours.label, t("words.links"), colours.node, lines),
    section(t("words.matrix"), caption, element("div.split", holder, aside), legend.node),
  );
  const texts = createTexts(reading, { point });
  const arcs = createLines(lines, { point, areFew: true });
  const matrix = createMatrix(holder, { point });
  const readout = createReadout(aside, point);
  let built = "";
  let map = null;
  /** @type {import("../data/contents.js").Axes} */
  let sides = null;
  let full = 1;
  let inColours = null; // the heads that are overlaid
  let layered = []; // their maps
  /** @type {import("./views.js").State} */
  let view = null;

  async function show(state) {
    view = state;
    inColours = colours.show(state);
    layered = await Promise.all((inColours?.heads ?? []).map((head) => reader.map({ ...state, head })));
    sides = reader.axes(state);
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
    caption.textContent = inColours ? `${reader.fullName(state)}: ${sides.description}` : sides.description;
    legend.setEnds(state.scale === "log" ? figure(full / 10 ** DECADES, 2) : "0", figure(full));
    gold.hidden = map.gold.size === 0;
  }

  function linksOf() {
    if (!inColours) return linksIn(map, full, FAINTEST);
    const most = view.scale === "one" ? 1 : Math.max(0, ...layered.map(({ largest }) => largest));
    return layered.flatMap((one, at) =>
      linksIn(one, most, FAINTEST_OF_MANY).map((link) => ({
        ...link,
        head: inColours.heads[at],
        lane: laneOf(at, layered.length),
      })),
    );
  }

  function linksIn({ weights: rows }, most, least) {
    const links = rows.flatMap((weights, row) =>
      weights.map((weight, column) => ({ row, column, weight, share: shareOf(weight, most) })),
    );
    return links.filter(({ weight }) => weight >= least);
  }

  function mark(where) {
    const { rows, columns } = chosenOf(where);
    const end = rows.length ? "columns" : "rows";
    const weights = rows.length
      ? meanOver(rows.map((row) => map.weights[row]))
      : columns.length
        ? sumOver(map.weights, columns)
        : [];
    const shares = new Map(Array.from(weights, (weight, at) => [at, weight >= FAINTEST ? shareOf(weight, full) : 0]));
    arcs.mark(where, { [end]: shares });
    shadeTexts(texts.proses, sides, end, shares);
    markTexts(texts.proses, sides, { rows, columns });
    matrix.mark(where);
    readout.mark({ rows, columns }, weights);
  }

  function picture() {
    const [above, below] = [arcs.picture(), matrix.picture()];
    const shapes = [
      { group: above.shapes, at: [0, 0] },
      { group: below.shapes, at: [0, above.height] },
    ];
    const dot = { shapes: [bestMark([12, 4], inks().ink)], text: t("words.best") };
    const links = map.gold.size
      ? ["sure", "possible"].map((strength) => ({
          shapes: [goldMark([1, 1, 14, 14], strength, inks().gold)],
          text: t(`gold.${strength}`),
        }))
      : [];
    return {
      width: Math.max(above.width, below.width),
      height: above.height + below.height,
      shapes,
      legend: { ...legend.ends(), marks: [...(inColours ? headMarks(inColours.heads) : []), dot, ...links] },
    };
  }

  return {
    show,
    mark,
    picture,
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
      for (const prose of Object.values(texts.proses)) prose.destroy();
    },
  };
}

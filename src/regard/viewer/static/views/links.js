// Arcs: tokens with the largest links, of any length, of one head or of a layer's heads in colours, merged to words if
// one likes.

import { element, sectionWith, tokenLabel } from "../page/dom.js";
import { overviewOf } from "../parts/facts.js";
import { sentences, t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { createAttention, entryOf, listsOf, offersOf } from "../parts/attention.js";
import { createColours, headMarks, laneOf, swatch } from "../parts/overlay.js";
import { chosenOf, figure, layerName, nameOf, wordsOf } from "../data/maps.js";
import { createLegend, shareOf } from "../page/palette.js";

const SHORT = 64; // tokens up to which all links are drawn
const FAINTEST = 0.01; // weights below are no link
const MOST = 8; // links of a token of a longer text
const FAINTEST_OF_MANY = 0.1; // weights below are no link where heads are overlaid
const MOST_OF_MANY = 2; // links of a token in a head of these

/** @type {import("./views.js").ViewType} */
export const links = {
  id: "arcs",
  picks: true,
  reads: "links",
  controls: ["example", "kind", "layer", "head", "heads", "pair", "scale"],
  applies: ({ reader }, example) => reader.kinds(example).length > 0,
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, choose, say } = context;
  const merge = element("input", {
    type: "checkbox",
    onchange: () => choose({ words: merge.checked ? "merged" : null }),
  });
  const caption = element("p.caption");
  const missing = element("p.hint", { hidden: true });
  const container = element("div");
  const aside = element("aside.readout.pair", { "aria-label": t("weights") });
  const legend = createLegend();
  const colours = createColours({ reader, choose, light: (head) => lines.light(head) });
  const mergeLabel = element("label.switch", merge, element("span", t("arcs.merge")));
  const tool = element("div.row", colours.label, mergeLabel);
  host.append(sectionWith(tool, t("arcs"), caption, colours.node, missing, container, legend.node), aside);
  const lines = createLines(container, {
    point: (where, isFirm) => point(where && tokenPositions(where), isFirm),
    onVisible,
    joins: true,
  });
  let built = "";
  /** @type {import("./views.js").State} */
  let view = null;
  /** @type {import("../data/contents.js").Axes} */
  let axes = null;
  let merged = null;
  /** @type {ReturnType<typeof createAttention>} */
  let attention = null;
  let inColours = null; // the heads that are overlaid
  /** @type {{head: number, lane: number, attention: ReturnType<typeof createAttention>}[]} */
  let layered = []; // their attention
  let full = 1;
  let scale = "largest";
  let visible = null;
  let turn = 0;
  let sights = 0;

  async function show(state) {
    view = state;
    axes = reader.axes(view);
    scale = state.scale;
    merge.checked = state.words === "merged";
    const key = `${state.example} ${state.kind} ${state.pair} ${merge.checked}`;
    const isNew = built !== key;
    if (isNew) merged = merge.checked ? mergedAxes(reader.exampleAt(state.example), axes) : null;
    inColours = colours.show(state);
    layered = (inColours?.heads ?? []).map((head, at, { length }) => ({
      head,
      lane: laneOf(at, length),
      attention: createAttention(reader, { ...view, head }, merged),
    }));
    attention = createAttention(reader, view, merged);
    const all = inColours ? layered.map((one) => one.attention) : [attention];
    const isAvailable = inColours !== null || (await attention.isAvailable());
    full = scale === "one" ? 1 : Math.max(0, ...(await Promise.all(all.map((one) => one.largest()))));
    legend.setEnds("0", figure(full, 3));
    legend.node.hidden = !isAvailable || inColours !== null;
    caption.textContent = await captionText();
    if (isNew) {
      built = key;
      aside.replaceChildren();
      lines.build(shownAxes());
    }
    showMissing(isAvailable);
    const { rows, columns } = context.hits();
    lines.find({ rows: rows.map((at) => wordAt("rows", at)), columns: columns.map((at) => wordAt("columns", at)) });
    if (isNew)
      lines.reveal({ row: wordAt("rows", state.row ?? null), column: wordAt("columns", state.column ?? null) });
    await drawLinks();
  }

  const tokensOf = (side) => (merged ? merged[side].words : axes[side]);
  const shownAxes = () => ({ ...axes, rows: tokensOf("rows"), columns: tokensOf("columns") });
  const wordAt = (side, at) => (merged && at !== null ? merged[side].wordOf[at] : at);
  const tokenAt = (side, at) => (merged && at !== null ? merged[side].words[at].tokens[0] : at);
  const tokenPositions = ({ row, column }) => ({ row: tokenAt("rows", row), column: tokenAt("columns", column) });

  async function captionText() {
    const isShort = Math.max(tokensOf("rows").length, tokensOf("columns").length) <= SHORT;
    const isWhole = await attention.isWhole();
    const most = Math.min(inColours ? MOST_OF_MANY : MOST, await attention.depth());
    const which =
      isShort && isWhole
        ? t("arcs.every", { least: inColours ? FAINTEST_OF_MANY : FAINTEST })
        : t(most === 1 ? "arcs.one" : "arcs.many", { count: most });
    return sentences(
      axes.description,
      which,
      axes.rows === axes.columns && t("arcs.joined"),
      merged && t("arcs.merged"),
      inColours && t("overlay.says", { layer: layerName(view.layer) }),
    );
  }

  // Long texts keep links of some heads only: say which, and go there at a click.
  function showMissing(isAvailable) {
    missing.hidden = isAvailable;
    if (isAvailable) return;
    const { example, kind } = view;
    const layers = reader.layers(example, kind);
    const offers = layers.flatMap((layer) =>
      reader
        .topHeads(example, kind, layer)
        .filter((head) => head !== "mean")
        .map((head) => ({ layer, head })),
    );
    const count = layers.reduce((sum, layer) => sum + reader.heads(example, kind, layer).length, 0);
    missing.replaceChildren(
      offers.length ? t("arcs.missing", { stored: offers.length, count }) : t("arcs.missing.all"),
      ...offersOf(reader, example, offers, choose),
    );
  }

  function onVisible(next) {
    visible = next;
    drawLinks();
  }

  async function drawLinks() {
    if (!visible || !attention) return;
    const mine = ++sights;
    const snapshot = attention;
    const count = tokensOf("rows").length;
    const isShort = Math.max(count, tokensOf("columns").length) <= SHORT;
    const [first, last] = isShort ? [0, count - 1] : [visible.rows[0], Math.min(visible.rows[1], count - 1)];
    const positions = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
    const least = inColours ? FAINTEST_OF_MANY : FAINTEST;
    const most = isShort ? SHORT : inColours ? MOST_OF_MANY : MOST;
    const drawn = await Promise.all(
      (inColours ? layered : [{ head: undefined, lane: 0, attention }]).map(async ({ head, lane, attention: one }) =>
        (await one.topKeys(positions, most)).flatMap((entries, at) =>
          (entries ?? [])
            .filter(({ weight }) => weight >= least)
            .map((entry) => ({ row: positions[at], column: entry.at, share: strength(entry.weight), head, lane })),
        ),
      ),
    );
    if (mine !== sights || snapshot !== attention) return;
    lines.draw(drawn.flat().concat(highlighted));
  }

  // How strong a link is: on a log scale too as the weight itself, or all would be thick.
  const strength = (weight) => shareOf(weight, full, "largest");

  let highlighted = []; // links of the position pointed at, which need not be in sight

  async function mark(where) {
    const mine = ++turn;
    const positions = chosenOf(where);
    const [from, to] = ["rows", "columns"].map((side) => [...new Set(positions[side].map((at) => wordAt(side, at)))]);
    if (!from.length && !to.length) {
      highlighted = [];
      lines.mark(null);
      const parts = inColours ? [] : await overviewOf(reader, view, (position) => point(position, true, true));
      if (mine !== turn) return null;
      const hint = element("p.hint", t("arcs.point"));
      aside.replaceChildren(...(parts.length ? [element("div", ...parts)] : []), element("div", hint));
      return drawLinks();
    }
    const snapshot = attention;
    if (inColours) return markHeads(from, to, () => mine === turn && snapshot === attention);
    const isSelf = axes.rows === axes.columns; // one text: a token is both a query and a key
    const isRow = from.length > 0;
    const topKeys = isRow || isSelf ? snapshot.meanTopKeys(isRow ? from : to, MOST) : null;
    const topQueries = to.length || isSelf ? snapshot.summedTopQueries(to.length ? to : from, MOST) : null;
    const share = ({ weight }) => shareOf(weight, full, scale);
    const lists = isRow
      ? await snapshot.topKeys(from, MOST)
      : await Promise.all(to.map((at) => snapshot.topQueries(at, MOST)));
    const first = await (isRow ? topKeys : topQueries);
    if (mine !== turn || snapshot !== attention) return null;
    const shares = new Map((first ?? []).map((entry) => [entry.at, share(entry)]));
    const ends = (one, other) => (isRow ? { row: one, column: other } : { row: other, column: one });
    highlighted = lists.flatMap((entries, at) =>
      (entries ?? []).map((entry) => ({ ...ends((isRow ? from : to)[at], entry.at), share: strength(entry.weight) })),
    );
    lines.mark(isRow ? { rows: from } : { columns: to }, isRow ? { columns: shares } : { rows: shares });
    const isWhole = Math.max(from.length, to.length) < 2 || (await snapshot.isWhole());
    showLists(from, to, isRow ? first : undefined, isRow ? undefined : first, isWhole);
    await drawLinks();
    const second = await (isRow ? topQueries : topKeys);
    if (mine === turn && second !== null) showLists(from, to, isRow ? first : second, isRow ? second : first, isWhole);
    return null;
  }

  // Of each head that is overlaid, where the chosen tokens look most, or who looks most at them.
  async function markHeads(from, to, isCurrent) {
    const isRow = from.length > 0;
    const tops = await Promise.all(
      layered.map(async ({ head, attention: one }) => {
        const entries = isRow ? await one.meanTopKeys(from, 1) : await one.summedTopQueries(to, 1);
        return { head, top: entries?.[0] };
      }),
    );
    if (!isCurrent()) return null;
    highlighted = [];
    const known = tops.filter(({ top }) => top);
    const shares = new Map();
    for (const { top } of known)
      shares.set(top.at, Math.max(shares.get(top.at) ?? 0, shareOf(top.weight, full, scale)));
    lines.mark(isRow ? { rows: from } : { columns: to }, isRow ? { columns: shares } : { rows: shares });
    const [side, other] = isRow ? ["rows", "columns"] : ["columns", "rows"];
    const token = nameOf(tokensOf(side)[(isRow ? from : to)[0]]);
    const items = known.map(({ head, top }) => {
      const name = element("span.named", swatch(head), element("small", `${head + 1} `));
      name.append(tokenLabel(tokensOf(other)[top.at], axes.languages[other]));
      return entryOf([name], shareOf(top.weight, full, scale), top.weight);
    });
    const heading = element("h3", element("small", t(isRow ? "overlay.top" : "overlay.received", { token })));
    aside.replaceChildren(element("div", heading, element("ol", ...items)));
    return drawLinks();
  }

  // Both lists of self-attention; one that is not there yet is undefined.
  function showLists(from, to, topKeys, topQueries, isWhole) {
    const isSelf = axes.rows === axes.columns;
    const lists = listsOf({
      axes: shownAxes(),
      full,
      scale,
      go,
      topKeys,
      topQueries,
      from: isSelf && !from.length ? to : from,
      to: isSelf && !to.length ? from : to,
      note: isWhole ? null : t("picked.stored"),
    });
    aside.replaceChildren(...lists.map((nodes) => element("div", ...nodes)));
  }

  function go(where) {
    lines.reveal(where);
    point(tokenPositions(where), true);
    say(`${tokensOf(where.row === null ? "columns" : "rows")[where.row ?? where.column].text}`);
  }

  async function table() {
    const columns = ["row", "token", "looks at", "token looked at", "weight"];
    const count = Math.min(tokensOf("rows").length, 4096);
    const positions = Array.from({ length: count }, (_, at) => at);
    const rowsOf = async (one, ...more) =>
      (await one.topKeys(positions, MOST)).flatMap((entries, at) =>
        (entries ?? []).map((entry) => [
          ...more,
          at + 1,
          tokensOf("rows")[at].text,
          entry.at + 1,
          tokensOf("columns")[entry.at].text,
          figure(entry.weight),
        ]),
      );
    if (!inColours) return { columns, rows: await rowsOf(attention) };
    const rows = await Promise.all(layered.map(({ head, attention: one }) => rowsOf(one, head + 1)));
    return { columns: ["head", ...columns], rows: rows.flat() };
  }

  return {
    show,
    mark,
    table,
    reveal: ({ row, column }) => lines.reveal({ row: wordAt("rows", row), column: wordAt("columns", column) }),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    picture: () => ({ ...lines.picture(), legend: inColours ? { marks: headMarks(inColours.heads) } : legend.ends() }),
    press: ({ key }) => {
      if (key === "w") merge.click();
      if (key === "o") colours.press();
      return key === "w" || key === "o";
    },
    destroy: lines.destroy,
  };
}

// The words of rows and of columns.
function mergedAxes(example, axes) {
  const of = (axis) => wordsOf(axes[axis], example[axes.sideOf(axis)], axes.languages[axis]);
  const rows = of("rows");
  return { rows, columns: axes.columns === axes.rows ? rows : of("columns") };
}

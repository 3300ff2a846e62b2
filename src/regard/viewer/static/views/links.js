// Arcs: two lines of tokens with the largest links, of any length, merged to words if one likes.

import { element, section } from "../page/dom.js";
import { overviewOf } from "../parts/facts.js";
import { sentences, t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { createLooking, listsOf, offersOf } from "../parts/looking.js";
import { chosenOf, figure, wordsOf } from "../data/maps.js";
import { createLegend, shareOf } from "../page/palette.js";

const SHORT = 64; // tokens up to which all links are drawn
const FAINTEST = 0.01; // weights below are no link
const MOST = 8; // links of a token of a longer text

export const links = {
  id: "arcs",
  picks: true,
  reads: "links",
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
  applies: ({ reader }, example) => reader.kinds(example).length > 0,
  create,
};

function create(host, context) {
  const { reader, point, choose, say } = context;
  const merge = element("input", { type: "checkbox", onchange: () => choose({ words: merge.checked ? "merged" : null }) });
  const says = element("p", { class: "caption" });
  const missing = element("p", { class: "hint", hidden: true });
  const place = element("div", {});
  const aside = element("aside", { class: "readout pair", "aria-label": t("weights") });
  const legend = createLegend();
  const tool = element("label", { class: "switch" }, merge, element("span", {}, t("arcs.merge")));
  host.append(section(t("arcs"), tool, says, missing, place, legend.node), aside);
  const lines = createLines(place, { point: (where, isFirm) => point(where && tokenPlaces(where), isFirm), seen });
  let built = "";
  let view = null;
  let axes = null;
  let merged = null;
  let looking = null;
  let full = 1;
  let scale = "largest";
  let sight = null;
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
    looking = createLooking(reader, view, merged);
    const isKnown = await looking.isKnown();
    full = scale === "one" ? 1 : await looking.largest();
    legend.tell("0", figure(full, 3));
    legend.node.hidden = !isKnown;
    says.textContent = await saying();
    if (isNew) {
      built = key;
      aside.replaceChildren();
      lines.build(shownAxes());
    }
    tellMissing(isKnown);
    lines.find(found());
    if (isNew) lines.reveal({ row: wordAt("rows", state.row ?? null), column: wordAt("columns", state.column ?? null) });
    await drawLinks();
  }

  const tokensOf = (side) => (merged ? merged[side].words : axes[side]);
  const shownAxes = () => ({ ...axes, rows: tokensOf("rows"), columns: tokensOf("columns") });
  const wordAt = (side, at) => (merged && at !== null ? merged[side].wordOf[at] : at);
  const tokenAt = (side, at) => (merged && at !== null ? merged[side].words[at].tokens[0] : at);
  const tokenPlaces = ({ row, column }) => ({ row: tokenAt("rows", row), column: tokenAt("columns", column) });

  function found() {
    const hits = context.hits();
    const columns = hits.columns.length || axes.rows !== axes.columns ? hits.columns : hits.rows;
    return { rows: hits.rows.map((at) => wordAt("rows", at)), columns: columns.map((at) => wordAt("columns", at)) };
  }

  async function saying() {
    const isShort = Math.max(tokensOf("rows").length, tokensOf("columns").length) <= SHORT;
    const isWhole = await looking.isWhole();
    const most = Math.min(MOST, await looking.depth());
    const which = isShort && isWhole ? t("arcs.every", { least: FAINTEST }) : t(most === 1 ? "arcs.one" : "arcs.many", { count: most });
    return sentences(axes.says, which, merged && t("arcs.merged"));
  }

  // Long texts keep links of some heads only: say which, and go there at a click.
  function tellMissing(isKnown) {
    missing.hidden = isKnown;
    if (isKnown) return;
    const { example, kind } = view;
    const layers = reader.layers(example, kind);
    const offers = layers.flatMap((layer) => reader.topHeads(example, kind, layer).filter((head) => head !== "mean").map((head) => ({ layer, head })));
    const count = layers.reduce((sum, layer) => sum + reader.heads(example, kind, layer).length, 0);
    missing.replaceChildren(offers.length ? t("arcs.missing", { kept: offers.length, count }) : t("arcs.missing.all"), ...offersOf(reader, example, offers, choose));
  }

  function seen(next) {
    sight = next;
    drawLinks();
  }

  async function drawLinks() {
    if (!sight || !looking) return;
    const mine = ++sights;
    const asked = looking;
    const count = tokensOf("rows").length;
    const isShort = Math.max(count, tokensOf("columns").length) <= SHORT;
    const [first, last] = isShort ? [0, count - 1] : [sight.rows[0], Math.min(sight.rows[1], count - 1)];
    const places = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
    const lists = await asked.rows(places, isShort ? SHORT : MOST);
    if (mine !== sights || asked !== looking) return;
    lines.draw(
      lists.flatMap((entries, at) =>
        (entries ?? [])
          .filter(({ weight }) => weight >= FAINTEST)
          .map((entry) => ({ row: places[at], column: entry.at, share: strength(entry.weight) })),
      ).concat(lit),
    );
  }

  // How strong a link is: on a log scale too as the weight itself, or all would be thick.
  const strength = (weight) => shareOf(weight, full, "largest");

  let lit = []; // links of the place pointed at, which need not be in sight

  async function mark(where) {
    const mine = ++turn;
    const places = chosenOf(where);
    const [from, to] = ["rows", "columns"].map((side) => [...new Set(places[side].map((at) => wordAt(side, at)))]);
    if (!from.length && !to.length) {
      lit = [];
      lines.mark(null);
      const parts = await overviewOf(reader, view, (place) => point(place, true, true));
      if (mine !== turn) return null;
      const hint = element("p", { class: "hint" }, t("arcs.point"));
      aside.replaceChildren(element("div", {}, ...parts), element("div", {}, hint));
      return drawLinks();
    }
    const asked = looking;
    const isSelf = axes.rows === axes.columns; // one text: a token both looks and is looked at
    const isRow = from.length > 0;
    const looks = isRow || isSelf ? asked.rowsOf(isRow ? from : to, MOST) : null;
    const lookers = to.length || isSelf ? asked.lookersOf(to.length ? to : from, MOST) : null;
    const share = ({ weight }) => shareOf(weight, full, scale);
    const each = isRow ? await asked.rows(from, MOST) : await Promise.all(to.map((at) => asked.lookers(at, MOST)));
    const first = await (isRow ? looks : lookers);
    if (mine !== turn || asked !== looking) return null;
    const shares = new Map((first ?? []).map((entry) => [entry.at, share(entry)]));
    const ends = (one, other) => (isRow ? { row: one, column: other } : { row: other, column: one });
    lit = each.flatMap((entries, at) => (entries ?? []).map((entry) => ({ ...ends((isRow ? from : to)[at], entry.at), share: strength(entry.weight) })));
    lines.mark(isRow ? { rows: from } : { columns: to }, isRow ? { columns: shares } : { rows: shares });
    const isWhole = Math.max(from.length, to.length) < 2 || (await asked.isWhole());
    tell(from, to, isRow ? first : undefined, isRow ? undefined : first, isWhole);
    await drawLinks();
    const second = await (isRow ? lookers : looks);
    if (mine === turn && second !== null) tell(from, to, isRow ? first : second, isRow ? second : first, isWhole);
    return null;
  }

  // Both lists where a text looks at itself; one that is not there yet is undefined.
  function tell(from, to, looks, lookers, isWhole) {
    const isSelf = axes.rows === axes.columns;
    const lists = listsOf({
      axes: shownAxes(), full, scale, go, looks, lookers,
      from: isSelf && !from.length ? to : from, to: isSelf && !to.length ? from : to, note: isWhole ? null : t("picked.kept"),
    });
    aside.replaceChildren(...lists.map((nodes) => element("div", {}, ...nodes)));
  }

  function go(where) {
    lines.reveal(where);
    point(tokenPlaces(where), true);
    say(`${tokensOf(where.row === null ? "columns" : "rows")[where.row ?? where.column].text}`);
  }

  async function table() {
    const columns = ["row", "token", "looks at", "token looked at", "weight"];
    const count = Math.min(tokensOf("rows").length, 4096);
    const lists = await looking.rows(Array.from({ length: count }, (_, at) => at), MOST);
    const rows = lists.flatMap((entries, at) =>
      (entries ?? []).map((entry) => [at + 1, tokensOf("rows")[at].text, entry.at + 1, tokensOf("columns")[entry.at].text, figure(entry.weight)]),
    );
    return { columns, rows };
  }

  return {
    show, mark, table,
    reveal: ({ row, column }) => lines.reveal({ row: wordAt("rows", row), column: wordAt("columns", column) }),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    picture: () => ({ ...lines.picture(), legend: legend.ends() }),
    press: (event) => event.key === "w" && (merge.click(), true),
    destroy: lines.destroy,
  };
}

// The words of rows and of columns.
function mergedAxes(example, axes) {
  const of = (axis) => wordsOf(axes[axis], example[axes.sideOf(axis)], axes.languages[axis]);
  const rows = of("rows");
  return { rows, columns: axes.columns === axes.rows ? rows : of("columns") };
}

// Arcs: two lines of tokens with the largest links, of any length, merged to words if one likes.

import { element, section } from "../page/dom.js";
import { overviewOf } from "../parts/facts.js";
import { sentences, t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { createLooking, listOf } from "../parts/looking.js";
import { figure, wordsOf } from "../data/maps.js";
import { ramp, shareOf } from "../page/palette.js";

const SHORT = 64; // tokens up to which all links are drawn
const FAINTEST = 0.01; // weights below are no link
const MOST = 8; // links of a token of a longer text
const OFFERED = 24; // heads that are named where a view has no links

export const links = {
  id: "arcs",
  reads: "links",
  controls: ["example", "kind", "layer", "head", "scale"],
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
  const most = element("span", {});
  const legend = element("div", { class: "legend" }, element("span", { class: "key" }, "0", ramp(), most));
  const tool = element("label", { class: "switch" }, merge, element("span", {}, t("arcs.merge")));
  host.append(section(t("arcs"), tool, says, missing, place, legend), aside);
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
    view = { example: state.example, kind: state.kind, layer: state.layer, head: state.head };
    axes = reader.axes(view);
    scale = state.scale;
    merge.checked = state.words === "merged";
    const key = `${state.example} ${state.kind} ${merge.checked}`;
    const languages = context.languages(state.example);
    const isNew = built !== key;
    if (isNew) merged = merge.checked ? mergedAxes(reader.exampleAt(state.example), state.kind, axes, languages) : null;
    looking = createLooking(reader, view, merged);
    const isKnown = await looking.isKnown();
    full = scale === "one" ? 1 : await looking.largest();
    most.textContent = figure(full, 3);
    legend.hidden = !isKnown;
    says.textContent = await saying();
    if (isNew) {
      built = key;
      aside.replaceChildren();
      lines.build(
        { tokens: tokensOf("columns"), language: languages[axes.seen], name: t("line.seen", { side: axes.called.columns }) },
        { tokens: tokensOf("rows"), language: languages[axes.looks], name: t("line.looks", { side: axes.called.rows }) },
      );
    }
    tellMissing(isKnown);
    lines.find(found());
    if (isNew) lines.reveal({ row: wordAt("rows", state.row ?? null), column: wordAt("columns", state.column ?? null) });
    await drawLinks();
  }

  const tokensOf = (side) => (merged ? merged[side].words : axes[side]);
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
    const offers = reader.layers(view.example, view.kind).flatMap((layer) =>
      reader.topHeads(view.example, view.kind, layer).filter((head) => head !== "mean").map((head) => ({ layer, head })),
    );
    const buttons = offers.slice(0, OFFERED).map(({ layer, head }) =>
      element("button", { type: "button", onclick: () => choose({ layer, head }) }, reader.viewName(view.example, layer, head)),
    );
    const count = reader.layers(view.example, view.kind).reduce((sum, layer) => sum + reader.heads(view.example, view.kind, layer).length, 0);
    missing.replaceChildren(
      offers.length ? t("arcs.missing", { kept: offers.length, count }) : t("arcs.missing.all"),
      ...buttons.flatMap((button) => [button, " "]),
      offers.length > OFFERED ? t("arcs.others") : "",
    );
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
          .map(({ column, weight }) => ({ row: places[at], column, share: strength(weight) })),
      ).concat(lit),
    );
  }

  // How strong a link is: on a log scale too as the weight itself, or all would be thick.
  const strength = (weight) => shareOf(weight, full, "largest");

  let lit = []; // links of the place pointed at, which need not be in sight

  async function mark({ row, column }) {
    const mine = ++turn;
    const [at, to] = [wordAt("rows", row), wordAt("columns", column)];
    if (at === null && to === null) {
      lit = [];
      lines.mark(null);
      const parts = await overviewOf(reader, view, context.languages(view.example));
      if (mine !== turn) return null;
      const hint = element("p", { class: "hint" }, t("arcs.point"));
      aside.replaceChildren(element("div", {}, ...parts), element("div", {}, hint));
      return drawLinks();
    }
    const asked = looking;
    const isSelf = axes.looks === axes.seen; // one text: a token both looks and is looked at
    const looks = at !== null || isSelf ? asked.rows([at ?? to], MOST).then(([entries]) => entries) : null;
    const lookers = to !== null || isSelf ? asked.lookers(to ?? at, MOST) : null;
    const share = ({ weight }) => shareOf(weight, full, scale);
    const first = await (at !== null ? looks : lookers);
    if (mine !== turn || asked !== looking) return null;
    const end = ({ row: from, column: where }) => (at !== null ? where : from);
    const shares = new Map((first ?? []).map((entry) => [end(entry), share(entry)]));
    lit = (first ?? []).map((entry) => ({ row: at ?? entry.row, column: at === null ? to : entry.column, share: strength(entry.weight) }));
    lines.mark({ row: at, column: at === null ? to : null }, at !== null ? { columns: shares } : { rows: shares });
    tell(at, to, at !== null ? first : undefined, at === null ? first : undefined);
    await drawLinks();
    const second = await (at !== null ? lookers : looks);
    if (mine === turn && second !== null) tell(at, to, at !== null ? first : second, at === null ? first : second);
    return null;
  }

  // Both lists where a text looks at itself; one that is not there yet is undefined.
  function tell(at, to, looks, lookers) {
    const languages = context.languages(view.example);
    const common = { full, scale };
    const isSelf = axes.looks === axes.seen;
    const parts = [];
    if (looks !== undefined && (at !== null || isSelf)) {
      parts.push(listOf({
        ...common, token: tokensOf("rows")[at ?? to], language: languages[axes.looks], verb: t("looks-at"),
        entries: looks?.map((entry) => ({ at: entry.column, weight: entry.weight })), tokens: tokensOf("columns"), other: languages[axes.seen],
        go: (column) => go({ row: null, column }),
      }));
    }
    if (lookers !== undefined && (to !== null || isSelf)) {
      parts.push(listOf({
        ...common, token: tokensOf("columns")[to ?? at], language: languages[axes.seen], verb: t("looked-at-by"),
        entries: lookers?.map((entry) => ({ at: entry.row, weight: entry.weight })), tokens: tokensOf("rows"), other: languages[axes.looks],
        go: (row) => go({ row, column: null }),
        note: lookers ? null : t("arcs.unknown"),
      }));
    }
    aside.replaceChildren(...parts.map((nodes) => element("div", {}, ...nodes)));
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
      (entries ?? []).map(({ column, weight }) => [at + 1, tokensOf("rows")[at].text, column + 1, tokensOf("columns")[column].text, figure(weight)]),
    );
    return { columns, rows };
  }

  return {
    show, mark, table,
    reveal: ({ row, column }) => lines.reveal({ row: wordAt("rows", row), column: wordAt("columns", column) }),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    picture: () => ({ ...lines.picture(), legend: { least: "0", most: figure(full, 3) } }),
    press: (event) => event.key === "w" && (merge.click(), true),
    destroy: () => {
      lines.destroy();
      host.replaceChildren();
    },
  };
}

/** The words of the rows and of the columns of a kind of attention. */
export function mergedAxes(example, kind, axes, languages) {
  const textOf = (side) => (side === "source" ? example.source : example.output);
  const of = (tokens, side) => wordsOf(tokens, textOf(side), languages[side]);
  const rows = of(axes.rows, axes.looks);
  return { rows, columns: axes.columns === axes.rows ? rows : of(axes.columns, axes.seen) };
}

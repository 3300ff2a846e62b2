// In words: what a head looks for and what it then does to the logits, and the strongest neurons of a text.

import { choice, element, headOf, rowOf, section, shadeBy } from "../page/dom.js";
import { t } from "../page/language.js";
import { figure, isOfHead, mostOf, nameOf, signed } from "../data/maps.js";

const LISTED = 24; // neurons
const OFFERED = 40; // tokens whose neurons are offered
const OWN = "*"; // stands for all layers, or all tokens

/** @typedef {{title: string, columns: string[], rows: [string, (number | null)[]][]}} Grid */

const named = (text) => nameOf({ text });

/** Which of what heads have is chosen, by its number or else by the head of a view; or the first. */
export function chosenAt(ones, number, view) {
  return ones[number]
    ? Number(number)
    : Math.max(
        0,
        ones.findIndex((one) => isOfHead(one, view)),
      );
}

/**
 * The circuits of one of some heads, the table that a picture has of them, and lines of a CSV file.
 *
 * @param {{circuits: any[], view: import("../views/views.js").State, choose: (changes: any) => void}} given
 * @param {{nameOfHead: (one: any) => string, tableOf: (grid: Grid, full: number, corner: string[]) => Node}} drawn
 */
export function circuitSection({ circuits, view, choose }, { nameOfHead, tableOf }) {
  const at = chosenAt(circuits, view.circuit, view);
  const one = circuits[at];
  const head = nameOfHead(one);
  /** @type {Grid} */
  const grid = {
    title: t("circuits.text"),
    columns: one.keys.map(named),
    rows: one.queries.map((token, row) => [named(token), one.scores[row]]),
  };
  if (one.key_scores?.length) grid.rows.push([t("circuits.bias"), one.key_scores]);
  const full = mostOf(grid.rows.flatMap(([, values]) => values.map((value) => Math.abs(value ?? 0))));
  const lines = [
    ...linesOf("promotes", head, one.keys, one.promoted),
    ...linesOf("suppresses", head, one.keys, one.suppressed),
    ...linesOf("likes", head, one.queries, one.liked),
    ...one.queries.flatMap((token, row) =>
      one.keys.map((key, column) => ["content score", head, token, key, one.scores[row][column]]),
    ),
  ];
  const offered = circuits.map((each, n) => [String(n), nameOfHead(each)]);
  const liked = one.queries.map((token, row) => [named(token), wordsOf(one.liked?.[row])]);
  const sides = [t("neurons.query"), t("neurons.key")];
  const node = section(
    t("circuits"),
    element("p.caption", t("circuits.caption")),
    choice("stream", "circuit", t("group.head"), offered, String(at), choose),
    typeof one.copying === "number" && element("p.made", t("circuits.copying", { score: signed(one.copying, 2) })),
    element("h3", t("circuits.value")),
    one.promoted?.length ? valueTable(one) : element("p.hint", t("circuits.value.none")),
    element("h3", t("circuits.query")),
    one.liked?.length ? wordTable([sides[0], t("circuits.likes")], liked) : element("p.hint", t("circuits.more")),
    element("p.caption", t("circuits.text.says")),
    element("div.frame", tableOf(grid, full, sides)),
  );
  return { node, grid, lines };
}

function valueTable({ keys, promoted, suppressed, own = [] }) {
  const names = [
    t("neurons.key"),
    t("circuits.raises"),
    t("circuits.lowers"),
    ...(own.length ? [t("circuits.own")] : []),
  ];
  return wordTable(
    names,
    keys.map((token, row) =>
      [named(token), wordsOf(promoted[row]), wordsOf(suppressed[row])].concat(own.length ? ownOf(own[row]) : []),
    ),
  );
}

const ownOf = ([value, rank]) =>
  element("span", `${signed(value, 2)} `, element("small.count", t("circuits.rank", { rank: rank + 1 })));

/**
 * The strongest neurons of a text, of all layers and tokens or of some.
 *
 * @param {{neurons: any[], view: import("../views/views.js").State, choose: (changes: any) => void}} given
 */
export function neuronSection({ neurons, view, choose }) {
  const kinds = [...new Set(neurons.map(({ kind }) => kind))];
  const keyOf = ({ kind, layer }) => `${kind}.${layer}`;
  const layerName = ({ kind, layer }) => (kinds.length > 1 ? `${t(`kind.${kind}`)} ${layer + 1}` : String(layer + 1));
  const byOrder = neurons.toSorted((a, b) => a.kind.localeCompare(b.kind) * -1 || a.layer - b.layer);
  const layers = new Map(byOrder.map((one) => [keyOf(one), layerName(one)]));
  const layer = layers.has(view.ffn) ? view.ffn : OWN;
  const ofLayer = neurons.filter((one) => layer === OWN || keyOf(one) === layer);
  const placed = ofLayer.toSorted((a, b) => a.position - b.position);
  const tokens = new Map(placed.map((one) => [String(one.position), named(one.token)]));
  const isOneText = kinds.length < 2 || layer !== OWN; // a position is that of one token
  const token = isOneText && tokens.has(view.neuron) ? view.neuron : OWN;
  const chosen = ofLayer.filter((one) => token === OWN || String(one.position) === token).slice(0, LISTED);
  const hasWords = chosen.some(({ promoted = [] }) => promoted.length);
  const all = [OWN, t("all")];
  const isOffered = tokens.size > 1 && tokens.size <= OFFERED && isOneText;
  const columns = [
    "group.layer",
    "feed-forward.token",
    "feed-forward.number",
    "feed-forward.activation",
    "feed-forward.size",
  ];
  const node = section(
    t("feed-forward"),
    element("p.caption", t("feed-forward.caption")),
    choice("stream", "ffn", t("group.layer"), [all, ...layers], layer, choose),
    isOffered && choice("stream", "neuron", t("feed-forward.token"), [all, ...tokens], token, choose),
    wordTable(
      [...columns, ...(hasWords ? ["circuits.raises", "circuits.lowers"] : [])].map((key) => t(key)),
      chosen.map((one) => [
        layerName(one),
        named(one.token),
        String(one.number),
        signed(one.activation, 2),
        figure(one.size, 3),
        ...(hasWords ? [wordsOf(one.promoted), wordsOf(one.suppressed)] : []),
      ]),
    ),
    !hasWords && element("p.hint", t("feed-forward.wordless")),
  );
  const lines = neurons.flatMap((one) => {
    const name = `${one.kind} layer ${one.layer} neuron ${one.number} at ${one.position}`;
    return [
      ["neuron", name, one.token, "size", one.size],
      ...linesOf("neuron raises", name, [one.token], [one.promoted ?? []]),
      ...linesOf("neuron lowers", name, [one.token], [one.suppressed ?? []]),
    ];
  });
  return { node, lines };
}

const linesOf = (what, name, tokens, lists = []) =>
  lists.flatMap((pairs, row) => pairs.map(([word, value]) => [what, name, tokens[row], word, value]));

/** Words with their numbers, as strong as these. */
function wordsOf(pairs = []) {
  const full = mostOf(pairs.map(([, value]) => Math.abs(value))) || 1;
  const words = pairs.map(([word, value]) => {
    const node = element("span.effect", { title: signed(value, 3) }, element("bdi", named(word)));
    shadeBy(node, value / full);
    return node;
  });
  return element("span.effects", ...words);
}

/** @param {string[]} names @param {(string | Node)[][]} rows */
function wordTable(names, rows) {
  const lines = rows.map(([first, ...cells]) => rowOf(first, cells));
  return element("div.frame", element("table.worded", headOf(names), element("tbody", ...lines)));
}

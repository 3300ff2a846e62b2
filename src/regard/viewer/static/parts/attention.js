// The largest weights of queries and of keys in one view of a document, as far as the document or its source knows: whole
// rows of short texts, the largest weights of long ones. Tokens may be merged to words.

import { button, element, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { entriesOf, entriesOfWord, figure, largestOf, meanOver, receivedByWords } from "../data/maps.js";
import { shareOf } from "../page/palette.js";

/** @typedef {{at: number, weight: number}} Entry a position and the weight it gives or receives */

const SAMPLE = 256; // rows that are sampled for the largest weight
const NAMED = 6; // tokens in a heading
const OFFERED = 24; // heads that are named where a view lacks something
const SEVERAL = { "looks-at": "looks-at.several", "looked-at-by": "looked-at-by.several" };
const AT_ONCE = 4096; // rows between which the page may do other things

/**
 * `view` is a view of the reader; `merged` is null, or `{rows, columns}` as `wordsOf` gives them.
 *
 * - `isAvailable()`: whether there is anything at all, a promise.
 * - `topKeys(positions, most)`: for each position its largest entries `[{at, weight}]`, falling, or null.
 * - `topQueries(position, most)`: the largest weights of a column.
 * - `meanTopKeys(positions, most)`, `summedTopQueries(positions, most)`: of several together, their mean and their sum.
 * - `largest()`: the weight that the deepest colour stands for.
 * - `depth()`: how many entries of a token are known at most.
 * - `isWhole()`: whether the entries are picked from whole rows, or from those that were stored.
 */
export function createAttention(reader, view, merged = null) {
  const { rows: queries } = reader.axes(view);
  const count = merged ? merged.rows.words.length : queries.length;
  const entryCache = new Map(); // entries by position
  /** @type {{whole?: Promise<any>, inverse?: Promise<any>, deepest?: Promise<number>}} */
  const cache = {}; // promises: `whole` of all rows, where they can be had; `inverse` of the top queries of every key; `deepest`

  const tokensOf = (position) => (merged ? merged.rows.words[position].tokens : [position]);

  function wholeMap() {
    cache.whole ??= reader.map(view).then((map) => {
      if (!map || !merged) return map?.weights ?? null;
      const { wordOf, words } = merged.columns;
      const meanOf = (tokens) => meanOver(tokens.map((at) => map.weights[at]));
      return merged.rows.words.map(({ tokens }) => receivedByWords(meanOf(tokens), wordOf, words.length));
    });
    return cache.whole;
  }

  const isWhole = async () => (await wholeMap()) !== null;

  async function isAvailable() {
    return count > 0 && ((await isWhole()) || (await topKeys([0], 1))[0] !== null);
  }

  async function topKeys(positions, most = 8) {
    const all = await wholeMap();
    if (all) return positions.map((position) => largestOf(all[position], most));
    const missing = positions.filter((position) => !entryCache.has(position));
    const tokens = missing.flatMap(tokensOf);
    const tokenTops = await Promise.all(tokens.map((token) => reader.storedTop(view, token, 99)));
    if (tokenTops.some((top) => top === null)) {
      const fetched = await reader.rows(view, tokens);
      fetched?.forEach((row, at) => (tokenTops[at] = { entries: largestOf(row, 32) }));
    }
    let from = 0;
    for (const position of missing) {
      const tops = tokenTops.slice(from, from + tokensOf(position).length);
      from += tops.length;
      if (tops.every(Boolean)) entryCache.set(position, joined(tops.map((top) => top.entries)));
    }
    return positions.map((position) => entryCache.get(position)?.slice(0, most) ?? null);
  }

  const joined = (lists) => (merged ? entriesOfWord(lists, merged.columns.wordOf) : lists[0]);

  async function topQueries(position, most = 8) {
    const all = await wholeMap();
    const column = all?.map((row) => row[position]);
    if (column) return largestOf(column, most);
    cache.inverse ??= inverted();
    const inverse = await cache.inverse;
    return inverse && (inverse.get(position) ?? []).slice(0, most);
  }

  const meanTopKeys = async (positions, most) =>
    positions.length === 1
      ? (await topKeys(positions, most))[0]
      : summedEntries(await topKeys(positions, Infinity), positions.length, most);

  const summedTopQueries = async (positions, most) =>
    positions.length === 1
      ? topQueries(positions[0], most)
      : summedEntries(await Promise.all(positions.map((position) => topQueries(position, Infinity))), 1, most);

  async function inverted() {
    if (!(await reader.storedTop(view, 0, 1))) return null; // a source would have to give every row
    const inverse = new Map();
    for (let from = 0; from < count; from += AT_ONCE) {
      const positions = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => from + at);
      const lists = await topKeys(positions, 99);
      lists.forEach((entries, at) => {
        for (const { at: column, weight } of entries ?? []) {
          if (!inverse.has(column)) inverse.set(column, []);
          inverse.get(column).push({ at: from + at, weight });
        }
      });
      await new Promise((done) => setTimeout(done));
    }
    for (const entries of inverse.values()) entries.sort((a, b) => b.weight - a.weight);
    return inverse;
  }

  const largest = () => (cache.deepest ??= measure());

  async function measure() {
    const step = Math.max(1, Math.floor(count / SAMPLE));
    const positions = Array.from({ length: Math.min(count, SAMPLE) }, (_, at) => at * step);
    const lists = await topKeys((await isWhole()) ? Array.from({ length: count }, (_, at) => at) : positions, 1);
    return lists.reduce((most, entries) => Math.max(most, entries?.[0]?.weight ?? 0), 0);
  }

  const depth = async () =>
    (await isWhole()) || reader.holdsRows(view) ? Infinity : reader.storedCount(view) || Infinity;

  return { isAvailable, isWhole, depth, topKeys, topQueries, meanTopKeys, summedTopQueries, largest };
}

// The sums of entries, over a number, falling.
function summedEntries(lists, by, most) {
  if (!lists.every(Boolean)) return null;
  const sums = new Map();
  for (const { at, weight } of lists.flat()) sums.set(at, (sums.get(at) ?? 0) + weight / by);
  return entriesOf(sums).slice(0, most);
}

// The heading of a list: tokens, the number of one, and what they do, "looks-at" or "looked-at-by".
function headingOf(tokens, language, verb, number) {
  const names = tokens.slice(0, NAMED).flatMap((token, at) => [at ? t("list.comma") : "", tokenLabel(token, language)]);
  const more = tokens.length > NAMED ? [t("list.comma"), t("and-more", { count: tokens.length - NAMED })] : [];
  const verbPhrase = t(tokens.length > 1 ? SEVERAL[verb] : verb);
  return element("h3", ...names, ...more, element("small", number ? ` ${number} ${verbPhrase}` : ` ${verbPhrase}`));
}

/**
 * An entry of a list: nodes, a bar as long as a share, and a weight.
 *
 * @param {Node[]} nodes
 * @param {number} share
 * @param {number} weight
 * @param {{digits?: number, [attribute: string]: any}} options
 */
export function entryOf(nodes, share, weight, { digits = 3, ...attributes } = {}) {
  const bar = element("i", { "aria-hidden": "true" });
  weigh(bar, share);
  return element("li", attributes, ...nodes, bar, element("data", { value: weight }, figure(weight, digits)));
}

/**
 * Lists the top keys of the tokens at the positions `from`, and the top queries of those at `to`: a list for each, as nodes.
 *
 * - `topKeys` and `topQueries` are entries `[{at, weight}]`; null where they are not known, undefined for no list.
 * - `axes` are those of a view, with its `rows` and `columns` (of words, where tokens are merged).
 * - `go(position)` is called with `{row, column}` when an entry is chosen; `note` stands below each list, `number` in its
 *   heading, and `missing` instead of a list that is not known.
 *
 * @param {{axes: any, from: number[], to: number[], go: (position: any) => void, topKeys?: Entry[] | null,
 *   topQueries?: Entry[] | null, full?: number, scale?: string, marked?: number[], note?: string | false | null,
 *   number?: number, missing?: string}} lists
 * @returns {Node[][]}
 */
export function listsOf({ axes, from, to, topKeys, topQueries, go, ...common }) {
  const rows = { tokens: axes.rows, language: axes.languages.rows };
  const columns = { tokens: axes.columns, language: axes.languages.columns };
  const ofKeys = { subject: rows, positions: from, verb: "looks-at", objects: columns, entries: topKeys };
  const ofQueries = { subject: columns, positions: to, verb: "looked-at-by", objects: rows, entries: topQueries };
  return [
    { ...common, ...ofKeys, go: (column) => go({ row: null, column }) },
    { ...common, ...ofQueries, go: (row) => go({ row, column: null }), missing: t("arcs.unknown") },
  ].flatMap((list) => (list.positions.length && list.entries !== undefined ? [listOf(list)] : []));
}

/** @param {Record<string, any>} list */
function listOf({ subject, positions, verb, objects, entries, go, note, number, missing, ...common }) {
  const tokens = positions.map((at) => subject.tokens[at]);
  const head = headingOf(tokens, subject.language, verb, number);
  if (!entries?.length) return [head, element("p.hint", entries ? t("nothing") : (missing ?? t("list.missing")))];
  return [head, entryList(objects, entries, go, common), ...(note ? [element("p.hint", note)] : [])];
}

/**
 * Entries of a line of tokens, each a button for `go(at)`; those at `marked` are brought out.
 *
 * @param {{tokens: any[], language: string}} line
 * @param {Entry[]} entries
 * @param {(at: number) => void} go
 * @param {{full?: number, scale?: string, marked?: number[]}} options
 */
export function entryList({ tokens, language }, entries, go, { full, scale, marked = [] }) {
  const isLong = tokens.length > 60; // words occur again: say which one
  const items = entries.map(({ at, weight }) => {
    const number = isLong ? element("small", ` ${(at + 1).toLocaleString("en")}`) : "";
    const [title, label] = [t("list.go", { number: at + 1 }), tokenLabel(tokens[at], language)];
    const name = button([label, number], () => go(at), { class: "plain", title });
    return entryOf([name], shareOf(weight, full, scale), weight, { class: marked.includes(at) ? "marked" : null });
  });
  return element("ol", { class: isLong ? "numbered" : null }, ...items);
}

/** Buttons for views that have what this one lacks, at most so many: `views` are `{layer, head}`. */
export function offersOf(reader, example, views, choose) {
  const offers = views
    .slice(0, OFFERED)
    .map(({ layer, head }) => [" ", button(reader.viewName(example, layer, head), () => choose({ layer, head }))]);
  return [...offers, views.length > OFFERED ? [" ", t("arcs.others")] : []].flat();
}

/** The tokens of a query and a key, as nodes. */
export const pairOf = ({ rows, columns, languages }, row, column) => [
  tokenLabel(rows[row], languages.rows),
  " → ",
  tokenLabel(columns[column], languages.columns),
];

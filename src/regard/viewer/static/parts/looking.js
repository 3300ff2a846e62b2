// Who looks at whom in one view of a document, as far as the document or its source knows: whole
// rows of short texts, the largest weights of long ones. Tokens may be merged to words.

import { element, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { entriesOf, entriesOfWord, figure, largestOf, meanOver, receivedByWords } from "../data/maps.js";
import { shareOf } from "../page/palette.js";

const SAMPLE = 256; // rows asked for how large weights are
const NAMED = 6; // tokens in a heading
const OFFERED = 24; // heads that are named where a view lacks something
const SEVERAL = { "looks-at": "looks-at.several", "looked-at-by": "looked-at-by.several" };
const AT_ONCE = 4096; // rows between which the page may do other things

/**
 * `view` is a view of the reader; `merged` is null, or `{rows, columns}` as `wordsOf` gives them.
 *
 * - `isKnown()`: whether there is anything at all, a promise.
 * - `rows(places, most)`: for each place its largest entries `[{at, weight}]`, falling, or null.
 * - `lookers(place, most)`: the same of a column: who looks at it.
 * - `rowsOf(places, most)`, `lookersOf(places, most)`: of several together, their mean and their sum.
 * - `largest()`: the weight that the deepest colour stands for.
 * - `depth()`: how many entries of a token are known at most.
 * - `isWhole()`: whether the entries are picked from whole rows, or from those that were kept.
 */
export function createLooking(reader, view, merged = null) {
  const { rows: queries } = reader.axes(view);
  const count = merged ? merged.rows.words.length : queries.length;
  const kept = new Map(); // entries by place
  const made = {}; // promises: `whole` of all rows, where they can be had; `inverse` of who looks at every column; `deepest`

  const tokensOf = (place) => (merged ? merged.rows.words[place].tokens : [place]);

  function wholeMap() {
    made.whole ??= reader.map(view).then((map) => {
      if (!map || !merged) return map?.weights ?? null;
      return merged.rows.words.map(({ tokens }) =>
        receivedByWords(meanOver(tokens.map((at) => map.weights[at])), merged.columns.wordOf, merged.columns.words.length),
      );
    });
    return made.whole;
  }

  const isWhole = async () => (await wholeMap()) !== null;

  async function isKnown() {
    return count > 0 && ((await isWhole()) || (await rows([0], 1))[0] !== null);
  }

  async function rows(places, most = 8) {
    const all = await wholeMap();
    if (all) return places.map((place) => largestOf(all[place], most));
    const missing = places.filter((place) => !kept.has(place));
    const wanted = missing.flatMap(tokensOf);
    const found = await Promise.all(wanted.map((token) => reader.keptTop(view, token, 99)));
    if (found.some((top) => top === null)) {
      const asked = await reader.rows(view, wanted);
      asked?.forEach((row, at) => (found[at] = { entries: largestOf(row, 32) }));
    }
    let from = 0;
    for (const place of missing) {
      const tops = found.slice(from, (from += tokensOf(place).length));
      if (tops.every(Boolean)) kept.set(place, joined(tops.map((top) => top.entries)));
    }
    return places.map((place) => kept.get(place)?.slice(0, most) ?? null);
  }

  const joined = (lists) => (merged ? entriesOfWord(lists, merged.columns.wordOf) : lists[0]);

  async function lookers(place, most = 8) {
    const all = await wholeMap();
    if (all) return largestOf(all.map((row) => row[place]), most);
    made.inverse ??= inverted();
    const found = await made.inverse;
    return found && (found.get(place) ?? []).slice(0, most);
  }

  const rowsOf = async (places, most) =>
    places.length === 1 ? (await rows(places, most))[0] : together(await rows(places, Infinity), places.length, most);

  const lookersOf = async (places, most) =>
    places.length === 1 ? lookers(places[0], most) : together(await Promise.all(places.map((place) => lookers(place, Infinity))), 1, most);

  async function inverted() {
    if (!(await reader.keptTop(view, 0, 1))) return null; // a source would have to give every row
    const found = new Map();
    for (let from = 0; from < count; from += AT_ONCE) {
      const places = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => from + at);
      const lists = await rows(places, 99);
      lists.forEach((entries, at) => {
        for (const { at: column, weight } of entries ?? []) {
          if (!found.has(column)) found.set(column, []);
          found.get(column).push({ at: from + at, weight });
        }
      });
      await new Promise((done) => setTimeout(done));
    }
    for (const entries of found.values()) entries.sort((a, b) => b.weight - a.weight);
    return found;
  }

  const largest = () => (made.deepest ??= measure());

  async function measure() {
    const step = Math.max(1, Math.floor(count / SAMPLE));
    const places = Array.from({ length: Math.min(count, SAMPLE) }, (_, at) => at * step);
    const lists = await rows((await isWhole()) ? Array.from({ length: count }, (_, at) => at) : places, 1);
    return lists.reduce((most, entries) => Math.max(most, entries?.[0]?.weight ?? 0), 0);
  }

  const depth = async () => ((await isWhole()) || reader.holdsRows(view) ? Infinity : reader.keptOf(view) || Infinity);

  return { isKnown, isWhole, depth, rows, lookers, rowsOf, lookersOf, largest };
}

// The sums of entries, over a number, falling.
function together(lists, by, most) {
  if (!lists.every(Boolean)) return null;
  const sums = new Map();
  for (const { at, weight } of lists.flat()) sums.set(at, (sums.get(at) ?? 0) + weight / by);
  return entriesOf(sums).slice(0, most);
}

// The heading of a list: tokens, the number of one, and what they do, "looks-at" or "looked-at-by".
function headingOf(tokens, language, verb, number) {
  const names = tokens.slice(0, NAMED).flatMap((token, at) => [at ? t("list.comma") : "", tokenLabel(token, language)]);
  const more = tokens.length > NAMED ? [t("list.comma"), t("and-more", { count: tokens.length - NAMED })] : [];
  const does = t(tokens.length > 1 ? SEVERAL[verb] : verb);
  return element("h3", {}, ...names, ...more, element("small", {}, number ? ` ${number} ${does}` : ` ${does}`));
}

/** An entry of a list: nodes, a bar as long as a share, and a weight. */
export function entryOf(nodes, share, weight, { digits = 3, ...attributes } = {}) {
  const bar = element("i", { "aria-hidden": "true" });
  weigh(bar, share);
  return element("li", attributes, ...nodes, bar, element("data", { value: weight }, figure(weight, digits)));
}

/**
 * Where the tokens at the places `from` look, and who looks at those at `to`: a list for each, as nodes.
 *
 * - `looks` and `lookers` are entries `[{at, weight}]`; null where they are not known, undefined for no list.
 * - `axes` are those of a view, with its `rows` and `columns` (of words, where tokens are merged).
 * - `go(place)` is called with `{row, column}` when an entry is chosen; `note` stands below each list, `number` in its
 *   heading, and `missing` in place of a list that is not known.
 */
export function listsOf({ axes, from, to, looks, lookers, go, ...common }) {
  const rows = { tokens: axes.rows, language: axes.languages.rows };
  const columns = { tokens: axes.columns, language: axes.languages.columns };
  const isAsked = (places, entries) => places.length > 0 && entries !== undefined;
  return [
    ...(isAsked(from, looks) ? [listOf(rows, from, "looks-at", columns, looks, (column) => go({ row: null, column }), common)] : []),
    ...(isAsked(to, lookers) ? [listOf(columns, to, "looked-at-by", rows, lookers, (row) => go({ row, column: null }), { ...common, missing: t("arcs.unknown") })] : []),
  ];
}

function listOf(own, places, verb, other, entries, go, { note, number, missing = t("list.missing"), ...common }) {
  const head = headingOf(places.map((at) => own.tokens[at]), own.language, verb, number);
  if (!entries?.length) return [head, element("p", { class: "hint" }, entries ? t("nothing") : missing)];
  return [head, entryList(other, entries, go, common), ...(note ? [element("p", { class: "hint" }, note)] : [])];
}

/** Entries of a line of tokens, each a button for `go(at)`; those at `marked` are brought out. */
export function entryList({ tokens, language }, entries, go, { full, scale, marked = [] }) {
  const isLong = tokens.length > 60; // words occur again: say which one
  const items = entries.map(({ at, weight }) => {
    const number = isLong ? element("small", {}, ` ${(at + 1).toLocaleString("en")}`) : "";
    const name = element("button", { type: "button", class: "plain", title: t("list.go", { number: at + 1 }), onclick: () => go(at) }, tokenLabel(tokens[at], language), number);
    return entryOf([name], shareOf(weight, full, scale), weight, { class: marked.includes(at) ? "marked" : null });
  });
  return element("ol", { class: isLong ? "numbered" : null }, ...items);
}

/** Buttons for views that have what this one lacks, at most so many: `views` are `{layer, head}`. */
export function offersOf(reader, example, views, choose) {
  return views.slice(0, OFFERED).flatMap(({ layer, head }) => [
    " ", element("button", { type: "button", onclick: () => choose({ layer, head }) }, reader.viewName(example, layer, head)),
  ]).concat(views.length > OFFERED ? [" ", t("arcs.others")] : []);
}

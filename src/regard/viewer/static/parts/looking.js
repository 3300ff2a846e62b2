// Who looks at whom in one view of a document, as far as the document or its source knows: whole
// rows of short texts, the largest weights of long ones. Tokens may be merged to words.

import { element, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { entriesOfWord, figure, largestOf, meanRow, nameOf, receivedByWords } from "../data/maps.js";
import { shareOf } from "../page/palette.js";

const SAMPLE = 256; // rows asked for how large weights are
const NAMED = 6; // tokens in a heading
const SEVERAL = { "looks-at": "looks-at.several", "looked-at-by": "looked-at-by.several" };
const AT_ONCE = 4096; // rows between which the page may do other things

/**
 * `view` is a view of the reader; `merged` is null, or `{rows, columns}` as `wordsOf` gives them.
 *
 * - `isKnown()`: whether there is anything at all, a promise.
 * - `rows(places, most)`: for each place its largest entries `[{column, weight}]`, falling, or null.
 * - `lookers(place, most)`: the largest `[{row, weight}]` of a column, or null.
 * - `rowsOf(places, most)`, `lookersOf(places, most)`: of several together, their mean and their sum.
 * - `largest()`: the weight that the deepest colour stands for.
 * - `depth()`: how many entries of a token are known at most.
 * - `isWhole()`: whether the entries are picked from whole rows, or from those that were kept.
 */
export function createLooking(reader, view, merged = null) {
  const { rows: queries } = reader.axes(view);
  const count = merged ? merged.rows.words.length : queries.length;
  const kept = new Map(); // entries by place
  let whole = null; // a promise of all rows, where they can be had
  let inverse = null; // a promise of who looks at every column
  let deepest = null;

  const tokensOf = (place) => (merged ? merged.rows.words[place].tokens : [place]);

  function wholeMap() {
    whole ??= reader.map(view).then((map) => {
      if (!map || !merged) return map?.weights ?? null;
      return merged.rows.words.map(({ tokens }) =>
        receivedByWords(meanRow(tokens.map((at) => map.weights[at])), merged.columns.wordOf, merged.columns.words.length),
      );
    });
    return whole;
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
    if (all) return named(largestOf(all.map((row) => row[place]), most));
    inverse ??= inverted();
    const found = (await inverse)?.get(place);
    return found === undefined ? (await inverse) && [] : found.slice(0, most);
  }

  const rowsOf = async (places, most) =>
    places.length === 1 ? (await rows(places, most))[0] : together(await rows(places, Infinity), "column", places.length, most);

  const lookersOf = async (places, most) =>
    places.length === 1 ? lookers(places[0], most) : together(await Promise.all(places.map((place) => lookers(place, Infinity))), "row", 1, most);

  const named = (entries) => entries.map(({ column, weight }) => ({ row: column, weight }));

  async function inverted() {
    if (!(await reader.keptTop(view, 0, 1))) return null; // a source would have to give every row
    const found = new Map();
    for (let from = 0; from < count; from += AT_ONCE) {
      const places = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => from + at);
      const lists = await rows(places, 99);
      lists.forEach((entries, at) => {
        for (const { column, weight } of entries ?? []) {
          if (!found.has(column)) found.set(column, []);
          found.get(column).push({ row: from + at, weight });
        }
      });
      await new Promise((done) => setTimeout(done));
    }
    for (const entries of found.values()) entries.sort((a, b) => b.weight - a.weight);
    return found;
  }

  function largest() {
    deepest ??= measure();
    return deepest;
  }

  async function measure() {
    const step = Math.max(1, Math.floor(count / SAMPLE));
    const places = Array.from({ length: Math.min(count, SAMPLE) }, (_, at) => at * step);
    const lists = (await isWhole()) ? await rows(Array.from({ length: count }, (_, at) => at), 1) : await rows(places, 1);
    return lists.reduce((most, entries) => Math.max(most, entries?.[0]?.weight ?? 0), 0);
  }

  const depth = async () => ((await isWhole()) || reader.holdsRows(view) ? Infinity : reader.keptOf(view) || Infinity);

  return { isKnown, isWhole, depth, rows, lookers, rowsOf, lookersOf, largest };
}

// The sums of entries at one end, over a number, falling.
function together(lists, end, by, most) {
  if (!lists.every(Boolean)) return null;
  const sums = new Map();
  for (const entry of lists.flat()) sums.set(entry[end], (sums.get(entry[end]) ?? 0) + entry.weight / by);
  return [...sums].map(([at, weight]) => ({ [end]: at, weight })).sort((a, b) => b.weight - a.weight).slice(0, most);
}

/** The heading of a list: tokens, and what they do, "looks-at" or "looked-at-by". */
export function headingOf(tokens, language, verb) {
  const names = tokens.slice(0, NAMED).flatMap((token, at) => [at ? t("list.comma") : "", tokenLabel(token, language)]);
  const more = tokens.length > NAMED ? [t("list.comma"), t("and-more", { count: tokens.length - NAMED })] : [];
  return element("h3", {}, ...names, ...more, element("small", {}, ` ${t(tokens.length > 1 ? SEVERAL[verb] : verb)}`));
}

/**
 * The nodes of one list: a heading and the entries `[{at, weight}]`, or why there are none.
 *
 * `of` are the tokens of the heading, in `language`, before `verb`; `tokens` and `other` are those of
 * the entries; `go(at)` is called when one is chosen; `note` stands below.
 */
export function listOf({ of, language, verb, entries, tokens, other, full, scale, go, note }) {
  const head = headingOf(of, language, verb);
  if (!entries) return [head, element("p", { class: "hint" }, note ?? t("list.missing"))];
  if (!entries.length) return [head, element("p", { class: "hint" }, t("list.nothing"))];
  const isLong = tokens.length > 60; // words occur again: say which one
  const items = entries.map(({ at, weight }) => {
    const bar = element("i", { "aria-hidden": "true" });
    weigh(bar, shareOf(weight, full, scale));
    const name = element("button", { type: "button", class: "plain", title: t("list.go", { number: at + 1 }), onclick: () => go(at) }, tokenLabel(tokens[at], other));
    if (isLong) name.append(element("small", {}, ` ${(at + 1).toLocaleString("en")}`));
    return element(
      "li",
      {},
      name,
      bar,
      element("data", { value: weight, "aria-label": t("token.weight", { token: nameOf(tokens[at]), weight: figure(weight) }) }, figure(weight, 3)),
    );
  });
  return [head, element("ol", { class: isLong ? "numbered" : null }, ...items), ...(note ? [element("p", { class: "hint" }, note)] : [])];
}

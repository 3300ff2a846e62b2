// Kinds of attention, and figures of rows of weights.

import { t } from "../page/language.js";

const SIDES = {
  cross: { querySide: "output", keySide: "source" },
  encoder: { querySide: "source", keySide: "source" },
  decoder: { querySide: "output", keySide: "output so far" },
};

/** The kinds of attention, in the order they are offered. */
export const KINDS = Object.keys(SIDES);

/**
 * Names and sides of queries and keys in a kind of attention of an example: `querySide` and `keySide` are sides,
 * `axisNames` is what people read for `rows` and `columns`, and `description` a sentence on both.
 */
export function sidesOf(example, kind, task) {
  const reading = readingOf(example, kind);
  const sides = reading === "written" ? { querySide: "output", keySide: "output" } : SIDES[kind];
  const description = t(`says.${reading}`, {
    source: sideName(example, "source", task),
    output: sideName(example, "output", task),
  });
  if (example.sides === "queries and keys")
    return { ...sides, description, axisNames: { rows: t("side.queries"), columns: t("side.keys") } };
  const columns = sides.keySide === "output so far" ? t("side.so-far") : sideName(example, sides.keySide, task);
  return { ...sides, description, axisNames: { rows: sideName(example, sides.querySide, task), columns } };
}

// Which sentence fits: a decoder alone has read its rows, and is not about to write them; two texts
// may be read together, and neither be written; a pooling has one query, whose row is a label's.
function readingOf(example, kind) {
  if (example.sides === "queries and keys") return "weights";
  if (kind === "cross") return example.answer?.side ? "pair" : example.answer?.labels.length ? "label" : "cross";
  if (kind === "decoder") return example.started === false ? "written" : "decoder";
  return example.answer || !example.output_tokens.length ? "text" : "encoder";
}

/** What a side is called: a label is a label, and a model that only reads, or only writes, has one text. */
export function sideName(example, side, task) {
  const { answer } = example;
  const isSource = side === "source";
  if (example.sides === "queries and keys") return t(isSource ? "side.keys" : "side.queries");
  if (answer?.side) return t(isSource ? "side.key" : "side.query");
  if (!example.source_tokens.length || !example.output_tokens.length) return t("side.text");
  if (answer)
    return t(
      isSource ? "side.text" : answer.labels.length ? "side.label" : answer.tags.length ? "side.tags" : "side.answer",
    );
  return t(task === "translation" ? (isSource ? "side.sentence" : "side.translation") : `side.${side}`);
}

/** A layer in words, counted from 1; and a layer or a head as an option. */
export const layerName = (layer) => (layer === "mean" ? t("layer.mean") : t("layer.number", { number: layer + 1 }));
export const numberOf = (value) => (value === "mean" ? t("mean") : String(value + 1));

/** The tokens of the rows and of the columns of a kind. */
export function tokensOf(example, kind) {
  const output = example.output_tokens;
  if (kind === "encoder") return { rows: example.source_tokens, columns: example.source_tokens };
  if (kind === "cross") return { rows: output, columns: example.source_tokens };
  if (example.started === false) return { rows: output, columns: output };
  const started = [{ text: t("start"), start: 0, end: 0 }, ...output].slice(0, output.length);
  return { rows: output, columns: started };
}

/**
 * Rows and columns as tokens of their texts, and the other way round: `sideOf(axis)`, `tokenAt(axis, position)`,
 * `positionOf(axis, token)`, which may be negative, and `pointAt(point, side, token, isFirm)`, which points at a
 * token of a text. Of a pair a part is shown (`positions`), and the output so far begins with a start sign.
 */
export function tokensIn({ querySide, keySide }, positions) {
  const sideOf = (axis) => ((axis === "rows" ? querySide : keySide) === "source" ? "source" : "output");
  const shift = (axis) => Number(axis === "columns" && keySide === "output so far");
  const tokenAt = (axis, position) => (positions ? positions[axis][position] : position - shift(axis));
  const positionOf = (axis, token) => (positions ? positions[axis].indexOf(token) : token + shift(axis));
  // In self-attention a token that is pointed at is a query.
  function pointAt(point, side, token, isFirm) {
    if (token === null) return point(null, isFirm);
    const axis = ["rows", "columns"].find((one) => side === sideOf(one) && positionOf(one, token) >= 0);
    return (
      axis && point({ row: null, column: null, [axis === "rows" ? "row" : "column"]: positionOf(axis, token) }, isFirm)
    );
  }
  return { sideOf, shift, tokenAt, positionOf, pointAt };
}

/** Gold links by "row,column". */
export function goldOf(example, kind) {
  const links = new Map();
  if (!example.gold || kind !== "cross") return links;
  for (const [s, t] of example.gold.possible) links.set(`${t},${s}`, "possible");
  for (const [s, t] of example.gold.sure) links.set(`${t},${s}`, "sure");
  return links;
}

/** Where the largest weight of a row stands, or -1 where the row sees nothing. */
export function bestOf(row) {
  let best = -1;
  let most = 0;
  row.forEach((weight, at) => {
    if (weight > most) [most, best] = [weight, at];
  });
  return best;
}

/** 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), Och and Ney (2003); A is the arg-max of every row. */
export function alignmentError(all, gold) {
  const links = all.map((row, at) => `${at},${bestOf(row)}`).filter((link) => !link.endsWith("-1"));
  const sure = [...gold.values()].filter((strength) => strength === "sure").length;
  const hits = links.filter((link) => gold.get(link) === "sure").length;
  const possible = links.filter((link) => gold.has(link)).length;
  return links.length + sure ? 1 - (hits + possible) / (links.length + sure) : null;
}

export function entropyOf(row) {
  return row.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log(weight) : sum), 0);
}

/**
 * What a head does, as `regard.head_scores` has it: the mean weight of a query on its keys of a kind,
 * over the queries that have some; null where none has.
 */
export function rolesOf(rows, kind, keys) {
  const earlier = keys.map(({ text }, at) =>
    keys.flatMap((key, position) => (position < at && key.text === text ? [position] : [])),
  );
  const marks = keys.flatMap(({ text }, at) => (/^[▁Ġ# ]*\p{P}+$/u.test(text) ? [at] : []));
  const selfKeys = {
    previous: (at) => [at - 1],
    next: (at) => [at + 1],
    same: (at) => [at],
    duplicate: (at) => earlier[at],
    induction: (at) => earlier[at].map((position) => position + 1),
  };
  const crossKeys = { diagonal: (at) => [Math.round((at * (keys.length - 1)) / Math.max(1, rows.length - 1))] };
  const kinds = {
    ...(kind === "cross" ? crossKeys : rows.length === keys.length ? selfKeys : {}),
    ...(marks.length ? { punctuation: () => marks } : {}),
  };
  return Object.fromEntries(
    Object.entries(kinds).map(([name, keysOf]) => {
      const sums = rows.flatMap((row, at) => {
        const chosen = keysOf(at).filter((position) => position in keys);
        return chosen.length && row.some((weight) => weight > 0)
          ? [chosen.reduce((sum, position) => sum + row[position], 0)]
          : [];
      });
      return [name, sums.length ? sumOf(sums) / sums.length : null];
    }),
  );
}

const isWord = ({ text, start, end }) => start < end && /[\p{L}\p{N}]/u.test(text);

/**
 * The confidence of a head (Voita et al., 2019): the mean of each word's largest weight on another word, in a text of
 * its own neither on itself nor on the first token; null of texts without words.
 */
export function confidenceOf(weights, kind, rows, columns) {
  const queries = [...rows.keys()].filter((at) => isWord(rows[at]));
  const keys = [...columns.keys()].filter((at) => isWord(columns[at]));
  if (!queries.length || !keys.length) return null;
  const isLink = (query, key) => kind === "cross" || (key !== query && key > 0);
  const largest = (query) => mostOf(keys.map((key) => (isLink(query, key) ? weights[query][key] : 0)));
  return queries.reduce((sum, query) => sum + largest(query), 0) / queries.length;
}

/**
 * What is pointed at as lists of rows and columns: one token, a cell, or several tokens of a side.
 *
 * @param {{row?: number | null, column?: number | null, rows?: number[], columns?: number[]}} position
 */
export function chosenOf({ row = null, column = null, rows, columns }) {
  const one = (position) => (position === null ? [] : [position]);
  return { rows: rows ?? one(row), columns: columns ?? one(column) };
}

/** The mean of several rows; and what every row gives to several columns. */
export const meanOver = (rows) =>
  rows.length === 1
    ? rows[0]
    : Float32Array.from(rows[0], (_, at) => rows.reduce((sum, row) => sum + row[at], 0) / rows.length);
export const sumOver = (weights, columns) =>
  weights.map((row) => columns.reduce((sum, column) => sum + row[column], 0));

/** The largest entries of a row above `least`, as `{at, weight}`, falling; of equal ones the first comes first. */
export function largestOf(row, most, least = 0) {
  const largest = [];
  row.forEach((weight, at) => {
    if (weight > least && (largest.length < most || weight > largest.at(-1).weight)) {
      const position = largest.findIndex((other) => weight > other.weight);
      largest.splice(position < 0 ? largest.length : position, 0, { at, weight });
      if (largest.length > most) largest.pop();
    }
  });
  return largest;
}

/** A weight as people read it: at most four significant digits. */
export function figure(weight, digits = 4) {
  return weight === 0 ? "0" : String(Number(weight.toPrecision(digits)));
}

/** A weight as it stands in a cell: two digits after the point; "" of a weight that rounds to nothing. */
export const cellFigure = (weight) => (weight < 0.005 ? "" : weight >= 0.995 ? "1" : weight.toFixed(2).slice(1));

/** A number that may be negative, with a minus sign that people read. */
export const signed = (value, digits) => figure(value, digits).replace("-", "−");

/** The largest of numbers that are not negative, and the sum of numbers. */
export const mostOf = (values) => values.reduce((most, value) => Math.max(most, value), 0);
export const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);

/** How wide a text is in letters, of which a Chinese sign takes two. */
export const widthOf = (text) => [...text].reduce((sum, sign) => sum + (sign > "\u2e80" ? 2 : 1), 0);

/** Whether two things are of one head. */
export const isOfHead = (one, other) => ["kind", "layer", "head"].every((name) => one[name] === other[name]);

/** A matrix for a CSV file: `map` has tokens as rows and columns, and weights. */
export const weightsTable = ({ rows, columns, weights }) => ({
  columns: ["row", "token", ...columns.map((token) => token.text)],
  rows: weights.map((row, at) => [at + 1, rows[at].text, ...Array.from(row, (weight) => figure(weight))]),
});

/**
 * Where an arrow key, Home or End leads from an element of `rows`, lists of elements; undefined of other
 * keys. With Control, Home and End go to the corners.
 */
export function stepIn(rows, from, { key, ctrlKey, altKey, metaKey }) {
  const down = ctrlKey ? Infinity : 0;
  const step = { Home: [-down, -Infinity], End: [down, Infinity] }[key] ?? arrowOf(key);
  const at = rows.findIndex((row) => row.includes(from));
  if (!step || at < 0 || altKey || metaKey) return undefined;
  const row = rows[within(at + step[0], rows.length)];
  return row[within(rows[at].indexOf(from) + step[1], row.length)];
}

/** The steps of an arrow key, down and across; undefined of another key. */
export const arrowOf = (key) => ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] })[key];

/** The nearest position of so many. */
export const within = (at, count) => Math.max(0, Math.min(count - 1, at));

/** The text of a token without its marks, for a sentence about it. */
export function nameOf(token) {
  const text = token.text.replaceAll(/[▁Ġ]/g, " ").replaceAll(/\r?\n/g, "↵").replaceAll("\t", "⇥");
  return text.trim() || t("space");
}

const STARTS = /^[▁Ġ]/; // SentencePiece and byte-level BPE mark the space before a word
const CONTINUES = /^##/; // WordPiece marks what continues one
const SIGN = /^(?:<.*>|\[.*\]|⟨.*⟩)$/;

/**
 * The words that tokens make, in order: `{words: [{text, start, end, tokens}], wordOf}`, where
 * `tokens` are positions and `wordOf` has the word of each token.
 *
 * Words are found in the text where tokens say where they stand: by Unicode's rules, and by the
 * browser's dictionary for Chinese, Japanese and others without spaces. A token belongs to the word
 * it shares most characters with, the first of equals; one that touches none is left by itself.
 * Tokens without positions are joined by the marks they carry: ▁, Ġ and ##.
 */
export function wordsOf(tokens, text, language) {
  const placed = tokens.filter((token) => token.end > token.start).length;
  const wordOf = placed * 2 >= tokens.length ? bySpans(tokens, text, language) : byMarks(tokens);
  const words = [];
  wordOf.forEach((word, at) => {
    words[word] ??= { text: "", start: tokens[at].start, end: tokens[at].end, tokens: [] };
    words[word].tokens.push(at);
    words[word].start = Math.min(words[word].start, tokens[at].start);
    words[word].end = Math.max(words[word].end, tokens[at].end);
  });
  const characters = Array.from(text);
  for (const word of words) word.text = textOf(word, tokens, characters);
  return { words, wordOf };
}

/** A row over tokens as one over words: each receives the largest weight of its tokens. */
export function receivedByWords(row, wordOf, count) {
  const received = new Float32Array(count);
  row.forEach((weight, at) => {
    if (weight > received[wordOf[at]]) received[wordOf[at]] = weight;
  });
  return received;
}

/** The entries of a word's row from those of its tokens: `[{at, weight}]`, falling. */
export function entriesOfWord(lists, wordOf) {
  const means = new Map();
  for (const { at, weight } of lists.flat()) means.set(at, (means.get(at) ?? 0) + weight / lists.length);
  const largest = new Map();
  for (const [at, weight] of means) largest.set(wordOf[at], Math.max(largest.get(wordOf[at]) ?? 0, weight));
  return entriesOf(largest);
}

/** The entries of a map from positions to weights: `[{at, weight}]`, falling. */
export const entriesOf = (weights) =>
  [...weights].map(([at, weight]) => ({ at, weight })).sort((a, b) => b.weight - a.weight);

// The number of the word each token is part of.
function bySpans(tokens, text, language) {
  const spans = spansOf(text, language);
  let count = 0;
  let last = -1; // the span of the word before
  let from = 0;
  const wordOf = new Int32Array(tokens.length);
  tokens.forEach((token, at) => {
    while (from < spans.length && spans[from][1] <= token.start) from += 1;
    let [best, most] = [-1, 0];
    for (let span = from; span < spans.length && spans[span][0] < token.end; span++) {
      const shared = Math.min(token.end, spans[span][1]) - Math.max(token.start, spans[span][0]);
      if (shared > most) [best, most] = [span, shared];
    }
    if (best < 0 || best !== last) count += 1;
    last = best;
    wordOf[at] = count - 1;
  });
  return wordOf;
}

function byMarks(tokens) {
  const isContinued = tokens.some((token) => CONTINUES.test(token.text));
  const isStarted = tokens.some((token) => STARTS.test(token.text));
  let count = 0;
  return Int32Array.from(tokens, (token, at) => {
    const joins = isContinued ? CONTINUES.test(token.text) : isStarted && !STARTS.test(token.text);
    if (!joins || at === 0 || SIGN.test(token.text) || SIGN.test(tokens[at - 1].text)) count += 1;
    return count - 1;
  });
}

/** Where the words and signs of a text stand, in characters: [start, end] of each. */
export function spansOf(text, language) {
  const spans = [];
  let at = 0;
  for (const { segment } of new Intl.Segmenter(language ?? undefined, { granularity: "word" }).segment(text)) {
    const length = Array.from(segment).length;
    if (/\S/u.test(segment)) spans.push([at, at + length]);
    at += length;
  }
  return spans;
}

function textOf(word, tokens, characters) {
  if (word.end > word.start) return characters.slice(word.start, word.end).join("");
  return word.tokens.map((at) => tokens[at].text.replace(CONTINUES, "").replace(STARTS, "")).join("");
}

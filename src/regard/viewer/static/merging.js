// Tokens merged to words, and the weights of words from those of their tokens. The same meaning as
// `words_from_tokens` (attention/alignment.py): what a word looks at is the mean of its tokens'
// rows, what it receives is the largest weight of its tokens.

const STARTS = /^[▁Ġ]/; // SentencePiece and byte-level BPE mark the space before a word
const CONTINUES = /^##/; // WordPiece marks what continues one

/**
 * The words that tokens make, in order: `{words: [{text, start, end, tokens}], wordOf}`, where
 * `tokens` are places and `wordOf` has the word of each token.
 *
 * Words are found in the text where tokens say where they stand: by Unicode's rules, and by the
 * browser's dictionary for Chinese, Japanese and others without spaces. A token belongs to the word
 * it shares most characters with, the first of equals; one that touches none is left by itself.
 * Tokens without places are joined by the marks they carry: ▁, Ġ and ##.
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
  const found = new Float32Array(count);
  row.forEach((weight, at) => {
    if (weight > found[wordOf[at]]) found[wordOf[at]] = weight;
  });
  return found;
}

/** The entries of a word's row from those of its tokens: `[{column, weight}]`, falling. */
export function entriesOfWord(lists, wordOf) {
  const means = new Map();
  for (const entries of lists) {
    for (const { column, weight } of entries) means.set(column, (means.get(column) ?? 0) + weight / lists.length);
  }
  const found = new Map();
  for (const [column, weight] of means) {
    const word = wordOf[column];
    found.set(word, Math.max(found.get(word) ?? 0, weight));
  }
  return [...found].map(([column, weight]) => ({ column, weight })).sort((a, b) => b.weight - a.weight);
}

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
    const isSign = /^(?:<.*>|\[.*\]|⟨.*⟩)$/.test(token.text);
    const wasSign = at > 0 && /^(?:<.*>|\[.*\]|⟨.*⟩)$/.test(tokens[at - 1].text);
    if (!joins || isSign || wasSign || at === 0) count += 1;
    return count - 1;
  });
}

/** Where the words and signs of a text stand, in characters: [start, end] of each. */
export function spansOf(text, language) {
  const spans = [];
  let at = 0;
  for (const { segment } of segments(text, language)) {
    const length = Array.from(segment).length;
    if (/\S/u.test(segment)) spans.push([at, at + length]);
    at += length;
  }
  return spans;
}

function segments(text, language) {
  if (typeof Intl.Segmenter === "function") {
    return new Intl.Segmenter(language ?? undefined, { granularity: "word" }).segment(text);
  }
  const parts = text.match(/\s+|[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu) ?? [];
  return parts.map((segment) => ({ segment }));
}

function textOf(word, tokens, characters) {
  if (word.end > word.start) return characters.slice(word.start, word.end).join("");
  return word.tokens.map((at) => tokens[at].text.replace(CONTINUES, "").replace(STARTS, "")).join("");
}

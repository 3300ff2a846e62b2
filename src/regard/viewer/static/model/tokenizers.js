// Text to ids and back in the page, as `regard.text` has it: lists of words or characters, BPE, unigram.
//
// Places are counted in characters (code points), as in a document.

const [UNKNOWN, UNKNOWN_TEXT] = [1, "⁇"];
const RESERVED = 4;
const MARKER = "▁"; // how sentencepiece writes a space
// biome-ignore lint/suspicious/noControlCharactersInRegex: Python's white space has some
const SPACES = /[\t-\r\x1c-\x20\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
const UNSPACED =
  /[\u0e01-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{3ffff}]/u;
const WORD = /s?(?:a[am]*(?:qa[am]*)*|d[dm]*|[oq]m*)|cm*|m+|s/g;

/** A text without outer white space, every inner run of it one space. */
export const normalize = (text) => text.split(SPACES).filter(Boolean).join(" ").toWellFormed();

const opensWithWord = (text) => /^[\p{L}\p{N}]/u.test(text) && !UNSPACED.test(text);
const printable = (surface) => surface.replace(/^ +| +$/g, "") || "␣";

function kindOf(sign) {
  if (/\p{M}/u.test(sign)) return "m";
  if (/[\p{L}\p{N}]/u.test(sign)) return UNSPACED.test(sign) ? "c" : /\p{N}/u.test(sign) ? "d" : "a";
  return { " ": "s", "'": "q", "’": "q" }[sign] ?? "o";
}

/** Words, numbers and marks of a text, with the space before each; of unspaced scripts, characters. */
function splitWords(text) {
  const signs = [...text];
  let at = 0;
  return (signs.map(kindOf).join("").match(WORD) ?? []).map((word) => {
    at += word.length;
    return signs.slice(at - word.length, at).join("");
  });
}

/**
 * A tokenizer: `encode(text)` has `[{id, text, start, end}]`, `decode(ids)` has `{text, spans}`, and
 * `unknown(text)` the characters that it has no ids for.
 */
export function createTokenizer(packed) {
  return ["words", "characters"].includes(packed.type) ? createList(packed) : createSubwords(packed);
}

function createList({ type, pieces }) {
  const surfaces = ["", UNKNOWN_TEXT, "", "", ...pieces];
  const ids = new Map(pieces.map((piece, at) => [piece, at + RESERVED]));
  const split = type === "words" ? splitWords : (text) => [...text];

  function cut(text) {
    const plain = normalize(text);
    return split(type === "words" && opensWithWord(plain) ? ` ${plain}` : plain).flatMap((word) => {
      if (ids.has(word)) return [word];
      return word.startsWith(" ") && ids.has(word.slice(1)) ? [" ", word.slice(1)] : [...word];
    });
  }

  function encode(text) {
    const words = cut(text);
    const { spans } = join([...words.keys()], words);
    return words.map((surface, at) => ({
      id: ids.get(surface) ?? UNKNOWN,
      text: printable(surface),
      start: spans[at][0],
      end: spans[at][1],
    }));
  }

  return {
    encode,
    decode: (tokens) => join(tokens, surfaces),
    unknown: (text) => cut(text).filter((one) => !ids.has(one)),
  };
}

function createSubwords({ type, pieces, scores, first_byte: firstByte }) {
  const score = new Float32Array(Uint8Array.from(atob(scores), (sign) => sign.charCodeAt(0)).buffer);
  const ids = new Map(pieces.map((piece, id) => [piece, id]).filter(([, id]) => !Number.isNaN(score[id])));
  const isByte = (id) => id >= firstByte && id < firstByte + 256;
  const surfaces = pieces.map((piece, id) => (Number.isNaN(score[id]) ? "" : piece.replaceAll(MARKER, " ")));
  surfaces[UNKNOWN] = UNKNOWN_TEXT;
  const marksWords = ids.has(MARKER);
  const spelled = marksWords ? /(▁)/ : /([▁ ])/;
  const longest = Math.max(...[...ids.keys()].map((piece) => [...piece].length));
  const rarest = Math.min(...[...ids.values()].map((id) => score[id])) - 10; // what an unknown character costs
  const cut = type === "bpe" ? merged : likeliest;

  // Joins the pair that was joined earliest in training, until no pair is a piece.
  function merged(word) {
    const parts = [...word];
    for (;;) {
      let [best, position] = [-Infinity, -1];
      for (let at = 0; at + 1 < parts.length; at++) {
        const id = ids.get(parts[at] + parts[at + 1]);
        if (id !== undefined && score[id] > best) [best, position] = [score[id], at];
      }
      if (position < 0) return parts;
      parts.splice(position, 2, parts[position] + parts[position + 1]);
    }
  }

  // The likeliest way to cut: Viterbi, summed in single precision as sentencepiece sums.
  function likeliest(word) {
    const signs = [...word];
    const ways = [{ score: 0, from: -1 }];
    for (let from = 0; from < signs.length; from++) {
      for (let end = from + 1; end <= Math.min(signs.length, from + longest); end++) {
        const id = ids.get(signs.slice(from, end).join(""));
        if (id === undefined && end > from + 1) continue;
        const total = Math.fround(ways[from].score + (id === undefined ? rarest : score[id]));
        if (!ways[end] || total > ways[end].score) ways[end] = { score: total, from };
      }
    }
    const parts = [];
    for (let end = signs.length; end > 0; end = ways[end].from)
      parts.unshift(signs.slice(ways[end].from, end).join(""));
    return parts;
  }

  const bytesOf = (text) => Array.from(new TextEncoder().encode(text), (byte) => firstByte + byte);

  function idsOf(text) {
    const plain = normalize(text);
    const marked = marksWords && opensWithWord(plain) ? ` ${plain}` : plain;
    return marked.split(spelled).flatMap((part, at) => {
      if (at % 2) return bytesOf(part);
      const words = part.replaceAll(" ", MARKER).match(/▁?[^▁]+|▁/gu) ?? [];
      return words.flatMap(cut).flatMap((piece) => (ids.has(piece) ? [ids.get(piece)] : bytesOf(piece)));
    });
  }

  const decode = (tokens) => join(tokens, surfaces, (id) => (isByte(id) ? id - firstByte : null));

  function encode(text) {
    const tokens = idsOf(text);
    const { spans } = decode(tokens);
    return tokens.map((id, at) => ({
      id,
      text: isByte(id) ? pieces[id] : printable(surfaces[id]),
      start: spans[at][0],
      end: spans[at][1],
    }));
  }

  return { encode, decode, unknown: () => [] };
}

/**
 * The text of ids and the position of each in it; bytes that are no UTF-8 read as U+FFFD.
 *
 * @param {number[]} ids
 * @param {string[]} surfaces
 * @param {(id: number) => number | null} byteOf
 */
function join(ids, surfaces, byteOf = () => null) {
  const spans = [];
  let [text, length, isStart] = ["", 0, true];
  for (let at = 0; at < ids.length; ) {
    const { surface, count } =
      byteOf(ids[at]) === null
        ? { surface: surfaces[ids[at]], count: 1 }
        : character(ids.slice(at, at + 4).map(byteOf));
    const part = isStart && surface.startsWith(" ") ? surface.slice(1) : surface;
    const size = [...part].length;
    isStart = isStart && !surface;
    spans.push(
      ...Array.from({ length: count }, () => [length + Number(size > 1 && part.startsWith(" ")), length + size]),
    );
    text += part;
    length += size;
    at += count;
  }
  return { text, spans };
}

// The first character that bytes spell, and how many of them it takes.
function character(bytes) {
  const spelled = bytes.includes(null) ? bytes.slice(0, bytes.indexOf(null)) : bytes;
  for (let count = 1; count <= spelled.length; count++) {
    try {
      const sign = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
        Uint8Array.from(spelled.slice(0, count)),
      );
      return { surface: SPACES.test(sign) ? " " : sign, count };
    } catch {
      // The character has more bytes.
    }
  }
  return { surface: "\ufffd", count: 1 };
}

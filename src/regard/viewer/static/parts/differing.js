// Two texts, word by word: what only one of them has is marked.

import { spansOf } from "../data/maps.js";
import { element } from "../page/dom.js";

/** Two texts as nodes, what only one of them has marked: {one, other}. */
export function differing(one, other, language) {
  const [first, second] = [one, other].map((text) => piecesOf(text, language));
  const same = commonPieces(first, second);
  const nodes = (pieces, shared) =>
    pieces.map((piece, at) => (shared.has(at) || !piece.trim() ? piece : element("mark", piece)));
  return {
    one: nodes(first, new Set(same.map(([at]) => at))),
    other: nodes(second, new Set(same.map(([, at]) => at))),
  };
}

// Words, signs and what stands between them.
function piecesOf(text, language) {
  const characters = Array.from(text);
  const pieces = [];
  let done = 0;
  for (const [start, end] of spansOf(text, language)) {
    if (start > done) pieces.push(characters.slice(done, start).join(""));
    pieces.push(characters.slice(start, end).join(""));
    done = end;
  }
  return done < characters.length ? [...pieces, characters.slice(done).join("")] : pieces;
}

// The longest common subsequence, as pairs of positions. Texts beyond a thousand words are not compared.
function commonPieces(one, other) {
  if (one.length * other.length > 4e6) return one.map((_, at) => [at, at]);
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let a = one.length - 1; a >= 0; a--) {
    for (let b = other.length - 1; b >= 0; b--) {
      lengths[a][b] = one[a] === other[b] ? lengths[a + 1][b + 1] + 1 : Math.max(lengths[a + 1][b], lengths[a][b + 1]);
    }
  }
  const pairs = [];
  for (let [a, b] = [0, 0]; a < one.length && b < other.length; ) {
    if (one[a] === other[b]) pairs.push([a++, b++]);
    else if (lengths[a + 1][b] >= lengths[a][b + 1]) a += 1;
    else b += 1;
  }
  return pairs;
}

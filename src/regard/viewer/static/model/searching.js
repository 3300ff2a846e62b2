// Greedy and beam search in the page, as `regard.decoding` has them.

import { largestOf } from "../data/maps.js";

/**
 * The best answer from a state: `{tokens, score, state, isFinished}`, whose state has seen all its
 * tokens. A beam of one is greedy search.
 */
export function search(
  step,
  start,
  { beam_size: K, length_penalty: alpha, min_length: shortest, begin, end, forbidden, limit },
) {
  const penalty = (length) => ((5 + length) / 6) ** alpha;
  let beams = [{ tokens: [], logProb: 0, state: start, token: begin }];
  let best = null;
  let count = 0;
  for (let length = 1; length <= limit; length++) {
    const excluded = length <= shortest ? [...forbidden, end] : forbidden;
    const stepped = step(beams);
    const candidates = beams.flatMap((beam, at) => {
      const { logProbs, state } = stepped[at];
      for (const token of excluded) logProbs[token] = -Infinity;
      return likeliest(logProbs, K + 1).map((token) => ({
        tokens: token === end ? beam.tokens : [...beam.tokens, token],
        token,
        state,
        logProb: beam.logProb + logProbs[token],
      }));
    });
    candidates.sort((one, other) => other.logProb - one.logProb); // stable
    for (const { token, tokens, state, logProb } of candidates.slice(0, K)) {
      if (token !== end || logProb === -Infinity) continue;
      count += 1;
      const score = logProb / penalty(length);
      if (!best || score > best.score) best = { tokens, score, state, isFinished: true };
    }
    beams = candidates.filter(({ token }) => token !== end).slice(0, K);
    if (count >= K || (best && best.score >= beams[0].logProb / penalty(limit))) break;
  }
  if (best) return best;
  const [{ tokens, logProb }] = beams;
  const [{ state }] = step(beams.slice(0, 1));
  return { tokens, score: logProb / penalty(limit), state, isFinished: false };
}

/** The ids of the largest numbers, falling; of equal ones the lowest first. */
export const likeliest = (logProbs, count) => largestOf(logProbs, count, -Infinity).map(({ at }) => at);

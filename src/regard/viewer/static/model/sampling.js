// Draws the next token from its log-probabilities, number for number as `regard.decoding.sampling` does.

/** @typedef {{temperature: number, top_k: number | null, top_p: number, seed: number}} Sampling as `regard.decoding.sample` takes it */

/**
 * What a token is drawn from: log-probabilities over the temperature, −∞ of all but the `top_k` likeliest tokens, and of
 * all but the fewest that together have the probability `top_p`.
 *
 * @param {ArrayLike<number>} logProbs
 * @param {Sampling} sampling
 */
export function restricted(logProbs, { temperature, top_k: most, top_p: share }) {
  const scaled = Float32Array.from(logProbs, (value) => Math.fround(value) / Math.fround(temperature));
  if (most !== null && most < scaled.length) {
    const least = scaled.toSorted()[scaled.length - most]; // those as likely as the last stay
    for (const [at, value] of scaled.entries()) if (value < least) scaled[at] = -Infinity;
  }
  if (share < 1) {
    const ordered = [...scaled.keys()].sort((one, other) => scaled[other] - scaled[one] || one - other);
    const chances = probabilitiesOf(scaled);
    let likelier = 0;
    for (const token of ordered) {
      if (likelier >= share) scaled[token] = -Infinity;
      likelier += chances[token];
    }
  }
  return scaled;
}

/** The probabilities of log-probabilities that need not sum to one. */
export function probabilitiesOf(logProbs) {
  const largest = logProbs.reduce((most, value) => Math.max(most, value), -Infinity);
  const powers = Float64Array.from(logProbs, (value) => Math.exp(value - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** The token that is drawn at a position of a continuation. */
export function draw(logProbs, sampling, position) {
  const chances = probabilitiesOf(restricted(logProbs, sampling));
  const quantile = uniform(sampling.seed, 0, position) * chances.reduce((total, chance) => total + chance, 0);
  let [sum, token] = [chances[0], 0];
  while (sum <= quantile && token < chances.length - 1) {
    token += 1;
    sum += chances[token];
  }
  return token;
}

// SplitMix64 (Steele et al., 2014).
const [STEP, ONE, TWO] = [0x9e3779b97f4a7c15n, 0xbf58476d1ce4e5b9n, 0x94d049bb133111ebn];
const BITS = (1n << 64n) - 1n;

/** A random number from 0 up to 1, a function of the seed, the copy and the position. */
export function uniform(seed, copy, position) {
  let bits = mixed(BigInt(seed));
  for (const number of [copy, position]) bits = mixed(bits + BigInt(number) * STEP);
  return Number(bits >> 12n) * 2 ** -52;
}

function mixed(number) {
  let bits = (number + STEP) & BITS;
  bits = ((bits ^ (bits >> 30n)) * ONE) & BITS;
  bits = ((bits ^ (bits >> 27n)) * TWO) & BITS;
  return bits ^ (bits >> 31n);
}

// The arithmetic of a model that runs in the page. A matrix is a list of Float32Arrays, a row each;
// sums are taken in double precision.

/** The tensors of a packed model by name: `{shape, values}`, with rows in int8 given back as numbers. */
export function createTensors({ tensors, weights }) {
  const { buffer } = Uint8Array.from(atob(weights), (sign) => sign.charCodeAt(0));
  const named = new Map();
  for (const { names, shape, at, scales } of tensors) {
    const size = shape.reduce((product, side) => product * side, 1);
    let values;
    if (scales === null) values = new Float32Array(buffer, at, size);
    else {
      const rounded = new Int8Array(buffer, at, size);
      const scale = new Float32Array(buffer, scales, shape[0]);
      values = new Float32Array(size);
      for (let i = 0; i < size; i++) values[i] = rounded[i] * scale[Math.floor(i / shape[1])];
    }
    for (const name of names) named.set(name, { shape, values });
  }
  return within(named, "");
}

// The tensors of the part of a model whose names begin so.
function within(named, prefix) {
  const get = (name) => named.get(prefix + name) ?? null;
  return {
    has: (name) => get(name) !== null,
    get,
    /** One row of a table, times a scale. */
    row: (name, at, scale = 1) => {
      const {
        shape: [, width],
        values,
      } = get(name);
      return values.subarray(at * width, (at + 1) * width).map((value) => value * scale);
    },
    /** `states Wᵀ + b` by the weight and the bias of a layer, or by some of its outputs. */
    linear: (states, name, [first, last] = [0, Infinity]) =>
      product(states, get(`${name}.weight`), get(`${name}.bias`), first, last),
    product: (states, name, bias = null) => product(states, get(name), bias && get(bias), 0, Infinity),
    within: (part) => within(named, prefix + part),
  };
}

// Nearly all of a model's time is spent here, and most of that on reading: a weight that is read serves
// up to four states, and a number of a single state four weights.
function product(states, { shape: [outputs, width], values }, bias, first, last) {
  const end = Math.min(last, outputs);
  const products = states.map(() => new Float32Array(end - first));
  for (let n = 0; n < states.length; n += 4) {
    const group = states.slice(n, n + 4);
    const sums =
      group.length === 1 ? timesOne(group[0], values, first, end, width) : timesFour(group, values, first, end, width);
    group.forEach((_, k) => {
      const out = products[n + k];
      const step = group.length === 1 ? 1 : 4;
      for (let i = 0; i < out.length; i++) out[i] = sums[step * i + k] + (bias ? bias.values[first + i] : 0);
    });
  }
  return products;
}

// The products of a state with four rows at a time; after the last row it comes again.
function timesOne(state, values, first, end, width) {
  const sums = new Float64Array(end - first + 3);
  const x = new Float64Array(state);
  for (let output = first; output < end; output += 4) {
    const at = output * width;
    const [second, third, fourth] = [1, 2, 3].map((more) => Math.min(output + more, end - 1) * width);
    let a = 0,
      b = 0,
      c = 0,
      d = 0;
    for (let i = 0; i < width; i++) {
      a += x[i] * values[at + i];
      b += x[i] * values[second + i];
      c += x[i] * values[third + i];
      d += x[i] * values[fourth + i];
    }
    sums.set([a, b, c, d], output - first);
  }
  return sums;
}

// The products of four states with two rows at a time: four numbers of each row, of fewer states zeros.
function timesFour(states, values, first, end, width) {
  const sums = new Float64Array(4 * (end - first + 1));
  const x = new Float64Array(4 * width);
  states.forEach((state, k) => state.forEach((value, i) => (x[4 * i + k] = value)));
  for (let output = first; output < end; output += 2) {
    let a = 0,
      b = 0,
      c = 0,
      d = 0,
      e = 0,
      f = 0,
      g = 0,
      h = 0;
    let at = output * width;
    let next = Math.min(output + 1, end - 1) * width;
    for (let i = 0; i < x.length; i += 4, at++, next++) {
      const v = values[at],
        w = values[next];
      const p = x[i],
        q = x[i + 1],
        r = x[i + 2],
        s = x[i + 3];
      a += p * v;
      b += q * v;
      c += r * v;
      d += s * v;
      e += p * w;
      f += q * w;
      g += r * w;
      h += s * w;
    }
    sums.set([a, b, c, d, e, f, g, h], 4 * (output - first));
  }
  return sums;
}

/** The dot product of `count` numbers of two arrays, from a position in each. */
export function dot(one, other, count = one.length, from = 0, to = 0) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += one[from + i] * other[to + i];
  return sum;
}

export const added = (one, other) => one.map((value, at) => value + other[at]);
export const joined = (...rows) => Float32Array.from(rows.flatMap((row) => Array.from(row)));
export const sigmoid = (value) => 1 / (1 + Math.exp(-value));

/** Weights that sum to one, or to zero where every score is −∞. */
export function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** The same as logarithms. */
export function logSoftmax(scores) {
  let most = -Infinity;
  for (const score of scores) if (score > most) most = score;
  let total = 0;
  for (const score of scores) total += Math.exp(score - most);
  const shift = most + Math.log(total);
  const logProbs = new Float64Array(scores);
  for (let at = 0; at < logProbs.length; at++) logProbs[at] -= shift;
  return logProbs;
}

/** The mean of values by weights; a width of the values from a position on. */
export function mixed(weights, values, width = values[0].length, from = 0) {
  const sums = new Float64Array(width);
  values.forEach((value, key) => {
    for (let i = 0; i < width; i++) sums[i] += weights[key] * value[from + i];
  });
  return new Float32Array(sums);
}

const NORMS = {
  layer(state, eps, weight, bias) {
    const mean = state.reduce((sum, value) => sum + value, 0) / state.length;
    const variance = state.reduce((sum, value) => sum + (value - mean) ** 2, 0) / state.length;
    const factor = 1 / Math.sqrt(variance + eps);
    return state.map((value, at) => (value - mean) * factor * weight.values[at] + bias.values[at]);
  },
  rms(state, eps, weight) {
    const square = state.reduce((sum, value) => sum + value * value, 0) / state.length;
    const factor = 1 / Math.sqrt(square + eps);
    return state.map((value, at) => value * factor * weight.values[at]);
  },
  batch(state, eps, weight, bias, mean, variance) {
    return state.map(
      (value, at) =>
        ((value - mean.values[at]) * weight.values[at]) / Math.sqrt(variance.values[at] + eps) + bias.values[at],
    );
  },
};
const EPS = { layer: 1e-5, rms: 1e-6, batch: 1e-5 };

/** States after the norm of a name; as they are where there is none. */
export function normed(tensors, states, name, { norm_kind: kind, norm_eps: eps }) {
  if (!tensors.has(`${name}.weight`)) return states;
  const parts = ["weight", "bias", "mean", "variance"].map((part) => tensors.get(`${name}.${part}`));
  return states.map((state) => NORMS[kind](state, eps ?? EPS[kind], ...parts));
}

// The error function, by a series of positive terms; gelu needs it exactly.
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** The activations of a feed-forward layer, by the name of the setting. */
export const ACTIVATIONS = {
  relu: (state) => state.map((value) => Math.max(0, value)),
  silu: (state) => state.map((value) => value * sigmoid(value)),
  gelu: (state) => state.map((value) => (value / 2) * (1 + erf(value / Math.SQRT2))),
  gelu_tanh: (state) =>
    state.map((value) => (value / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value ** 3)))),
  swiglu: (state) => {
    const half = state.length / 2;
    return state.slice(0, half).map((value, at) => value * sigmoid(value) * state[half + at]);
  },
};

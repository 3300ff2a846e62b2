// A recurrent encoder-decoder in the page, with attention at every step; one head.

import { added, dot, joined, logSoftmax, mixed, sigmoid, softmax } from "./tensors.js";

/** The states of both directions side by side, layer over layer, of torch's recurrence of a name. */
export function readBothWays(tensors, recurrence, { cell, hidden_dim: h, num_layers: layers }, rows) {
  function direction(layer, isBack) {
    const of = (side) => `${recurrence}.${side}_l${layer}${isBack ? "_reverse" : ""}`;
    let state = new Float32Array(cell === "lstm" ? 2 * h : h);
    const inputs = tensors.product(rows, of("weight_ih"), of("bias_ih"));
    const states = (isBack ? inputs.reverse() : inputs).map((gates) => {
      const [hidden] = tensors.product([state.subarray(0, h)], of("weight_hh"), of("bias_hh"));
      state = CELLS[cell](gates, hidden, state, h, "torch");
      return state.subarray(0, h);
    });
    return isBack ? states.reverse() : states;
  }

  for (let layer = 0; layer < layers; layer++) {
    const [ahead, back] = [false, true].map((isBack) => direction(layer, isBack));
    rows = ahead.map((state, at) => joined(state, back[at]));
  }
  return rows;
}

/** The model of `{config, scales}` and its tensors; see transformer.js. */
export function createRecurrent({ config, scales }, tensors, isMuted) {
  const { hidden_dim: h, num_layers: L, attention, reach } = config;
  const { tanh } = Math;

  function start(source) {
    const embedded = source.map((id) => tensors.row("source_embedding.weight", id, scales.source_embedding));
    const states = readBothWays(tensors, "encoder.recurrence", config, embedded);
    const last = joined(topOf(states.at(-1)), states[0].subarray(h));
    const carried = config.beginning === "backward" ? last.subarray(h) : last;
    const layers = Array.from({ length: L }, (_, layer) => tensors.linear([carried], `first.${layer}`)[0].map(tanh));
    const values = config.values === "embeddings" ? embedded : states;
    const way = tensors.get("way.w")?.values;
    const cover = way && attention === "general" ? tensors.product([way], "attention.w")[0] : way;
    return {
      layers,
      values,
      fixed: last,
      keys: keysOf(states),
      cover,
      count: 0,
      covered: new Float32Array(source.length),
      fed: new Float32Array(config.embed_dim),
      attentions: [],
      before: null,
    };
  }

  // Keys that are matched by dot products with the state, but for additive attention.
  function keysOf(states) {
    if (attention === "additive") return tensors.linear(states, "attention.key");
    if (attention === "general") return tensors.product(states, "attention.w");
    if (attention === "dot") return states.map((state) => added(topOf(state), state.subarray(h)));
    return attention === "location" ? states.map((_, at) => tensors.row("attention.w", at)) : [];
  }

  function scoresOf(query, { keys, cover, covered }) {
    const biased = cover ? keys.map((key, at) => key.map((value, i) => value + covered[at] * cover[i])) : keys;
    if (attention !== "additive") return biased.map((key) => dot(query, key));
    const w = tensors.get("attention.w").values;
    return biased.map((key) => key.reduce((sum, value, i) => sum + w[i] * tanh(query[i] + value), 0));
  }

  /** The weights of a step over the source, `query` being what is matched and `top` the state. */
  function weightsOf(query, top, state) {
    const scores = scoresOf(query, state);
    if (config.hard) {
      const best = scores.indexOf(Math.max(...scores));
      return scores.map((_, at) => Number(at === best));
    }
    if (config.local === "monotonic")
      return softmax(scores.map((score, at) => (Math.abs(at - state.count) > reach ? -Infinity : score)));
    if (config.local !== "predictive") return softmax(scores);
    const [inner] = tensors.linear([top], "way.inner");
    const middle = scores.length * sigmoid(tensors.linear([inner.map(tanh)], "way.outer")[0][0]);
    const far = scores.map((_, at) => at + 1 - middle);
    const near = softmax(scores.map((score, at) => (Math.abs(far[at]) > reach ? -Infinity : score)));
    return near.map((weight, at) => weight * Math.exp(-(far[at] ** 2) / (2 * (reach / 2) ** 2)));
  }

  /** The attention of each hypothesis, and its context. */
  function attend(tops, states) {
    if (attention === "none") return states.map(({ fixed, covered }) => ({ context: fixed, attentions: [], covered }));
    const queries = attention === "additive" ? tensors.linear(tops, "attention.query") : tops;
    return states.map((state, n) => {
      const weights = weightsOf(queries[n], tops[n], state);
      const context = mixed(weights, state.values);
      if (isMuted("cross", 0, 0)) context.fill(0);
      return {
        context,
        attentions: [{ kind: "cross", layer: 0, heads: [[weights]] }],
        covered: added(state.covered, weights),
      };
    });
  }

  /** The layers of each hypothesis one step later. */
  function recur(inputs, states) {
    const after = states.map(() => []);
    for (let layer = 0; layer < L; layer++) {
      const before = states.map(({ layers }) => layers[layer]);
      const below = after.map((layers) => layer && topOf(layers[layer - 1]));
      const gates = layer ? tensors.linear(below, `cells.${layer}.input`) : inputs;
      const hidden = tensors.linear(before.map(topOf), `cells.${layer}.hidden`);
      after.forEach((layers, n) => layers.push(CELLS[config.cell](gates[n], hidden[n], before[n], h, "own")));
    }
    return after;
  }

  /** Log-probabilities of the token after that of each hypothesis, and the state that includes it and its attentions. */
  function step(beams) {
    const states = beams.map(({ state }) => state);
    const embedded = beams.map(({ token }) => tensors.row("target_embedding.weight", token, scales.target_embedding));
    const gates = tensors.linear(embedded, "cells.0.input");
    const moved = (extra) => {
      const contexts = tensors.linear(extra, "context_gates");
      return recur(
        contexts.map((context, n) => added(gates[n], context)),
        states,
      );
    };
    let layers, outputs, tops;
    if (config.decoder === "luong") {
      layers = moved(states.map(({ fed }) => fed));
      outputs = attend(layers.map(lastOf), states);
      const read = outputs.map(({ context }, n) => joined(context, lastOf(layers[n])));
      tops = tensors.linear(read, "readout").map((row) => row.map(tanh));
    } else {
      const before = states.map((state) => lastOf(state.layers));
      outputs = attend(before, states);
      layers = moved(outputs.map(({ context }) => context));
      const read = outputs.map(({ context }, n) => joined(lastOf(layers[n]), embedded[n], context));
      tops = tensors
        .linear(read, "readout")
        .map((pairs) =>
          Float32Array.from({ length: pairs.length / 2 }, (_, at) => Math.max(pairs[2 * at], pairs[2 * at + 1])),
        );
    }
    return tensors.product(tops, "output.weight", "output_bias").map((logits, n) => {
      const { attentions, covered } = outputs[n];
      const state = {
        ...states[n],
        layers: layers[n],
        covered,
        fed: tops[n],
        count: states[n].count + 1,
        attentions,
        before: states[n],
      };
      return { logProbs: logSoftmax(logits), state };
    });
  }

  const topOf = (state) => state.subarray(0, h);
  const lastOf = (layers) => topOf(layers.at(-1));

  return { start, step };
}

// The state after a step; an LSTM's has its cell behind the output. torch and RecurrentCell order gates differently.
const CELLS = {
  rnn: (inputs, hidden) => added(inputs, hidden).map(Math.tanh),
  gru: (inputs, hidden, state, h) =>
    state.map((before, i) => {
      const [reset, update] = [sigmoid(inputs[i] + hidden[i]), sigmoid(inputs[h + i] + hidden[h + i])];
      const after = Math.tanh(inputs[2 * h + i] + reset * hidden[2 * h + i]);
      return after + update * (before - after);
    }),
  lstm: (inputs, hidden, state, h, order) => {
    const gate = (number, i) => inputs[number * h + i] + hidden[number * h + i];
    const [candidate, output] = order === "torch" ? [2, 3] : [3, 2];
    const out = new Float32Array(2 * h);
    for (let i = 0; i < h; i++) {
      out[h + i] = sigmoid(gate(1, i)) * state[h + i] + sigmoid(gate(0, i)) * Math.tanh(gate(candidate, i));
      out[i] = sigmoid(gate(output, i)) * Math.tanh(out[h + i]);
    }
    return out;
  },
};

// A recurrent encoder-decoder in the page, with attention at every step; its looks are those of one head.

import { added, dot, joined, logSoftmax, mixed, sigmoid, softmax } from "./tensors.js";

/** The states of both directions side by side, layer over layer, of torch's recurrence of a name. */
export function readBothWays(tensors, recurrence, { cell, hidden_dim: h, num_layers: layers }, rows) {
  /** One direction of a layer. */
  function direction(layer, isBack) {
    const of = (side) => `${recurrence}.${side}_l${layer}${isBack ? "_reverse" : ""}`;
    let state = new Float32Array(cell === "lstm" ? 2 * h : h);
    const inputs = tensors.product(rows, of("weight_ih"), of("bias_ih"));
    const states = (isBack ? inputs.reverse() : inputs).map((gates) => {
      const [own] = tensors.product([state.subarray(0, h)], of("weight_hh"), of("bias_hh"));
      state = CELLS[cell](gates, own, state, h, "torch");
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
    const last = joined(states.at(-1).subarray(0, h), states[0].subarray(h));
    const carried = config.beginning === "backward" ? last.subarray(h) : last;
    const layers = Array.from({ length: L }, (_, layer) => tensors.linear([carried], `first.${layer}`)[0].map(tanh));
    const values = config.values === "embeddings" ? embedded : states;
    return {
      layers, values, fixed: last, keys: keysOf(states), count: 0,
      covered: new Float32Array(source.length), fed: new Float32Array(config.embed_dim), looks: [], before: null,
    };
  }

  function keysOf(states) {
    if (attention === "additive") return tensors.linear(states, "look.key");
    if (attention === "dot") return states.map((state) => added(state.subarray(0, h), state.subarray(h)));
    if (attention === "location") return states.map((_, at) => tensors.row("look.w", at));
    return attention === "none" ? [] : states;
  }

  function scoresOf(query, { keys, covered }) {
    const cover = tensors.get("way.w")?.values;
    const shown = cover ? keys.map((key, at) => key.map((value, i) => value + covered[at] * cover[i])) : keys;
    if (attention === "general") {
      const turned = mixed(query, Array.from(query, (_, at) => tensors.row("look.w", at))); // qᵀ W
      return shown.map((key) => dot(turned, key));
    }
    if (attention !== "additive") return shown.map((key) => dot(query, key));
    const [asked] = tensors.linear([query], "look.query");
    const w = tensors.get("look.w").values;
    return shown.map((key) => key.reduce((sum, value, i) => sum + w[i] * tanh(asked[i] + value), 0));
  }

  /** The weights of a step over the source. */
  function weightsOf(query, state) {
    const scores = scoresOf(query, state);
    if (config.hard) {
      const best = scores.indexOf(Math.max(...scores));
      return scores.map((_, at) => Number(at === best));
    }
    if (config.local === "monotonic") return softmax(scores.map((score, at) => (Math.abs(at - state.count) > reach ? -Infinity : score)));
    if (config.local !== "predictive") return softmax(scores);
    const [inner] = tensors.linear([query], "way.inner");
    const middle = scores.length * sigmoid(tensors.linear([inner.map(tanh)], "way.outer")[0][0]);
    const far = scores.map((_, at) => at + 1 - middle);
    const near = softmax(scores.map((score, at) => (Math.abs(far[at]) > reach ? -Infinity : score)));
    return near.map((weight, at) => weight * Math.exp(-(far[at] ** 2) / (2 * (reach / 2) ** 2)));
  }

  function attend(query, state) {
    if (attention === "none") return { context: state.fixed, looks: [], covered: state.covered };
    const weights = weightsOf(query, state);
    const context = mixed(weights, state.values);
    if (isMuted("cross", 0, 0)) context.fill(0);
    return { context, looks: [{ kind: "cross", layer: 0, heads: [[weights]] }], covered: added(state.covered, weights) };
  }

  function recur(inputs, layers) {
    return layers.reduce((after, state, layer) => {
      const gates = layer ? tensors.linear([after[layer - 1].subarray(0, h)], `cells.${layer}.input`)[0] : inputs;
      const [own] = tensors.linear([state.subarray(0, h)], `cells.${layer}.hidden`);
      return [...after, CELLS[config.cell](gates, own, state, h, "own")];
    }, []);
  }

  function step(token, state) {
    const embedded = tensors.row("target_embedding.weight", token, scales.target_embedding);
    const [gates] = tensors.linear([embedded], "cells.0.input");
    const moved = (extra) => recur(added(gates, tensors.linear([extra], "context_gates")[0]), state.layers);
    const topOf = (layers) => layers.at(-1).subarray(0, h);
    let layers, output, top;
    if (config.decoder === "luong") {
      layers = moved(state.fed);
      output = attend(topOf(layers), state);
      top = tensors.linear([joined(output.context, topOf(layers))], "readout")[0].map(tanh);
    } else {
      output = attend(topOf(state.layers), state);
      layers = moved(output.context);
      const [pairs] = tensors.linear([joined(topOf(layers), embedded, output.context)], "readout");
      top = Float32Array.from({ length: pairs.length / 2 }, (_, at) => Math.max(pairs[2 * at], pairs[2 * at + 1]));
    }
    const [logits] = tensors.product([top], "output.weight", "output_bias");
    const { looks, covered } = output;
    return { logProbs: logSoftmax(logits), state: { ...state, layers, covered, fed: top, count: state.count + 1, looks, before: state } };
  }

  return { start, step };
}

// The state after a step; an LSTM's has its cell behind the output. torch and RecurrentCell order gates differently.
const CELLS = {
  rnn: (inputs, own) => added(inputs, own).map(Math.tanh),
  gru: (inputs, own, state, h) =>
    state.map((before, i) => {
      const [reset, update] = [sigmoid(inputs[i] + own[i]), sigmoid(inputs[h + i] + own[h + i])];
      const after = Math.tanh(inputs[2 * h + i] + reset * own[2 * h + i]);
      return after + update * (before - after);
    }),
  lstm: (inputs, own, state, h, order) => {
    const gate = (number, i) => inputs[number * h + i] + own[number * h + i];
    const [candidate, shows] = order === "torch" ? [2, 3] : [3, 2];
    const out = new Float32Array(2 * h);
    for (let i = 0; i < h; i++) {
      out[h + i] = sigmoid(gate(1, i)) * state[h + i] + sigmoid(gate(0, i)) * Math.tanh(gate(candidate, i));
      out[i] = sigmoid(gate(shows, i)) * Math.tanh(out[h + i]);
    }
    return out;
  },
};

// A Transformer in the page: encoder, decoder with its caches, and the weights of every head.
//
// An attention is `{kind, layer, heads}`: `heads[h]` has a row of weights for each query.

import { ACTIVATIONS, added, dot, logSoftmax, mixed, normed, softmax } from "./tensors.js";

const BEGIN = 2;

/** What encoders and decoders are made of; `isMuted(kind, layer, head)` asks which heads mix nothing. */
export function createBlocks({ config: settings, scales }, tensors, isMuted) {
  const config = { score: "scaled_dot", window: null, ...settings };
  const { model_dim: width, num_heads: H, window } = config;
  const G = config.num_key_heads ?? H;
  const D = width / H;
  const isAdded = ["sinusoidal", "learned"].includes(config.positions);

  /** The vectors of ids by a table, with those of their positions, under a norm where there is one. */
  function embed(ids, positions, { table, positionTable = "positions", norm = "", more = null }) {
    const states = ids.map((id, n) => {
      const vector = tensors.row(`${table}.weight`, id, scales[table]);
      const state = more ? added(vector, more) : vector;
      if (!isAdded) return state;
      return added(
        state,
        config.positions === "learned"
          ? tensors.row(`${positionTable}.table`, positions[n])
          : sinusoidal(positions[n], width),
      );
    });
    return normed(tensors, states, norm, config);
  }

  /** `x + sublayer(norm(x))`, or `norm(x + sublayer(x))`. */
  function residual(states, name, sublayer) {
    const norm = (rows) => normed(tensors, rows, `${name}_residual.norm`, config);
    if (config.norm === "pre") return states.map(addTo(sublayer(norm(states))));
    return norm(states.map(addTo(sublayer(states))));
  }

  /** Every head's mean of the values that each query sees, side by side, behind the output's projection. */
  function attend(name, kind, layer, queries, visible, positions, attentions) {
    const bias = kind === "cross" ? null : biasOf(name, kind);
    const w = tensors.get(`${name}.score_parameters.0`);
    const scale = config.score === "scaled_dot" ? 1 / Math.sqrt(D) : 1;
    const heads = Array.from({ length: H }, () => []);
    const states = queries.map((query, n) => {
      const { keys, values } = visible[n];
      const state = new Float32Array(H * D);
      for (let head = 0; head < H; head++) {
        const from = Math.floor((head * G) / H) * D;
        const shaw = bias?.ofQuery?.(query, head);
        const scores = keys.map((key, m) => {
          const step = m - positions[n];
          if (kind !== "cross" && window !== null && Math.abs(step) > window) return -Infinity;
          const match = w ? additive(query, key, w, head, from) : scale * dot(query, key, D, head * D, from);
          return match + (shaw ? shaw(step) : (bias?.ofStep(step, head) ?? 0));
        });
        const weights = softmax(scores);
        heads[head].push(weights);
        if (isMuted(kind, layer, head)) continue;
        const context = mixed(weights, values, D, from);
        if (bias?.value)
          weights.forEach((weight, m) =>
            bias.value(m - positions[n]).forEach((value, at) => (context[at] += weight * value)),
          );
        state.set(context, head * D);
      }
      return state;
    });
    attentions.push({ kind, layer, heads });
    return tensors.linear(states, `${name}.output`);
  }

  function additive(query, key, { values }, head, from) {
    let sum = 0;
    for (let i = 0; i < D; i++) sum += values[head * D + i] * Math.tanh(query[head * D + i] + key[from + i]);
    return sum;
  }

  // What positions add to scores, where they are not added to embeddings.
  function biasOf(name, kind) {
    if (config.positions === "alibi") return { ofStep: (step, head) => -slopes(H)[head] * Math.abs(step) };
    if (config.positions === "t5") {
      const {
        shape: [count],
        values,
      } = tensors.get(`${kind}_bias.table`);
      return { ofStep: (step, head) => values[bucket(step, count, kind === "encoder") * H + head] };
    }
    if (config.positions !== "relative") return null;
    const distances = name.replace(/attend$/, "distances");
    const {
      shape: [rows],
    } = tensors.get(`${distances}.key_table`);
    const most = (rows - 1) / 2;
    const rowOf = (step) => Math.max(-most, Math.min(most, step)) + most;
    const row = (table, step) => tensors.row(`${distances}.${table}_table`, rowOf(step));
    return {
      ofQuery: (query, head) => (step) => dot(query, row("key", step), D, head * D, 0) / Math.sqrt(D),
      value: (step) => row("value", step),
    };
  }

  function rotated(states, count, positions) {
    if (config.positions !== "rotary") return states;
    return states.map((state, n) => {
      const out = state.slice();
      for (let head = 0; head < count; head++) {
        for (let pair = 0; pair < D / 2; pair++) {
          const angle = positions[n] / 10000 ** ((2 * pair) / D);
          const at = head * D + 2 * pair;
          out[at] = state[at] * Math.cos(angle) - state[at + 1] * Math.sin(angle);
          out[at + 1] = state[at + 1] * Math.cos(angle) + state[at] * Math.sin(angle);
        }
      }
      return out;
    });
  }

  /**
   * The states of all layers of a stack, the keys and values of each layer, and the attentions. Without caches
   * states see each other; with caches each sees those of its own text and itself.
   */
  function through(stack, kind, layers, states, { positions, caches = null, memories = null }) {
    const attentions = [];
    const visible = [];
    for (let layer = 0; layer < layers; layer++) {
      const name = `${stack}.${layer}`;
      states = residual(states, `${name}.attend`, (inputs) => {
        const all = tensors.linear(inputs, `${name}.attend.query_key_value`);
        const part = (from, count) => all.map((row) => row.slice(from * D, (from + count) * D));
        const [queries, keys, values] = [
          rotated(part(0, H), H, positions),
          rotated(part(H, G), G, positions),
          part(H + G, G),
        ];
        visible[layer] = inputs.map((_, n) =>
          caches ? appended(caches[n][layer], keys[n], values[n]) : { keys, values },
        );
        return attend(`${name}.attend`, kind, layer, queries, visible[layer], positions, attentions);
      });
      if (memories) {
        states = residual(states, `${name}.cross_attend`, (inputs) => {
          const queries = tensors.linear(inputs, `${name}.cross_attend.query`);
          return attend(
            `${name}.cross_attend`,
            "cross",
            layer,
            queries,
            memories.map((memory) => memory[layer]),
            positions,
            attentions,
          );
        });
      }
      states = residual(states, `${name}.feed`, (inputs) => {
        const inner = tensors.linear(inputs, `${name}.feed.inner`).map(ACTIVATIONS[config.activation]);
        return tensors.linear(inner, `${name}.feed.outer`);
      });
    }
    return { states, visible, attentions };
  }

  /** One token more of each text: log-probabilities by `project`, and the states that include it and its attentions. */
  function advance(beams, stack, table, project) {
    const before = beams.map(({ state }) => state);
    const positions = before.map(({ caches }) => caches[0].keys.length);
    const tokens = beams.map(({ token }) => token);
    const embedded = embed(tokens, positions, table);
    const memories = before[0].memory ? before.map(({ memory }) => memory) : null;
    const { states, visible, attentions } = through(stack, "decoder", before[0].caches.length, embedded, {
      positions,
      caches: before.map(({ caches }) => caches),
      memories,
    });
    return project(states).map((logits, n) => ({
      logProbs: logSoftmax(logits),
      state: {
        ...before[n],
        caches: visible.map((layer) => layer[n]),
        attentions: attentions.map(({ kind, layer, heads }) => ({
          kind,
          layer,
          heads: heads.map((rows) => [rows[n]]),
        })),
        before: before[n],
      },
    }));
  }

  return { config, embed, through, advance, sizes: [G * D, 2 * G * D] };
}

const appended = ({ keys, values }, key, value) => ({ keys: [...keys, key], values: [...values, value] });
const empty = (layers) => Array.from({ length: layers }, () => ({ keys: [], values: [] }));
const range = (count) => Array.from({ length: count }, (_, at) => at);

/** An encoder-decoder: `start(ids)` reads a source, `step([{token, state}, …])` writes a token of each. */
export function createTransformer(packed, tensors, isMuted) {
  const {
    config,
    embed,
    through,
    advance,
    sizes: [ofKeys, ofBoth],
  } = createBlocks(packed, tensors, isMuted);
  const target = {
    table: "target_embedding",
    positionTable: config.own_positions ? "target_positions" : "positions",
    norm: "target_norm",
  };

  /** The state before the first token, with the encoder's attention. */
  function start(source) {
    const read = config.source_begin ? [BEGIN, ...source] : source;
    const positions = range(read.length);
    const embedded = embed(read, positions, { table: "source_embedding", norm: "source_norm" });
    const { states, attentions } = through("encoder", "encoder", config.num_encoder_layers, embedded, { positions });
    const memory = normed(tensors, states, "encoder_norm", config).slice(read.length - source.length);
    const scale = packed.scales.source_embedding;
    const valueStates =
      config.values === "embeddings" ? source.map((id) => tensors.row("source_embedding.weight", id, scale)) : memory;
    return {
      caches: empty(config.num_decoder_layers),
      memory: range(config.num_decoder_layers).map((layer) => ({
        keys: tensors.linear(memory, `decoder.${layer}.cross_attend.key_value`, [0, ofKeys]),
        values: tensors.linear(valueStates, `decoder.${layer}.cross_attend.key_value`, [ofKeys, ofBoth]),
      })),
      attentions: config.source_begin ? [] : attentions, // no token of the source stands for the begin
      before: null,
    };
  }

  const project = (states) =>
    tensors.product(normed(tensors, states, "decoder_norm", config), "output.weight", "output_bias");
  return { start, step: (beams) => advance(beams, "decoder", target, project) };
}

/** A language model: the state before the first token, and the same step. */
export function createDecoder(packed, tensors, isMuted) {
  const { config, advance } = createBlocks(packed, tensors, isMuted);
  const project = (states) => tensors.product(normed(tensors, states, "norm", config), "output.weight");
  return {
    start: () => ({ caches: empty(config.num_layers), attentions: [], before: null }),
    step: (beams) => advance(beams, "layers", { table: "embedding" }, project),
  };
}

const addTo = (changes) => (state, at) => added(state, changes[at]);

/** The sines and cosines of a position. */
export function sinusoidal(position, width) {
  return Float32Array.from({ length: width }, (_, i) => {
    const angle = position * Math.exp((2 * Math.floor(i / 2) * -Math.log(10000)) / width);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// The slope of each head: Press et al. (2022).
function slopes(heads) {
  const power = 2 ** Math.floor(Math.log2(heads));
  const regular = Array.from({ length: power }, (_, h) => 2 ** ((-8 * (h + 1)) / power));
  return [...regular, ...Array.from({ length: heads - power }, (_, h) => 2 ** ((-4 * (2 * h + 1)) / power))];
}

/** The bucket of a distance: Raffel et al. (2020). */
export function bucket(step, count, isBidirectional, farthest = 128) {
  const buckets = isBidirectional ? count / 2 : count;
  const offset = isBidirectional && step > 0 ? buckets : 0;
  const distance = isBidirectional ? Math.abs(step) : Math.max(0, -step);
  const single = Math.floor(buckets / 2);
  if (distance < single) return offset + distance;
  const f32 = Math.fround;
  const far = f32(f32(Math.log(f32(distance / single))) / f32(Math.log(farthest / single))) * (buckets - single);
  return offset + Math.min(buckets - 1, single + Math.trunc(f32(far)));
}

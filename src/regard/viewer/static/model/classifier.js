// A classifier in the page: a reader, a pooling with its attention, and the probability of each label.

import { readBothWays } from "./recurrent.js";
import { dot, joined, mixed, normed, softmax } from "./tensors.js";
import { createBlocks } from "./transformer.js";

/** The model of `{reader, config, pooling, scales}`: `classify(ids)` has `{probabilities, attentions}`. */
export function createClassifier({ reader, config, pooling, scales }, tensors, isMuted) {
  const inside = tensors.within("reader.");
  const pool = tensors.within("pooling.pool.");
  const blocks =
    reader === "transformer"
      ? createBlocks({ config, scales: { embedding: scales["reader.embedding"] } }, inside, isMuted)
      : null;
  const { tanh } = Math;

  const READERS = {
    bag: (ids) => ids.map((id) => inside.row("embedding.weight", id)),
    recurrent: (ids) =>
      readBothWays(
        inside,
        "recurrence.recurrence",
        config,
        ids.map((id) => inside.row("words.embedding.weight", id)),
      ),
    transformer(ids, attentions) {
      const more = inside.has("segments") ? inside.row("segments", 0) : null;
      const positions = ids.map((_, at) => at);
      const embedded = blocks.embed(ids, positions, { table: "embedding", norm: "embedding_norm", more });
      const { states, attentions: ofLayers } = blocks.through("layers", "encoder", config.num_layers, embedded, {
        positions,
      });
      attentions.push(...ofLayers);
      return normed(inside, states, "norm", config);
    },
  };

  const rowsOf = (name) => Array.from({ length: pool.get(name).shape[0] }, (_, at) => pool.row(name, at));
  const meanOf = (states) =>
    mixed(
      states.map(() => 1 / states.length),
      states,
    );

  // The queries of poolings that attend, their keys, and how the two match.
  const QUERIES = {
    query: (states) => ({
      queries: rowsOf("pool.queries"),
      keys: pool.linear(states, "pool.key"),
      match: (query, key) => dot(query, key) / Math.sqrt(key.length),
    }),
    tanh_query: (states) => ({
      queries: rowsOf("w"),
      keys: states.map((state) => state.map(tanh)),
      match: (query, key) => dot(query, key),
    }),
    structured: (states) => ({
      queries: rowsOf("queries"),
      keys: pool.linear(states, "key").map((key) => key.map(tanh)),
      match: (query, key) => dot(query, key),
    }),
    state(states) {
      const w = pool.get("attention.w").values;
      const match = (query, key) => key.reduce((sum, value, at) => sum + w[at] * tanh(query[at] + value), 0);
      return {
        queries: pool.linear([meanOf(states)], "attention.query"),
        keys: pool.linear(states, "attention.key"),
        match,
      };
    },
  };

  function pooled(states, attentions) {
    if (pooling === "mean") return meanOf(states);
    if (pooling === "first") return states[0];
    if (pooling === "maximum") return states[0].map((_, at) => Math.max(...states.map((state) => state[at])));
    const { queries, keys, match } = QUERIES[pooling](states);
    const heads = queries.map((query) => [softmax(keys.map((key) => match(query, key)))]);
    attentions.push({ kind: "cross", layer: 0, heads });
    const contexts = heads.map(([weights], head) =>
      isMuted("cross", 0, head) ? new Float32Array(states[0].length) : mixed(weights, states),
    );
    const concatenated = joined(...contexts);
    return pooling === "tanh_query" ? concatenated.map(tanh) : concatenated;
  }

  function classify(ids) {
    const attentions = [];
    let vector = pooled(READERS[reader](ids, attentions), attentions);
    if (tensors.has("pooler.weight")) vector = tensors.linear([vector], "pooler")[0].map(tanh);
    const [logits] = tensors.linear([vector], "output");
    return { probabilities: softmax(Array.from(logits)), attentions };
  }

  return { classify };
}

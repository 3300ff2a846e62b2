// A model at work in the page: text in, text and attention out, as an example of a document.

import { createClassifier } from "./classifier.js";
import { createRecurrent } from "./recurrent.js";
import { draw, probabilitiesOf, restricted } from "./sampling.js";
import { likeliest, search } from "./searching.js";
import { createTensors } from "./tensors.js";
import { createTokenizer, normalize } from "./tokenizers.js";
import { createDecoder, createTransformer } from "./transformer.js";

const MODELS = {
  transformer: createTransformer,
  recurrent: createRecurrent,
  decoder: createDecoder,
  classifier: createClassifier,
};
/** @typedef {{sampling?: import("./sampling.js").Sampling | null, drawn?: number[], most?: number}} Continuing */

const LIKELY = 10; // next tokens that are listed

/**
 * A packed model at work: `translate(text, {beam, muted})`, muted being `["cross 0 3", …]`: kind,
 * layer, head. A classifier says its label; a language model continues the text and the tokens `drawn` after it by at
 * most `most` tokens: the likeliest, or drawn by `sampling` (see sampling.js).
 */
export function createTranslator(packed) {
  const muted = new Set();
  const isMuted = (kind, layer, head) => muted.size > 0 && muted.has(`${kind} ${layer} ${head}`);
  const model = MODELS[packed.kind](packed, createTensors(packed), isMuted);
  const source = createTokenizer(packed.source);
  const target = packed.target ? createTokenizer(packed.target) : source;
  const { begin, end, forbidden } = packed.search;

  /** The pieces of a text, how many the model takes, and the characters it has no ids for. */
  function read(text) {
    const plain = normalize(text);
    return {
      plain,
      pieces: source.encode(plain),
      longest: packed.longest_source,
      unknown: [...new Set(source.unknown(plain))],
    };
  }

  /** The sentences of a text that is longer than the model takes; else the text itself. */
  function split(text, language) {
    if (read(text).pieces.length <= packed.longest_source) return [text];
    const segments = new Intl.Segmenter(language ?? undefined, { granularity: "sentence" }).segment(text);
    return Array.from(segments, ({ segment }) => segment).filter((sentence) => normalize(sentence));
  }

  /**
   * The best output, with an example for the viewer; null of a text without tokens.
   *
   * @param {string} text
   * @param {{beam?: number, muted?: string[]} & Continuing} [options]
   * @returns {any}
   */
  function translate(text, { beam = packed.search.beam_size, muted: heads = [], ...continuing } = {}) {
    const { plain, pieces } = read(text);
    if (!pieces.length) return null;
    muted.clear();
    for (const head of heads) muted.add(head);
    if (packed.kind === "decoder") return continued(plain, pieces, continuing);
    if (packed.kind === "classifier") return classified(plain, pieces);
    const ids = [...pieces.map(({ id }) => id), ...(packed.source_end ? [end] : [])];
    const limit = Math.max(Math.floor(ids.length * packed.max_ratio) + 10, packed.search.min_length + 1);
    const options = { ...packed.search, beam_size: beam, limit: Math.min(limit, packed.longest_output ?? limit) };
    const start = model.start(ids);
    const best = search(model.step, start, options);
    const { text: output, spans } = target.decode(best.tokens);
    const signs = [...output];
    const written = spans.map(([from, to]) => ({ text: signs.slice(from, to).join("") || "␣", start: from, end: to }));
    const example = {
      source: plain,
      output,
      source_tokens: packed.source_end ? ended(pieces, [...plain].length) : pieces,
      output_tokens: ended(written, signs.length),
      maps: mapsOf(start, best.state, best.tokens.length + 1),
      score: best.score,
    };
    return { output, tokens: best.tokens, score: best.score, isFinished: best.isFinished, example };
  }

  /**
   * A continuation, and how unexpected each token of the text was.
   *
   * @param {string} typed
   * @param {any[]} typedPieces
   * @param {Continuing} options
   */
  function continued(typed, typedPieces, { sampling = null, drawn = [], most: count = packed.most_tokens }) {
    const { plain, pieces } = grown(typed, typedPieces, drawn);
    const ids = pieces.map(({ id }) => id);
    const costs = [];
    const step = (token, state) => model.step([{ token, state }])[0];
    let { logProbs, state } = step(begin, model.start());
    for (const id of ids) {
      costs.push(-logProbs[id]);
      ({ logProbs, state } = step(id, state));
    }
    const last = state;
    costs.push(-logProbs[end]);
    const probabilities = Array.from(logProbs, Math.exp);
    for (const token of forbidden) logProbs[token] = -Infinity;
    const chances = sampling && probabilitiesOf(restricted(logProbs, sampling));
    const next = likeliest(probabilities, LIKELY).map((id) => ({
      text: textOf(id),
      probability: probabilities[id],
      chance: chances?.[id] ?? null,
    }));
    const tokens = [];
    let read = [begin, ...ids];
    const most = packed.longest_source + 1;
    for (;;) {
      for (const token of forbidden) logProbs[token] = -Infinity;
      /** @type {number} */
      const token = sampling ? draw(logProbs, sampling, drawn.length + tokens.length) : likeliest(logProbs, 1)[0];
      if (token === end && packed.one_line) break;
      tokens.push(token);
      read.push(token);
      if (tokens.length >= count) break;
      if (read.length < most) ({ logProbs, state } = step(token, state));
      else {
        // Where the window is full, the model resumes from its second half.
        read = read.slice(-Math.floor(most / 2));
        state = model.start();
        for (const id of read) ({ logProbs, state } = step(id, state));
      }
    }
    const answer = { labels: [], tags: [], values: costs, measure: packed.measure };
    const output_tokens = ended(pieces, [...plain].length);
    const example = {
      source: "",
      output: plain,
      source_tokens: [],
      output_tokens,
      maps: mapsOf({ attentions: [] }, last, output_tokens.length),
      answer,
    };
    return { output: linesAfter(ids, tokens), tokens, next, score: null, example };
  }

  // A text with tokens after it: these are not read again, since another tokenization may fit their text.
  function grown(plain, pieces, drawn) {
    const ids = pieces.map(({ id }) => id);
    const { text, spans } = target.decode([...ids, ...drawn]);
    const shift = [...plain].length - [...target.decode(ids).text].length;
    const signs = [...text];
    const more = spans.slice(ids.length).map(([from, to], at) => ({
      id: drawn[at],
      text: signs.slice(from, to).join("") || "␣",
      start: from + shift,
      end: to + shift,
    }));
    return { plain: plain + linesAfter(ids, drawn), pieces: [...pieces, ...more] };
  }

  /** The likeliest label, the pooling's attention, or how far the label's odds fall without each token. */
  function classified(plain, pieces) {
    const ids = [...(packed.begins ? [begin] : []), ...pieces.map(({ id }) => id), end];
    const { probabilities, attentions } = model.classify(ids);
    const best = probabilities.indexOf(Math.max(...probabilities));
    const labels = packed.labels
      .map((label, at) => [label, probabilities[at]])
      .sort(([, one], [, other]) => other - one);
    const label = packed.labels[best];
    const oddsOf = (all) => {
      const probability = Math.min(Math.max(all[best], 1e-7), 1 - 1e-7);
      return Math.log(probability / (1 - probability));
    };
    const pooling = attentions.find(({ kind }) => kind === "cross");
    const values = pooling
      ? ids.map((_, at) => pooling.heads.reduce((sum, [row]) => sum + row[at], 0) / pooling.heads.length)
      : ids.map(
          (_, position) =>
            oddsOf(probabilities) - oddsOf(model.classify(ids.filter((_, at) => at !== position)).probabilities),
        );
    const sign = (text, at) => ({ text, start: at, end: at });
    const source_tokens = [...(packed.begins ? [sign("⟨begin⟩", 0)] : []), ...pieces, sign("⟨end⟩", pieces.at(-1).end)];
    const output_tokens = [{ text: label, start: 0, end: [...label].length }];
    const answer = {
      labels,
      tags: [],
      values,
      measure: pooling ? packed.measure : packed.measure_without.replace("{label}", label),
    };
    const example = {
      source: plain,
      output: label,
      source_tokens,
      output_tokens,
      maps: mapsOf({ attentions }, {}, 0),
      answer,
    };
    return { output: label, labels, score: null, example };
  }

  const textOf = (id) => (id === end ? "⟨end⟩" : target.decode([0, id]).text.trim() || "␣");

  // What the tokens add to the text; the end of a line is a token too.
  function linesAfter(ids, tokens) {
    const lines = [[...ids]];
    for (const token of tokens) {
      if (token === end) lines.push([]);
      else lines.at(-1).push(token);
    }
    const [first, ...rest] = lines.map((line) => target.decode(line).text);
    return [first.slice(target.decode(ids).text.length), ...rest].join("\n");
  }

  return { read, split, translate };
}

const ended = (tokens, length) => [...tokens, { text: "⟨end⟩", start: length, end: length }];

/** The maps of the encoder, and those of the steps that led to a state, the first of them first. */
function mapsOf(start, last, count) {
  const steps = [];
  for (let state = last; state.before; state = state.before) steps.unshift(state.attentions);
  const padded = (row) => Array.from({ length: count }, (_, at) => row[at] ?? 0);
  const ofSteps = (steps[0] ?? []).flatMap(({ kind, layer, heads }, at) =>
    heads.map((_, head) => {
      const rows = steps.map((attentions) => attentions[at].heads[head][0]);
      return { kind, layer, head, rows: kind === "decoder" ? rows.map(padded) : rows };
    }),
  );
  const ofSource = start.attentions.flatMap(({ kind, layer, heads }) =>
    heads.map((rows, head) => ({ kind, layer, head, rows })),
  );
  return [...ofSteps, ...ofSource];
}

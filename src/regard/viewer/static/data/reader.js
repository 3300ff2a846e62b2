// Everything a document says, read as it is asked for. Views read documents through this only.
//
// A view of a map is `{example, kind, layer, head}`: `example` is its place in the document, layer
// and head are numbers counted from 0, or "mean". Whatever needs unfolding is a promise.

import { languagesOf } from "../page/dom.js";
import { phrase, t } from "../page/language.js";
import { KINDS, alignmentError, bestOf, entropyOf, goldOf, largestOf, layerName, meanOver, numberOf, rolesOf, sidesOf, tokensIn, tokensOf } from "./maps.js";
import { unfold } from "./packed.js";

const MOST_CELLS = 512 * 512; // of a matrix that is drawn whole
const MOST_ASKED = 64; // rows asked of a source at a time
const MOST_KEPT = 4096; // rows of a source that are kept
const MOST_MADE = 64; // lines and maps that are kept
const PAIRS = ["aa", "ab", "ba", "bb"]; // text A looks at itself, at B, …
const MOST_SCORED = 128; // tokens of a text whose heads the page itself scores
const MAP = 64; // buckets along a side, where the page makes the pooled map itself

/** A reader of `data`; `source` is asked for rows that the document does not hold. */
export function createReader(data, source) {
  const unfolded = new Map();
  const made = new Map();
  const kept = new Map(); // rows that a source gave
  const layered = new WeakMap(); // the layers of each example

  function open(packed) {
    if (!unfolded.has(packed)) unfolded.set(packed, unfold(packed));
    return unfolded.get(packed);
  }

  // Lines and pooled maps of a view are asked for again at every move of the pointer.
  function once(name, view, make) {
    const key = `${name} ${view.example} ${view.kind} ${view.layer} ${view.head} ${view.pair}`;
    if (!made.has(key)) {
      if (made.size >= MOST_MADE) made.delete(made.keys().next().value);
      made.set(key, make());
    }
    return made.get(key);
  }

  const exampleAt = (at) => data.examples[at];

  function layersOf(at) {
    const example = exampleAt(at);
    if (!layered.has(example)) layered.set(example, layersIn(example));
    return layered.get(example);
  }

  const summariesOf = (at, kind) => layersOf(at).filter((found) => found.kind === kind);
  const summaryOf = (at, kind, layer) => summariesOf(at, kind).find((found) => found.layer === layer);
  const isEmpty = (at) => !layersOf(at).length;

  /** The kinds an example has, in the order they are offered. */
  const kinds = (at) => KINDS.filter((kind) => summariesOf(at, kind).length);

  const layers = (at, kind) => summariesOf(at, kind).map((one) => one.layer).sort((a, b) => a - b);

  /** The heads of a layer, ascending; ["mean"] where only their mean was kept. */
  const heads = (at, kind, layer) => [...(summaryOf(at, kind, layer)?.heads ?? [])];

  /** Whether heads have names: they are unlike, and have no mean. */
  const isNamed = (at) => (exampleAt(at).head_names ?? []).length > 0;

  /** A kind and a head in words, a head as an option, a head with its layer, and with both. */
  const kindName = (at, kind) => t(exampleAt(at).sides === "queries and keys" ? "weights" : `kind.${kind}`);
  const headNamed = (at, head) => exampleAt(at).head_names?.[head] && phrase(exampleAt(at).head_names[head]);
  const headName = (at, head) => headNamed(at, head) ?? (head === "mean" ? t("head.mean") : t("head.number", { number: head + 1 }));
  const headOption = (at, head) => headNamed(at, head) ?? numberOf(head);
  const viewName = (at, layer, head, between = t("list.comma")) => {
    const isOneLayer = isNamed(at) && kinds(at).every((kind) => layers(at, kind).length < 2);
    return [...(isOneLayer ? [] : [layerName(layer)]), headName(at, head)].join(between);
  };
  const fullName = ({ example, kind, layer, head }, between = t("list.comma")) => [kindName(example, kind), viewName(example, layer, head, between)].join(between);

  /** The same, as they are offered: "mean" first where there are several. */
  function layerChoices(at, kind) {
    const found = layers(at, kind);
    return found.length > 1 && !isNamed(at) ? ["mean", ...found] : found;
  }

  function headChoices(at, kind, layer) {
    if (isNamed(at)) return heads(at, kind, layer);
    if (layer === "mean") return ["mean"]; // heads of different layers have nothing in common
    const found = heads(at, kind, layer);
    return (summaryOf(at, kind, layer)?.maps?.has("mean") || found.length > 1) && found[0] !== "mean" ? ["mean", ...found] : found;
  }

  /** The same where "mean" of the layers stands for all heads of the first: choosing one chooses a layer. */
  function headOffers(at, kind, layer) {
    const found = headChoices(at, kind, layer);
    return layer === "mean" ? [...new Set(["mean", ...headChoices(at, kind, layers(at, kind)[0])])] : found;
  }

  /** The view with this head; of the mean of all layers, in the first layer that has it. */
  function withHead({ example, kind, layer }, head) {
    const found = layer === "mean" && head !== "mean" ? layers(example, kind).find((one) => heads(example, kind, one).includes(head)) : layer;
    return { layer: found ?? layer, head };
  }

  function headCount(at) {
    const count = (kind) => layers(at, kind).reduce((sum, layer) => sum + heads(at, kind, layer).length, 0);
    return kinds(at).reduce((sum, kind) => sum + count(kind), 0);
  }

  function nearest(at, wish) {
    const nearestOf = (choices, wished) => (choices.includes(wished) ? wished : choices[0]);
    const kind = nearestOf(kinds(at), wish.kind);
    const layer = nearestOf(layerChoices(at, kind), wish.layer);
    return { kind, layer, head: nearestOf(headChoices(at, kind, layer), wish.head), pair: pairs(at, kind).includes(wish.pair) ? wish.pair : "" };
  }

  /** Of two texts that are read as one, whose attention to whom may be shown alone: "" is all. */
  function pairs(at, kind) {
    if (!exampleAt(at).segments?.length || kind === "cross") return [];
    const layer = layers(at, kind)[0];
    return holdsRows({ example: at, kind, layer, head: heads(at, kind, layer)[0] }) ? ["", ...PAIRS] : [];
  }

  /** The places of the tokens that look and of those that are seen in a part of a pair, or null for all. */
  function placesOf({ example, pair }) {
    if (!pair) return null;
    const of = (text) => exampleAt(example).segments.flatMap((segment, at) => (segment === "ab".indexOf(text) ? [at] : []));
    return { rows: of(pair[0]), columns: of(pair[1]) };
  }

  /** What looks (rows) and what is seen (columns): `{rows, columns, languages, gold, looks, seen, says, called}`, and see `tokensIn`. */
  function axes(view) {
    const example = exampleAt(view.example);
    const places = placesOf(view);
    const sides = sidesOf(example, view.kind, data.task);
    const ofTexts = languagesOf(example, data);
    const languages = { rows: ofTexts[sides.looks], columns: ofTexts[sides.seen] };
    const whole = { ...sides, ...tokensOf(example, view.kind), ...tokensIn(sides, places), languages, gold: goldOf(example, view.kind) };
    if (!places) return whole;
    const rows = places.rows.map((at) => whole.rows[at]);
    const columns = view.pair[0] === view.pair[1] ? rows : places.columns.map((at) => whole.columns[at]);
    const called = { rows: t(`pair.${view.pair[0]}`), columns: t(`pair.${view.pair[1]}`) };
    return { ...whole, rows, columns, called, says: t("pair.says", called) };
  }

  /** The single heads that a view is the mean of, as [layer, head]. */
  function members({ example, kind, layer, head }) {
    const chosen = layer === "mean" ? layers(example, kind) : [layer];
    return chosen.flatMap((one) => {
      return summaryOf(example, kind, one)?.maps?.has(head) || head !== "mean" ? [[one, head]] : heads(example, kind, one).map((each) => [one, each]);
    });
  }

  /** Whether the document itself holds all rows of a view. */
  function holdsRows(view) {
    return members(view).every(([layer, head]) => {
      const summary = summaryOf(view.example, view.kind, layer);
      return summary?.maps?.has(head) || Boolean(summary?.rows);
    });
  }

  /** The exact rows of these queries, or null where nobody has them. */
  async function rows(view, queries) {
    if (!queries.length) return [];
    const places = placesOf(view);
    if (places) {
      const whole = await rows({ ...view, pair: "" }, queries.map((at) => places.rows[at]));
      return whole && whole.map((row) => places.columns.map((at) => row[at]));
    }
    if (!holdsRows(view)) return canAsk ? askedRows(view, queries) : null;
    const found = [];
    // Every layer counts alike in their mean, as does every head in a layer's.
    const headsOf = new Map();
    for (const [layer, head] of members(view)) {
      if (!headsOf.has(layer)) headsOf.set(layer, []);
      headsOf.get(layer).push(head);
    }
    for (const [layer, chosen] of headsOf) {
      const parts = await Promise.all(chosen.map((head) => rowsOfHead(view, layer, head, queries)));
      found.push(queries.map((_, at) => meanOver(parts.map((part) => part[at]))));
    }
    return queries.map((_, at) => meanOver(found.map((part) => part[at])));
  }

  async function rowsOfHead(view, layer, head, queries) {
    const summary = summaryOf(view.example, view.kind, layer);
    if (summary.maps) return queries.map((query) => summary.maps.get(head)[query]);
    const array = await open(summary.rows);
    const [, N, M] = array.shape;
    const place = summary.heads.indexOf(head);
    return queries.map((query) => {
      const start = (place * N + query) * M;
      return Float32Array.from({ length: M }, (_, key) => array.get(start + key));
    });
  }

  async function askedRows(view, queries) {
    const { example, kind, layer, head } = view;
    const nameOfRow = (query) => `${example} ${kind} ${layer} ${head} ${query}`;
    const missing = queries.filter((query) => !kept.has(nameOfRow(query)));
    for (let from = 0; from < missing.length; from += MOST_ASKED) {
      const asked = missing.slice(from, from + MOST_ASKED);
      const found = await source.rows(example, kind, layer, head, asked).catch(() => null);
      if (!found) return null;
      if (kept.size > MOST_KEPT) kept.clear();
      asked.forEach((query, at) => kept.set(nameOfRow(query), found[at]));
    }
    const got = queries.map((query) => kept.get(nameOfRow(query)));
    return got.every(Boolean) ? got : null;
  }

  /**
   * The whole matrix with its tokens, or null where it is not held or too large to draw;
   * `error(weight)` is what a weight may be off by.
   */
  const map = (view) => once("map", view, () => mapOf(view));

  async function mapOf(view) {
    const axis = axes(view);
    if (!holdsRows(view) || axis.rows.length * axis.columns.length > MOST_CELLS) return null;
    const weights = (await rows(view, axis.rows.map((_, at) => at))).map((row) => Array.from(row));
    let largest = 0;
    for (const row of weights) for (const weight of row) largest = Math.max(largest, weight);
    const { kind } = view;
    const packed = members(view).map(([layer]) => summaryOf(view.example, kind, layer)?.rows).filter(Boolean);
    const errors = (await Promise.all(packed.map(open))).map((array) => array.error);
    const error = (weight) => Math.max(0, ...errors.map((of) => of(weight)));
    return { kind, rows: axis.rows, columns: axis.columns, weights, largest, error, best: weights.map(bestOf), gold: axis.gold };
  }

  /**
   * A value along the text: `name` is "entropy", "distance" or "first" (one per query) or
   * "received" (one per key). `{values, places}`: a value stands for so many tokens; or null.
   */
  const line = (view, name) => once(name, view, () => lineOf(view, name));

  async function lineOf(view, name) {
    const parts = [];
    for (const [layer, head] of members(view)) {
      const summary = summaryOf(view.example, view.kind, layer);
      if (summary.maps || view.pair) return lineOfRows(view, name);
      if (!summary[name]) return null;
      const array = await open(summary[name].values);
      const length = array.shape[1];
      const start = summary.heads.indexOf(head) * length;
      parts.push({ places: summary[name].places, values: Float32Array.from({ length }, (_, at) => array.get(start + at)) });
    }
    const { places } = parts[0];
    if (parts.some((part) => part.places !== places)) return null;
    return { places, values: meanOver(parts.map((part) => part.values)) };
  }

  async function lineOfRows(view, name) {
    const all = await rows(view, axes(view).rows.map((_, at) => at));
    if (!all || !all.length) return null;
    const of = {
      entropy: entropyOf,
      first: (row) => row[0],
      distance: (row, at) => row.reduce((sum, weight, key) => sum + weight * Math.abs(key - at - row.length + all.length), 0),
    }[name];
    const values = of ? all.map(of) : Array.from(all[0], (_, key) => all.reduce((sum, row) => sum + row[key], 0));
    return { places: 1, values: Float32Array.from(values) };
  }

  /**
   * The pooled map: `{rows, columns, bucket, start, at(query, key), share(row, column), error(row,
   * column)}`; a share is of the weights of a bucket's queries, so that a row of buckets sums to one,
   * and `error` is what it may be off by; `at` gives the row and column of buckets of a place;
   * `start` places stand before the first in its bucket. Or null.
   */
  const pooled = (view) => once("pooled", view, () => pooledOf(view));

  async function pooledOf(view) {
    const parts = [];
    for (const [layer, head] of members(view)) {
      const summary = summaryOf(view.example, view.kind, layer);
      if (summary.maps || view.pair) return pooledOfRows(view);
      if (!summary.pooled) return summary.rows ? pooledOfRows(view) : null;
      const array = await open(summary.pooled);
      const [, R, C] = array.shape;
      const start = summary.heads.indexOf(head) * R * C;
      const [values, errors] = [new Float32Array(R * C), new Float32Array(R * C)];
      for (let at = 0; at < R * C; at++) {
        values[at] = array.get(start + at);
        errors[at] = array.error(values[at]);
      }
      parts.push({ values, errors, R, C, bucket: summary.bucket, start: summary.start });
    }
    const mean = (name) => meanOver(parts.map((part) => part[name]));
    return shared({ ...parts[0], values: mean("values"), errors: mean("errors") });
  }

  async function pooledOfRows(view) {
    const { rows: queries, columns } = axes(view);
    const all = await rows(view, queries.map((_, at) => at));
    if (!all) return null;
    const bucket = [queries, columns].map((side) => Math.max(1, Math.ceil(side.length / MAP)));
    const [R, C] = [Math.ceil(queries.length / bucket[0]), Math.ceil(columns.length / bucket[1])];
    const values = new Float32Array(R * C);
    all.forEach((row, query) => {
      const start = Math.floor(query / bucket[0]) * C;
      row.forEach((weight, key) => (values[start + Math.floor(key / bucket[1])] += weight));
    });
    return shared({ values, errors: new Float32Array(R * C), R, C, bucket, start: [0, 0] });
  }

  function shared({ values, errors, R, C, bucket, start }) {
    for (let row = 0; row < R; row++) {
      const [cells, off] = [values, errors].map((all) => all.subarray(row * C, (row + 1) * C));
      const [total, totalOff] = [cells, off].map((all) => all.reduce((sum, value) => sum + value, 0));
      if (!total) continue;
      cells.forEach((value, at) => {
        cells[at] = value / total;
        off[at] = (off[at] + cells[at] * totalOff) / total;
      });
    }
    const at = (row, column) => [Math.floor((row + start[0]) / bucket[0]), Math.floor((column + start[1]) / bucket[1])];
    const read = (all) => (row, column) => all[row * C + column];
    return { rows: R, columns: C, bucket, start, at, share: read(values), error: read(errors) };
  }

  /**
   * What a query looks at most: `{entries: [{at, weight}], isWhole}`, falling; `isWhole` where
   * the whole row was at hand, else only so many were kept. Or null.
   */
  async function top(view, query, most = 8) {
    const found = await rows(view, [query]);
    return found ? { entries: largestOf(found[0], most), isWhole: true } : keptTop(view, query, most);
  }

  /** The same from the kept top keys alone, which is at once: for drawing many rows. */
  async function keptTop(view, query, most = 8) {
    if (typeof view.head !== "number") return null;
    const summary = summaryOf(view.example, view.kind, view.layer);
    const place = summary?.top_keys ? summary.top_heads.indexOf(view.head) : -1;
    if (place < 0) return null;
    const [keys, weights] = await Promise.all([open(summary.top_keys), open(summary.top_weights)]);
    const [, N, K] = keys.shape;
    const start = (place * N + query) * K;
    const spots = Array.from({ length: Math.min(K, most) }, (_, at) => start + at).filter((spot) => keys.get(spot) >= 0);
    return { entries: spots.map((spot) => ({ at: keys.get(spot), weight: weights.get(spot) })), isWhole: false };
  }

  /** The heads of a layer whose largest weights were kept, or all where the rows are held. */
  function topHeads(at, kind, layer) {
    const summary = summaryOf(at, kind, layer);
    if (summary.maps || summary.rows) return heads(at, kind, layer);
    return [...(summary.top_heads ?? [])];
  }

  /** How many of a row's largest weights the document has of a head: all (Infinity), some, or none. */
  function keptOf({ example, kind, layer, head }) {
    if (holdsRows({ example, kind, layer, head })) return Infinity;
    const summary = summaryOf(example, kind, layer);
    const place = (summary?.top_heads ?? []).indexOf(head);
    return place < 0 ? 0 : summary.top_counts?.[place] ?? summary.top_keys.shape[2];
  }

  /** Whether links of single tokens can be drawn of a view: they are in the document, or can be asked for. */
  const canAsk = Boolean(source?.rows);
  const holdsLinks = (view) => canAsk || keptOf(view) > 0;

  /** The view itself if its links are kept, else of the head that has most of them; the sharpest of these. */
  function nearestKept(view) {
    if (holdsLinks(view)) return view;
    const { example, kind } = view;
    const offered = summariesOf(example, kind).flatMap((summary) =>
      heads(example, kind, summary.layer).map((head, place) => {
        const one = { ...view, layer: summary.layer, head };
        return { one, kept: keptOf(one), entropy: summary.measures?.entropy?.[place] ?? Infinity };
      }),
    );
    const here = offered.filter(({ one }) => one.layer === view.layer && keptOf(one));
    const [best] = (here.length ? here : offered).filter(({ kept }) => kept).sort((a, b) => b.kept - a.kept || a.entropy - b.entropy);
    return best?.one ?? view;
  }

  /** The heads whose queries and keys the document has, of a kind or of all. */
  const vectorHeads = (at, kind) => (exampleAt(at).vectors ?? []).filter((one) => !kind || one.kind === kind);
  const vectorsAt = ({ example, kind, layer, head }) => vectorHeads(example, kind).find((one) => one.layer === layer && one.head === head);

  /** The view itself if its queries and keys are there, else of a head that has them, in its layer if there is one. */
  function nearestVectors(view) {
    if (vectorsAt(view)) return view;
    const [first, ...others] = vectorHeads(view.example, view.kind);
    const found = [first, ...others].find((one) => one?.layer === view.layer) ?? first;
    return found ? { ...view, layer: found.layer, head: found.head } : view;
  }

  /** `{query(at), key(at), bias(row, column), scale, softcap}` of a head; vectors as they are multiplied. Or null. */
  async function vectors(view) {
    const found = vectorsAt(view);
    if (!found) return null;
    const [query, key, bias] = await Promise.all([found.query, found.key, found.bias].map((packed) => packed && open(packed)));
    const of = (array) => (at) => Float64Array.from({ length: array.shape[1] }, (_, d) => array.get(at * array.shape[1] + d));
    return { query: of(query), key: of(key), bias: (row, column) => (bias ? bias.get(row * bias.shape[1] + column) : null), scale: found.scale, softcap: found.softcap };
  }

  /** One number per head: a list of `{layer, head, measures: {name: number or null}}`. */
  async function measures(at, kind) {
    const found = [];
    for (const layer of layers(at, kind)) {
      const summary = summaryOf(at, kind, layer);
      for (const [place, head] of heads(at, kind, layer).entries()) {
        if (!summary.maps) {
          const given = Object.entries(summary.measures ?? {}).map(([name, values]) => [name, values[place]]);
          found.push({ layer, head, measures: Object.fromEntries(given) });
        } else found.push({ layer, head, measures: await measuresOfRows({ example: at, kind, layer, head }) });
      }
    }
    return found;
  }

  async function measuresOfRows(view) {
    const { rows: queries, columns, gold } = axes(view);
    const all = await rows(view, queries.map((_, at) => at));
    const seeing = all.filter((row) => row.some((weight) => weight > 0));
    if (!seeing.length) return { entropy: null, first: null, distance: null };
    const mean = (values) => Array.from(values).reduce((sum, value) => sum + value, 0) / seeing.length;
    const isAlone = view.kind !== "cross"; // places in two texts are not comparable
    const found = {
      entropy: mean(seeing.map(entropyOf)),
      first: mean(seeing.map((row) => row[0])),
      distance: isAlone ? mean((await lineOfRows(view, "distance")).values) : null,
      ...(columns.length <= MOST_SCORED ? rolesOf(all, view.kind, columns) : {}),
    };
    return gold.size ? { ...found, alignment_error: alignmentError(all, gold) } : found;
  }

  return {
    data, open, exampleAt, isEmpty, kinds, layers, heads, layerChoices, headChoices, headOffers, withHead, headCount, nearest,
    isNamed, kindName, headOption, viewName, fullName, pairs, axes, holdsRows, rows, map, line, pooled, top, keptTop, keptOf, nearestKept, topHeads, measures, canAsk,
    vectorHeads, nearestVectors, vectors,
  };
}

/**
 * The layers of an example: its summaries; and of heads that were kept as plain numbers `{kind, layer, heads,
 * maps}`, whose `maps` has the rows of a head, or of "mean".
 */
export function layersIn({ maps, summaries = [] }) {
  const found = new Map();
  for (const { kind, layer, head, rows } of maps) {
    const key = `${kind} ${layer}`;
    if (!found.has(key)) found.set(key, { kind, layer, maps: new Map() });
    found.get(key).maps.set(head, rows);
  }
  const mapped = Array.from(found.values(), (one) => {
    const numbers = [...one.maps.keys()].filter((head) => head !== "mean").sort((a, b) => a - b);
    return { ...one, heads: numbers.length ? numbers : ["mean"] };
  });
  return [...summaries, ...mapped];
}

// Everything a document says, read on demand. Views read documents through this only.
//
// A view of a map is `{example, kind, layer, head}`: `example` is its position in the document, layer
// and head are numbers counted from 0, or "mean". Whatever needs unfolding is a promise.

import { createContents } from "./contents.js";
import {
  alignmentError,
  bestOf,
  confidenceOf,
  entropyOf,
  largestOf,
  meanOver,
  mostOf,
  rolesOf,
  sumOf,
} from "./maps.js";
import { unfold } from "./packed.js";

const MAX_CELLS = 512 * 512; // of a matrix that is drawn whole
const MAX_ROWS_REQUESTED = 64; // rows of one request
const MAX_ROWS_CACHED = 4096; // rows of a source in the cache
const MAX_LINES_CACHED = 64; // lines and maps in the cache
const MAX_TOKENS_SCORED = 128; // tokens of a text whose heads the page itself scores
const ROLES = ["previous", "next", "duplicate", "induction", "diagonal"];
const CLEAR = 0.5; // share of a head's weight from which it has a role
const MAP = 64; // buckets along a side, where the page makes the pooled map itself

/**
 * A reader of `data`; `source` gives the rows that the document lacks.
 *
 * @param {import("./contents.js").Document} data
 * @param {any} source
 */
export function createReader(data, source) {
  const contents = createContents(data);
  const { axes, exampleAt, heads, holdsRows, kinds, layers, members, positionsOf, summariesOf, summaryOf } = contents;
  const unfolded = new Map();
  const cache = new Map();
  const rowCache = new Map(); // rows that a source gave
  const sharpestHeads = new Map(); // by example and kind

  function open(packed) {
    if (!unfolded.has(packed)) unfolded.set(packed, unfold(packed));
    return unfolded.get(packed);
  }

  // Lines and pooled maps of a view are needed again at every move of the pointer.
  function once(name, view, make) {
    const key = `${name} ${view.example} ${view.kind} ${view.layer} ${view.head} ${view.pair}`;
    if (!cache.has(key)) {
      if (cache.size >= MAX_LINES_CACHED) cache.delete(cache.keys().next().value);
      cache.set(key, make());
    }
    return cache.get(key);
  }

  /**
   * The exact rows of these queries, or null where nobody has them.
   *
   * @param {import("./contents.js").View} view
   * @param {number[]} queries
   * @returns {Promise<any[] | null>}
   */
  async function rows(view, queries) {
    if (!queries.length) return [];
    const positions = positionsOf(view);
    if (positions) {
      const chosen = queries.map((at) => positions.rows[at]);
      const whole = await rows({ ...view, pair: "" }, chosen);
      return whole?.map((row) => positions.columns.map((at) => row[at])) ?? null;
    }
    if (!holdsRows(view)) return canFetch ? fetchRows(view, queries) : null;
    // Every layer counts alike in their mean, as does every head in a layer's.
    const single = members(view);
    const layerMeans = [];
    for (const layer of new Set(single.map(([layer]) => layer))) {
      const ofLayer = single.filter(([one]) => one === layer);
      const parts = await Promise.all(ofLayer.map(([, head]) => rowsOfHead(view, layer, head, queries)));
      layerMeans.push(queries.map((_, at) => meanOver(parts.map((part) => part[at]))));
    }
    return queries.map((_, at) => meanOver(layerMeans.map((part) => part[at])));
  }

  const allRows = (view) => rows(view, [...axes(view).rows.keys()]);

  async function rowsOfHead(view, layer, head, queries) {
    const summary = summaryOf(view.example, view.kind, layer);
    if (summary.maps) return queries.map((query) => summary.maps.get(head)[query]);
    const array = await open(summary.rows);
    const [, N, M] = array.shape;
    const position = summary.heads.indexOf(head);
    return queries.map((query) => {
      const start = (position * N + query) * M;
      return Float32Array.from({ length: M }, (_, key) => array.get(start + key));
    });
  }

  async function fetchRows(view, queries) {
    const { example, kind, layer, head } = view;
    const nameOfRow = (query) => `${example} ${kind} ${layer} ${head} ${query}`;
    const missing = queries.filter((query) => !rowCache.has(nameOfRow(query)));
    for (let from = 0; from < missing.length; from += MAX_ROWS_REQUESTED) {
      const batch = missing.slice(from, from + MAX_ROWS_REQUESTED);
      const fetched = await source.rows(example, kind, layer, head, batch).catch(() => null);
      if (!fetched) return null;
      if (rowCache.size > MAX_ROWS_CACHED) rowCache.clear();
      batch.forEach((query, at) => rowCache.set(nameOfRow(query), fetched[at]));
    }
    const cached = queries.map((query) => rowCache.get(nameOfRow(query)));
    return cached.every(Boolean) ? cached : null;
  }

  /**
   * The whole matrix with its tokens, or null where it is not held or too large to draw;
   * `error(weight)` is what a weight may be off by.
   */
  const map = (view) => once("map", view, () => mapOf(view));

  async function mapOf(view) {
    const { rows: queries, columns, gold } = axes(view);
    if (!holdsRows(view) || queries.length * columns.length > MAX_CELLS) return null;
    const weights = (await allRows(view)).map((row) => Array.from(row));
    const [largest, best] = [mostOf(weights.map(mostOf)), weights.map(bestOf)];
    const { kind } = view;
    const packed = members(view).map(([layer]) => summaryOf(view.example, kind, layer)?.rows);
    const errors = (await Promise.all(packed.filter(Boolean).map(open))).map((array) => array.error);
    const error = (weight) => Math.max(0, ...errors.map((of) => of(weight)));
    return { kind, rows: queries, columns, weights, largest, error, best, gold };
  }

  /**
   * A value along the text: `name` is "entropy", "distance" or "first" (one per query) or
   * "received" (one per key). `{values, positions}`: a value stands for so many tokens; or null.
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
      parts.push({
        span: summary[name].places,
        values: Float32Array.from({ length }, (_, at) => array.get(start + at)),
      });
    }
    const { span } = parts[0];
    if (parts.some((part) => part.span !== span)) return null;
    return { span, values: meanOver(parts.map((part) => part.values)) };
  }

  async function lineOfRows(view, name) {
    const all = await allRows(view);
    if (!all?.length) return null;
    const of = {
      entropy: entropyOf,
      first: (row) => row[0],
      distance: (row, at) =>
        row.reduce((sum, weight, key) => sum + weight * Math.abs(key - at - row.length + all.length), 0),
    }[name];
    const values = of ? all.map(of) : Array.from(all[0], (_, key) => all.reduce((sum, row) => sum + row[key], 0));
    return { span: 1, values: Float32Array.from(values) };
  }

  /**
   * The pooled map: `{rows, columns, bucket, start, at(query, key), share(row, column), error(row,
   * column)}`; a share is of the weights of a bucket's queries, so that a row of buckets sums to one,
   * and `error` is what it may be off by; `at` gives the row and column of buckets of a position;
   * `start` positions stand before the first in its bucket. Or null.
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
    const all = await allRows(view);
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
      const [total, totalOff] = [cells, off].map((all) => sumOf(all));
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
   * The largest weights of a query: `{entries: [{at, weight}], isWhole}`, falling; `isWhole` where
   * the whole row was at hand, else only so many were stored. Or null.
   */
  async function top(view, query, most = 8) {
    const exact = await rows(view, [query]);
    return exact ? { entries: largestOf(exact[0], most), isWhole: true } : storedTop(view, query, most);
  }

  /** The same from the stored top keys alone, which is at once: for drawing many rows. */
  async function storedTop(view, query, most = 8) {
    if (typeof view.head !== "number") return null;
    const summary = summaryOf(view.example, view.kind, view.layer);
    const position = summary?.top_keys ? summary.top_heads.indexOf(view.head) : -1;
    if (position < 0) return null;
    const [keys, weights] = await Promise.all([open(summary.top_keys), open(summary.top_weights)]);
    const [, N, K] = keys.shape;
    const start = (position * N + query) * K;
    const spots = Array.from({ length: Math.min(K, most) }, (_, at) => start + at).filter(
      (spot) => keys.get(spot) >= 0,
    );
    return { entries: spots.map((spot) => ({ at: keys.get(spot), weight: weights.get(spot) })), isWhole: false };
  }

  /** The heads of a layer whose largest weights were stored, or all where the rows are held. */
  function topHeads(at, kind, layer) {
    const summary = summaryOf(at, kind, layer);
    if (summary.maps || summary.rows) return heads(at, kind, layer);
    return [...(summary.top_heads ?? [])];
  }

  /** How many of a row's largest weights the document has of a head: all (Infinity), some, or none. */
  function storedCount({ example, kind, layer, head }) {
    if (holdsRows({ example, kind, layer, head })) return Infinity;
    const summary = summaryOf(example, kind, layer);
    const position = (summary?.top_heads ?? []).indexOf(head);
    return position < 0 ? 0 : (summary.top_counts?.[position] ?? summary.top_keys.shape[2]);
  }

  /** Whether links of single tokens can be drawn of a view: they are in the document, or can be requested. */
  const canFetch = Boolean(source?.rows);
  const holdsLinks = (view) => canFetch || storedCount(view) > 0;

  /** The view itself if its links are stored, else of the head that has most of them; the sharpest of these. */
  function nearestStored(view) {
    if (holdsLinks(view)) return view;
    const { example, kind } = view;
    const offered = summariesOf(example, kind).flatMap((summary) =>
      heads(example, kind, summary.layer).map((head, position) => {
        const one = { ...view, layer: summary.layer, head };
        return { one, stored: storedCount(one), entropy: summary.measures?.entropy?.[position] ?? Infinity };
      }),
    );
    const here = offered.filter(({ one }) => one.layer === view.layer && storedCount(one));
    const [best] = (here.length ? here : offered)
      .filter(({ stored }) => stored)
      .sort((a, b) => b.stored - a.stored || a.entropy - b.entropy);
    return best?.one ?? view;
  }

  /** The heads whose queries and keys the document has, of a kind or of all. */
  const vectorHeads = (at, kind) => (exampleAt(at).vectors ?? []).filter((one) => !kind || one.kind === kind);
  const vectorsAt = ({ example, kind, layer, head }) =>
    vectorHeads(example, kind).find((one) => one.layer === layer && one.head === head);

  /** The view itself if its queries and keys are there, else of a head that has them, in its layer if there is one. */
  function nearestVectors(view) {
    if (vectorsAt(view)) return view;
    const [first, ...remaining] = vectorHeads(view.example, view.kind);
    const nearestHead = [first, ...remaining].find((one) => one?.layer === view.layer) ?? first;
    return nearestHead ? { ...view, layer: nearestHead.layer, head: nearestHead.head } : view;
  }

  /** `{query(at), key(at), bias(row, column), scale, softcap}` of a head; vectors as they are multiplied. Or null. */
  async function vectors(view) {
    const head = vectorsAt(view);
    if (!head) return null;
    const [query, key, bias] = await Promise.all(
      [head.query, head.key, head.bias].map((packed) => packed && open(packed)),
    );
    const of = (array) => (at) =>
      Float64Array.from({ length: array.shape[1] }, (_, d) => array.get(at * array.shape[1] + d));
    return {
      query: of(query),
      key: of(key),
      bias: (row, column) => (bias ? bias.get(row * bias.shape[1] + column) : null),
      scale: head.scale,
      softcap: head.softcap,
    };
  }

  /** One number per head: a list of `{layer, head, measures: {name: number or null}}`. */
  async function measures(at, kind) {
    const measured = [];
    for (const layer of layers(at, kind)) {
      const summary = summaryOf(at, kind, layer);
      for (const [position, head] of heads(at, kind, layer).entries()) {
        if (!summary.maps) {
          const given = Object.entries(summary.measures ?? {}).map(([name, values]) => [name, values[position]]);
          measured.push({ layer, head, measures: Object.fromEntries(given) });
        } else measured.push({ layer, head, measures: await measuresOfRows({ example: at, kind, layer, head }) });
      }
    }
    return measured;
  }

  async function measuresOfRows(view) {
    const { rows: queries, columns, gold } = axes(view);
    const all = await allRows(view);
    const seeing = all.filter((row) => row.some((weight) => weight > 0));
    if (!seeing.length) return { entropy: null, first: null, distance: null };
    const mean = (values) => sumOf(values) / seeing.length;
    const isAlone = view.kind !== "cross"; // positions in two texts are not comparable
    const confidence = confidenceOf(all, view.kind, queries, columns);
    const roles = {
      entropy: mean(seeing.map(entropyOf)),
      first: mean(seeing.map((row) => row[0])),
      distance: isAlone ? mean((await lineOfRows(view, "distance")).values) : null,
      ...(columns.length <= MAX_TOKENS_SCORED ? rolesOf(all, view.kind, columns) : {}),
      ...(confidence === null ? {} : { confidence }),
    };
    return gold.size ? { ...roles, alignment_error: alignmentError(all, gold) } : roles;
  }

  /**
   * The head with the sharpest links, by its confidence: `{kind, layer, head, value, role, count}`, of so many
   * heads; `role` is the kind of key that has most of its weight, or null. Null where there is one
   * head, where heads are unlike, or where their confidence is not known.
   */
  function sharpest(at, wanted) {
    const kind = kinds(at).includes(wanted) ? wanted : kinds(at)[0];
    const key = `${at} ${kind}`;
    if (!sharpestHeads.has(key)) sharpestHeads.set(key, sharpestOf(at, kind));
    return sharpestHeads.get(key);
  }

  function sharpestOf(example, kind) {
    if (contents.isNamed(example)) return null;
    const { rows: queries, columns } = axes({ example, kind });
    const offered = summariesOf(example, kind).flatMap((summary) =>
      summary.heads.flatMap((head, position) => {
        const weights = summary.maps?.get(head);
        const value = weights
          ? confidenceOf(weights, kind, queries, columns)
          : summary.measures?.confidence?.[position];
        const roles = () =>
          weights
            ? rolesOf(weights, kind, columns)
            : Object.fromEntries(Object.entries(summary.measures).map(([name, values]) => [name, values[position]]));
        return value > 0 && head !== "mean" ? [{ layer: summary.layer, head, value, roles }] : [];
      }),
    );
    if (offered.length < 2) return null;
    const best = offered.reduce((most, one) => (one.value > most.value ? one : most));
    const roles = best.roles();
    const [role = null] = ROLES.filter((name) => roles[name] >= CLEAR).sort((a, b) => roles[b] - roles[a]);
    return { ...best, kind, role, count: offered.length };
  }

  return {
    ...contents,
    data,
    open,
    rows,
    map,
    line,
    pooled,
    top,
    storedTop,
    storedCount,
    nearestStored,
    sharpest,
    topHeads,
    measures,
    canFetch,
    vectorHeads,
    nearestVectors,
    vectors,
  };
}

// What a document contains: its kinds of attention, layers and heads, their names, and the axes of a view.

import { languagesOf } from "../page/dom.js";
import { phrase, t } from "../page/language.js";
import { KINDS, goldOf, layerName, numberOf, sidesOf, tokensIn, tokensOf } from "./maps.js";

/**
 * The parts of a document, as document.py has them; more of what is optional.
 *
 * @typedef {{text: string, start: number, end: number}} Token
 * @typedef {any} Choice a layer or a head: a number from 0, or "mean"
 * @typedef {{example: number, kind?: string, layer?: Choice, head?: Choice, pair?: string}} View
 * @typedef {{kind: string, layer: Choice, head: Choice, rows: number[][]}} HeadMap
 * @typedef {{labels: [string, number][], tags: string[], values: number[], measure: string, side?: string}} Answer
 *
 * @typedef Example
 * @property {string} source
 * @property {string} output
 * @property {Token[]} source_tokens
 * @property {Token[]} output_tokens
 * @property {HeadMap[]} maps
 * @property {any[]} [summaries]
 * @property {number | null} [score]
 * @property {string | null} [label]
 * @property {Answer | null} [answer]
 * @property {{possible: [number, number][], sure: [number, number][]} | null} [gold]
 * @property {any} [search]
 * @property {any} [image]
 * @property {any} [lens]
 * @property {any} [stream]
 * @property {any[]} [circuits]
 * @property {any[]} [feed_forward]
 * @property {string} [sides]
 * @property {boolean} [started]
 * @property {string[]} [head_names]
 * @property {number[]} [segments]
 * @property {any[]} [vectors]
 * @property {any[]} [importances]
 * @property {any[]} [changes]
 * @property {(number | null)[]} [surprise]
 *
 * @typedef Axes
 * @property {Token[]} rows
 * @property {Token[]} columns
 * @property {{rows: string, columns: string}} languages
 * @property {{rows: string, columns: string}} axisNames
 * @property {string} querySide
 * @property {string} keySide
 * @property {string} description
 * @property {Map<string, string>} gold
 * @property {(axis: string) => string} sideOf
 * @property {(axis: string) => number} shift
 * @property {(axis: string, position: number) => number} tokenAt
 * @property {(axis: string, token: number) => number} positionOf
 * @property {(point: any, side: string, token: number | null, isFirm: boolean) => any} pointAt
 *
 * @typedef Document
 * @property {string} format
 * @property {number} version
 * @property {string} title
 * @property {string} task
 * @property {string} model
 * @property {Example[]} examples
 * @property {string | null} [source_language]
 * @property {string | null} [output_language]
 * @property {Record<string, any> | null} [opening]
 * @property {string} [tab]
 */

const PAIRS = ["aa", "ab", "ba", "bb"]; // A attends to A, to B, …

/**
 * The contents of `data`.
 *
 * @param {Document} data
 */
export function createContents(data) {
  const layered = new WeakMap(); // the layers of each example

  const exampleAt = (at) => data.examples[at];

  function layersOf(at) {
    const example = exampleAt(at);
    if (!layered.has(example)) layered.set(example, layersIn(example));
    return layered.get(example);
  }

  const summariesOf = (at, kind) => layersOf(at).filter((summary) => summary.kind === kind);
  const summaryOf = (at, kind, layer) => summariesOf(at, kind).find((summary) => summary.layer === layer);
  const isEmpty = (at) => !layersOf(at).length;

  /** The kinds an example has, in the order they are offered. */
  const kinds = (at) => KINDS.filter((kind) => summariesOf(at, kind).length);

  const layers = (at, kind) =>
    summariesOf(at, kind)
      .map((one) => one.layer)
      .sort((a, b) => a - b);

  /** The heads of a layer, ascending; ["mean"] where only their mean was stored. */
  const heads = (at, kind, layer) => [...(summaryOf(at, kind, layer)?.heads ?? [])];

  /** Whether heads have names: they are unlike, and have no mean. */
  const isNamed = (at) => (exampleAt(at).head_names ?? []).length > 0;

  /** A kind and a head in words, a head as an option, a head with its layer, and with both. */
  const kindName = (at, kind) => t(exampleAt(at).sides === "queries and keys" ? "weights" : `kind.${kind}`);
  const headNamed = (at, head) => exampleAt(at).head_names?.[head] && phrase(exampleAt(at).head_names[head]);
  const headName = (at, head) =>
    headNamed(at, head) ?? (head === "mean" ? t("head.mean") : t("head.number", { number: head + 1 }));
  const headOption = (at, head) => headNamed(at, head) ?? numberOf(head);
  const viewName = (at, layer, head, between = t("list.comma")) => {
    const isOneLayer = isNamed(at) && kinds(at).every((kind) => layers(at, kind).length < 2);
    return [...(isOneLayer ? [] : [layerName(layer)]), headName(at, head)].join(between);
  };
  const fullName = ({ example, kind, layer, head }, between = t("list.comma")) =>
    [kindName(example, kind), viewName(example, layer, head, between)].join(between);

  /** The same, as they are offered: "mean" first where there are several. */
  function layerChoices(at, kind) {
    const numbers = layers(at, kind);
    return numbers.length > 1 && !isNamed(at) ? ["mean", ...numbers] : numbers;
  }

  function headChoices(at, kind, layer) {
    if (isNamed(at)) return heads(at, kind, layer);
    if (layer === "mean") return ["mean"]; // heads of different layers have nothing in common
    const numbers = heads(at, kind, layer);
    return (summaryOf(at, kind, layer)?.maps?.has("mean") || numbers.length > 1) && numbers[0] !== "mean"
      ? ["mean", ...numbers]
      : numbers;
  }

  /** The same where "mean" of the layers stands for all heads of the first: choosing one chooses a layer. */
  function headOffers(at, kind, layer) {
    const choices = headChoices(at, kind, layer);
    return layer === "mean" ? [...new Set(["mean", ...headChoices(at, kind, layers(at, kind)[0])])] : choices;
  }

  /** The view with this head alone; of the mean of all layers, in the first layer that has it. */
  function withHead({ example, kind, layer }, head) {
    const firstLayer =
      layer === "mean" && head !== "mean"
        ? layers(example, kind).find((one) => heads(example, kind, one).includes(head))
        : layer;
    return { layer: firstLayer ?? layer, head, heads: null };
  }

  function headCount(at) {
    const count = (kind) => layers(at, kind).reduce((sum, layer) => sum + heads(at, kind, layer).length, 0);
    return kinds(at).reduce((sum, kind) => sum + count(kind), 0);
  }

  function nearest(at, wish) {
    const nearestOf = (choices, wished) => (choices.includes(wished) ? wished : choices[0]);
    const kind = nearestOf(kinds(at), wish.kind);
    const layer = nearestOf(layerChoices(at, kind), wish.layer);
    return {
      kind,
      layer,
      head: nearestOf(headChoices(at, kind, layer), wish.head),
      pair: pairs(at, kind).includes(wish.pair) ? wish.pair : "",
    };
  }

  /** Of two texts that are read as one, whose attention to whom may be shown alone: "" is all. */
  function pairs(at, kind) {
    if (!exampleAt(at).segments?.length || kind === "cross") return [];
    const layer = layers(at, kind)[0];
    return holdsRows({ example: at, kind, layer, head: heads(at, kind, layer)[0] }) ? ["", ...PAIRS] : [];
  }

  // The positions of the queries and of the keys in a part of a pair, or null for all.
  /** @param {View} view */
  function positionsOf({ example, pair }) {
    if (!pair) return null;
    const of = (text) =>
      exampleAt(example).segments.flatMap((segment, at) => (segment === "ab".indexOf(text) ? [at] : []));
    return { rows: of(pair[0]), columns: of(pair[1]) };
  }

  /**
   * Queries (rows) and keys (columns) of a view; see `tokensIn`.
   *
   * @param {View} view
   * @returns {Axes}
   */
  function axes(view) {
    const example = exampleAt(view.example);
    const positions = positionsOf(view);
    const sides = sidesOf(example, view.kind, data.task);
    const ofTexts = languagesOf(example, data);
    const languages = { rows: ofTexts[sides.querySide], columns: ofTexts[sides.keySide] };
    const whole = {
      ...sides,
      ...tokensOf(example, view.kind),
      ...tokensIn(sides, positions),
      languages,
      gold: goldOf(example, view.kind),
    };
    if (!positions) return whole;
    const rows = positions.rows.map((at) => whole.rows[at]);
    const columns = view.pair[0] === view.pair[1] ? rows : positions.columns.map((at) => whole.columns[at]);
    const axisNames = { rows: t(`pair.${view.pair[0]}`), columns: t(`pair.${view.pair[1]}`) };
    return { ...whole, rows, columns, axisNames, description: t("pair.says", axisNames) };
  }

  /**
   * The single heads that a view is the mean of, as [layer, head].
   *
   * @param {View} view
   * @returns {[Choice, Choice][]}
   */
  function members({ example, kind, layer, head }) {
    const chosen = layer === "mean" ? layers(example, kind) : [layer];
    return chosen.flatMap((one) => {
      return summaryOf(example, kind, one)?.maps?.has(head) || head !== "mean"
        ? [[one, head]]
        : heads(example, kind, one).map((single) => [one, single]);
    });
  }

  // Whether the document itself holds all rows of a view.
  /** @param {View} view */
  function holdsRows(view) {
    return members(view).every(([layer, head]) => {
      const summary = summaryOf(view.example, view.kind, layer);
      return summary?.maps?.has(head) || Boolean(summary?.rows);
    });
  }

  return {
    exampleAt,
    isEmpty,
    kinds,
    layers,
    heads,
    layerChoices,
    headChoices,
    headOffers,
    withHead,
    headCount,
    nearest,
    isNamed,
    kindName,
    headOption,
    viewName,
    fullName,
    pairs,
    axes,
    members,
    positionsOf,
    summariesOf,
    summaryOf,
    holdsRows,
  };
}

/**
 * The layers of an example: its summaries; and of heads that were stored as plain numbers `{kind, layer, heads,
 * maps}`, whose `maps` has the rows of a head, or of "mean".
 *
 * @param {Pick<Example, "maps" | "summaries">} example
 */
export function layersIn({ maps, summaries = [] }) {
  const byLayer = new Map();
  for (const { kind, layer, head, rows } of maps) {
    const key = `${kind} ${layer}`;
    if (!byLayer.has(key)) byLayer.set(key, { kind, layer, maps: new Map() });
    byLayer.get(key).maps.set(head, rows);
  }
  const mapped = Array.from(byLayer.values(), (one) => {
    const numbers = [...one.maps.keys()].filter((head) => head !== "mean").sort((a, b) => a - b);
    return { ...one, heads: numbers.length ? numbers : ["mean"] };
  });
  return [...summaries, ...mapped];
}

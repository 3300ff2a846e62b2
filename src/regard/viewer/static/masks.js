// Masks drawn from their trees, as Python's `parse_tree` and parsing.js give them. A mask is a line in DRAWN.

import { MaskError, rulesOf } from "./parsing.js";

// Whether a query sees a key, for what each rule was given: (given, queries, keys) => (batch, query, key) => …
const DRAWN = {
  causal: ({ first = null }, queries, keys) => near({ after: 0, first }, queries, keys),
  documents: ({ query_ids: ids, key_ids: others = ids }) => {
    const of = (list, batch, at) => (Array.isArray(list[0]) ? list[batch % list.length][at] : list[at]);
    return (batch, query, key) => of(ids, batch, query) === of(others, batch, key);
  },
  lengths: shorter,
  prefix: shorter,
  window: near,
};

/**
 * The mask at these sizes: `{batches, sees(batch, query, key)}`.
 *
 * It is refused, in the words of Python's masks, where the sizes of its lists do not fit.
 */
export function fitMask(tree, queries, keys) {
  const rules = rulesOf(tree);
  const batches = Math.max(...rules.map(batchOf));
  for (const rule of rules) checkRule(rule, batches, queries, keys);
  return { batches, sees: seeing(tree, queries, keys) };
}

/** The drawing of `Mask.draw`: a line per query, blocks for batch rows that differ. */
export function drawMask(fitted, queries, keys) {
  const row = (batch, query) =>
    Array.from({ length: keys }, (_, key) => (fitted.sees(batch, query, key) ? "1" : ".")).join(" ");
  const block = (_, batch) => Array.from({ length: queries }, (_, query) => row(batch, query)).join("\n");
  return Array.from({ length: fitted.batches }, block).join("\n\n");
}

function seeing(tree, queries, keys) {
  if (tree.op === "rule") return DRAWN[tree.name](tree.keywords, queries, keys);
  const parts = tree.args.map((part) => seeing(part, queries, keys));
  if (tree.op === "not") return (...place) => !parts[0](...place);
  if (tree.op === "and") return (...place) => parts.every((sees) => sees(...place));
  return (...place) => parts.some((sees) => sees(...place));
}

function near({ before = null, after = null, first = null }, queries, keys) {
  const start = first ?? keys - queries;
  return (batch, query, key) =>
    (before === null || key >= query + start - before) && (after === null || key <= query + start + after);
}

function shorter({ n }) {
  if (!Array.isArray(n)) return (batch, query, key) => key < n;
  return (batch, query, key) => key < (Array.isArray(n[batch]) ? n[batch][query] : n[batch]);
}

// How many batch rows a rule tells apart.
function batchOf({ name, keywords }) {
  const axes = name === "documents" ? 2 : 1;
  return Math.max(1, ...Object.values(keywords).map(shapeOf).map((shape) => (shape.length < axes ? 1 : shape[0])));
}

function checkRule({ name, keywords: given }, B, N, M) {
  if (!Object.hasOwn(DRAWN, name)) {
    throw new MaskError(`${name} is drawn by Python only: print(mask.draw(${N}, ${M})).`);
  }
  if (name === "documents") {
    for (const [ids, letter, size] of [[given.query_ids, "N", N], [given.key_ids ?? given.query_ids, "M", M]]) {
      const shape = shapeOf(ids);
      if (shape.at(-1) !== size || (shape.length > 1 && shape[0] !== B && shape[0] !== 1)) {
        throw new MaskError(`documents must have shape (${letter},) = (${size},) or (B, ${letter}) = (${B}, ${size}); got ${written(shape)}.`);
      }
    }
  }
  if (!("n" in given)) return;
  const shape = shapeOf(given.n);
  if (!["", `${B}`, `${B},${N}`].includes(String(shape))) {
    throw new MaskError(`${name} must have shape (B,) = (${B},) or (B, N) = (${B}, ${N}); got ${written(shape)}.`);
  }
  const numbers = [given.n].flat(2);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  if (least < 0) throw new MaskError(`${name} must be at least 0; got ${least}.`);
  if (name === "lengths" && most > M) throw new MaskError(`lengths must be at most M = ${M}; got ${most}.`);
}

function shapeOf(value) {
  return Array.isArray(value) ? [value.length, ...shapeOf(value[0])] : [];
}

function written(shape) {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

// Masks written as text, for the playground: the grammar of `parse_mask` (parse.py), read
// here so that a drawing needs no server. Nothing is ever run. The tests hold both together.

const LONGEST = 10_000;
const DEEPEST = 50;
const LARGEST = 2 ** 31 - 1;
const TOKEN = /[ \t\r\n]*(?:(-?[0-9]+)|((?:(?:rg|regard)\.)?[A-Za-z_][A-Za-z_0-9]*)|(.))?/suy;
const SIGNS = "()[],=&|~";

const NUMBER = "a whole number or None";
const NUMBERS = "whole numbers";
const LIST = "a list of whole numbers";
const RULES = {
  causal: { takes: ["first"], allowed: NUMBER },
  documents: { takes: ["query_ids", "key_ids"], allowed: LIST },
  lengths: { takes: ["n"], allowed: NUMBERS },
  prefix: { takes: ["n"], allowed: NUMBERS },
  window: { takes: ["before", "after", "first"], allowed: NUMBER },
};
const UNWRITABLE = { dense: "a tensor", where: "a function" };

/** What is wrong with an expression; `at` is the place of the character, counted from 0. */
export class MaskError extends Error {
  constructor(message, at = null) {
    super(message);
    this.at = at;
  }
}

/**
 * The mask that an expression describes, as a tree: `{name, given}` for a rule, `{not}`, `{both}`
 * and `{either}` for what joins rules.
 */
export function parseMask(text) {
  const length = Array.from(text).length;
  if (length > LONGEST) throw new MaskError(`mask must be at most ${LONGEST} characters long; got ${length}.`);
  return createParser(text).read();
}

/**
 * The mask at these sizes: `{batches, sees(batch, query, key)}`.
 *
 * It is refused, in the words of Python's masks, where the sizes of its lists do not fit.
 */
export function fitMask(mask, queries, keys) {
  const batches = Math.max(1, ...rulesOf(mask).map(batchOf));
  for (const rule of rulesOf(mask)) checkRule(rule, batches, queries, keys);
  return { batches, sees: seeing(mask, queries, keys) };
}

/** The drawing of `Mask.draw`: a line per query, blocks for batch rows that differ. */
export function drawMask(fitted, queries, keys) {
  const row = (batch, query) =>
    Array.from({ length: keys }, (_, key) => (fitted.sees(batch, query, key) ? "1" : ".")).join(" ");
  const block = (_, batch) => Array.from({ length: queries }, (_, query) => row(batch, query)).join("\n");
  return Array.from({ length: fitted.batches }, block).join("\n\n");
}

function rulesOf(mask) {
  if (mask.name) return [mask];
  return (mask.not ? [mask.not] : (mask.both ?? mask.either)).flatMap(rulesOf);
}

function seeing(mask, queries, keys) {
  if (mask.not) {
    const inner = seeing(mask.not, queries, keys);
    return (batch, query, key) => !inner(batch, query, key);
  }
  if (!mask.name) {
    const [one, other] = (mask.both ?? mask.either).map((part) => seeing(part, queries, keys));
    return mask.both
      ? (batch, query, key) => one(batch, query, key) && other(batch, query, key)
      : (batch, query, key) => one(batch, query, key) || other(batch, query, key);
  }
  const { name, given } = mask;
  if (name === "documents") {
    const { query_ids: ids, key_ids: others = ids } = given;
    const of = (list, batch, at) => (Array.isArray(list[0]) ? list[batch % list.length][at] : list[at]);
    return (batch, query, key) => of(ids, batch, query) === of(others, batch, key);
  }
  if (name === "lengths" || name === "prefix") {
    const { n } = given;
    if (!Array.isArray(n)) return (batch, query, key) => key < n;
    return (batch, query, key) => key < (Array.isArray(n[batch]) ? n[batch][query] : n[batch]);
  }
  const first = given.first ?? keys - queries;
  const before = name === "causal" ? null : given.before ?? null;
  const after = name === "causal" ? 0 : given.after ?? null;
  return (batch, query, key) =>
    (before === null || key >= query + first - before) && (after === null || key <= query + first + after);
}

// How many batch rows a rule tells apart.
function batchOf({ name, given }) {
  if (name === "documents") {
    return Math.max(...Object.values(given).map((ids) => (Array.isArray(ids[0]) ? ids.length : 1)));
  }
  return Array.isArray(given.n) ? given.n.length : 1;
}

function checkRule({ name, given }, B, N, M) {
  if (name === "documents") {
    for (const [ids, letter, size] of [[given.query_ids, "N", N], [given.key_ids ?? given.query_ids, "M", M]]) {
      const shape = shapeOf(ids);
      const fits = shape.at(-1) === size && (shape.length === 1 || shape[0] === B || shape[0] === 1);
      if (!fits) {
        throw new MaskError(
          `documents must have shape (${letter},) = (${size},) or (B, ${letter}) = (${B}, ${size}); got ${written(shape)}.`,
        );
      }
    }
  }
  if (!("n" in given)) return;
  const shape = shapeOf(given.n);
  const fits = [[], [B], [B, N]].some((wanted) => String(wanted) === String(shape));
  if (!fits) {
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

// Recursive descent: either, both, operand, and then a rule or parentheses.
function createParser(text) {
  const tokens = tokensOf(text);
  let at = 0;
  let depth = 0;
  const next = () => tokens[at];

  function has(sign) {
    if (next().text !== sign) return false;
    at += 1;
    return true;
  }

  function expect(sign, rule) {
    if (!has(sign)) complain(rule);
  }

  function fail(message, token = next()) {
    throw new MaskError(message, token.start);
  }

  function complain(rule) {
    fail(`mask must have ${rule} here; got ${told(next())}.`);
  }

  const place = (token) => Array.from(text.slice(0, token.start)).length + 1;

  function told(token) {
    return token.text ? `${quoted(token.text)} at character ${place(token)}` : `the end at character ${place(token)}`;
  }

  function read() {
    const mask = either();
    if (next().text) complain("& or | or the end");
    return mask;
  }

  function either() {
    let mask = both();
    while (has("|")) mask = { either: [mask, both()] };
    return mask;
  }

  function both() {
    let mask = operand();
    while (has("&")) mask = { both: [mask, operand()] };
    return mask;
  }

  function operand() {
    depth += 1;
    if (depth > DEEPEST) fail(`mask must be nested at most ${DEEPEST} deep; got more at character ${place(next())}.`);
    let mask = null;
    if (has("~")) mask = { not: operand() };
    else if (has("(")) {
      mask = either();
      expect(")", "& or | or )");
    } else mask = rule();
    depth -= 1;
    return mask;
  }

  function rule() {
    const token = next();
    if (!isName(token)) complain("a mask such as causal()");
    const name = token.text.split(".").at(-1);
    if (Object.hasOwn(UNWRITABLE, name)) {
      fail(`mask must be text; got ${told(token)}, which takes ${UNWRITABLE[name]}. Call rg.${name} in Python.`);
    }
    if (!Object.hasOwn(RULES, name)) {
      fail(`mask must be made of ${Object.keys(RULES).join(", ")}; got ${told(token)}.${hint(name, Object.keys(RULES))}`);
    }
    at += 1;
    expect("(", "(");
    const given = argumentsOf(name);
    const { allowed, takes } = RULES[name];
    if (allowed !== NUMBER && !(takes[0] in given)) {
      fail(`${name} must be given ${takes[0]}; got nothing at character ${place(token)}.`, token);
    }
    for (const side of ["before", "after"]) {
      if ((given[side] ?? 0) < 0) {
        fail(`${side} must be at least 0; got ${given[side]}. It is at character ${place(token)}.`, token);
      }
    }
    return { name, given };
  }

  function argumentsOf(name) {
    const { takes, allowed } = RULES[name];
    const given = {};
    let isNamed = false;
    while (!has(")")) {
      const token = next();
      let argument = null;
      if (isName(token) && token.text !== "None") {
        isNamed = true;
        at += 1;
        if (!takes.includes(token.text)) {
          fail(`${name} must be given ${takes.join(" or ")}; got ${told(token)}.${hint(token.text, takes)}`, token);
        }
        expect("=", "=");
        argument = token.text;
      } else if (isNamed) complain("a name, as after every named argument,");
      else if (Object.keys(given).length < takes.length) argument = takes[Object.keys(given).length];
      else fail(`${name} must be given at most ${takes.length} arguments; got ${told(token)}.`);
      if (argument in given) fail(`${name} must be given ${argument} once; got ${told(token)}.`, token);
      given[argument] = argumentOf(`${argument} of ${name}`, allowed);
      if (next().text !== ")") expect(",", ", or )");
    }
    return given;
  }

  function argumentOf(name, allowed) {
    const token = next();
    const value = valueAt(0);
    const depths = { [NUMBER]: [0], [NUMBERS]: [0, 1, 2], [LIST]: [1, 2] }[allowed];
    if (!depths.includes(depthOf(value)) || (value === null && allowed !== NUMBER)) {
      fail(`${name} must be ${allowed}; got ${told(token)}.`, token);
    }
    return value;
  }

  function valueAt(level) {
    const token = next();
    if (token.text === "None" && level === 0) {
      at += 1;
      return null;
    }
    if (/^-?[0-9]+$/.test(token.text)) {
      at += 1;
      if (token.text.length > 11 || Math.abs(Number(token.text)) > LARGEST) {
        fail(`mask must have numbers up to ${LARGEST}; got ${told(token)}.`, token);
      }
      return Number(token.text);
    }
    if (token.text !== "[" || level === 2) complain(`a whole number${level === 0 ? ", None or a list" : ""}`);
    at += 1;
    const values = [];
    while (!has("]")) {
      values.push(valueAt(level + 1));
      if (next().text !== "]") expect(",", ", or ]");
    }
    return values;
  }

  return { read };
}

function isName(token) {
  return /^[A-Za-z_]/.test(token.text);
}

function tokensOf(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const [, number, name, sign] = TOKEN.exec(text);
    const part = number ?? name ?? sign;
    if (part === undefined) break; // spaces at the end
    const start = TOKEN.lastIndex - part.length;
    if (sign !== undefined && !SIGNS.includes(sign)) {
      const place = Array.from(text.slice(0, start)).length + 1;
      throw new MaskError(`mask must be made of names, numbers and ${SIGNS}; got ${quoted(part)} at character ${place}.`, start);
    }
    found.push({ text: part, start });
  }
  return [...found, { text: "", start: text.length }];
}

function depthOf(value) {
  if (!Array.isArray(value)) return 0;
  const inner = new Set(value.map((each) => `${depthOf(each)} ${each?.length ?? 0}`));
  return inner.size === 1 ? depthOf(value[0]) + 1 : -1;
}

// Text as Python's repr writes it, for what may stand in an expression.
function quoted(text) {
  const escapes = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const inner = Array.from(text, (character) => {
    const code = character.codePointAt(0);
    const isPlain = code > 31 && code !== 127;
    return escapes[character] ?? (isPlain ? character : `\\x${code.toString(16).padStart(2, "0")}`);
  }).join("");
  return text.includes("'") ? `"${inner}"` : `'${inner}'`;
}

function hint(name, names) {
  const found = nearest(name, names);
  return found ? ` Did you mean '${found}'?` : "";
}

// The most similar name, as Python's difflib tells it.
function nearest(name, names) {
  const scored = names.map((each) => [(2 * common(each, name)) / (each.length + name.length), each]);
  const [score, found] = scored.reduce((best, one) =>
    one[0] > best[0] || (one[0] === best[0] && one[1] > best[1]) ? one : best,
  );
  return score >= 0.6 ? found : null;
}

// Characters in common: the longest common piece, then the same to its left and to its right.
function common(one, other) {
  let [most, from, to] = [0, 0, 0];
  for (let a = 0; a < one.length; a++) {
    for (let b = 0; b < other.length; b++) {
      let length = 0;
      while (a + length < one.length && b + length < other.length && one[a + length] === other[b + length]) length++;
      if (length > most) [most, from, to] = [length, a, b];
    }
  }
  if (!most) return 0;
  const left = common(one.slice(0, from), other.slice(0, to));
  return left + most + common(one.slice(from + most), other.slice(to + most));
}

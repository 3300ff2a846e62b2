// Masks written as text, read here too, so that a page without a server can be typed into. It is what
// attention/masks/parse.py does, in its words; what may be written is its table, in grammar.js, which Python makes.
// Nothing is ever run.

import { GRAMMAR } from "./grammar.js";

const { axes: AXES, optional: OPTIONAL, operators: OPERATORS, rules: RULES, unwritable: UNWRITABLE } = GRAMMAR;

/** What is wrong with an expression; `at` is the place of the character, counted from 0. */
export class MaskError extends Error {
  constructor(message, at = null) {
    super(message);
    this.at = at;
  }
}

/** The tree of an expression, as `parse_tree` gives it. */
export function parseMask(text) {
  const length = lengthOf(text);
  if (length > GRAMMAR.longest) throw new MaskError(`mask must be at most ${GRAMMAR.longest} characters long; got ${length}.`);
  const tree = createParser(tokensOf(text)).read();
  for (const { keywords, at } of rulesOf(tree)) {
    for (const side of ["before", "after"]) {
      if ((keywords[side] ?? 0) < 0) {
        throw new MaskError(`${side} must be at least 0; got ${keywords[side]}. It is at character ${at}.`, at - 1);
      }
    }
  }
  return tree;
}

/** The rules of a tree, from left to right. */
export function rulesOf(tree) {
  return tree.op === "rule" ? [tree] : tree.args.flatMap(rulesOf);
}

// Recursive descent: or, and, not, and then a rule or parentheses.
function createParser(tokens) {
  let at = 0;
  let depth = 0;
  const next = () => tokens[at];

  function has(sign) {
    const found = next().text === sign;
    if (found) at += 1;
    return found;
  }

  function expect(sign, rule) {
    if (!has(sign)) complain(rule);
  }

  function complain(rule) {
    fail(`mask must have ${rule} here; got ${told(next())}.`);
  }

  function fail(message, token = next()) {
    throw new MaskError(message, token.start);
  }

  function read() {
    const tree = joined();
    if (next().text) complain("& or | or the end");
    return tree;
  }

  function joined(level = 0) {
    if (level === OPERATORS.length) return operand();
    const [sign, op] = OPERATORS[level];
    const args = [joined(level + 1)];
    while (has(sign)) args.push(joined(level + 1));
    return args.length === 1 ? args[0] : { op, args };
  }

  function operand() {
    depth += 1;
    if (depth > GRAMMAR.deepest) {
      fail(`mask must be nested at most ${GRAMMAR.deepest} deep; got more at character ${next().start + 1}.`);
    }
    let tree = null;
    if (has("~")) tree = { op: "not", args: [operand()] };
    else if (has("(")) {
      tree = joined();
      expect(")", "& or | or )");
    } else tree = rule();
    depth -= 1;
    return tree;
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
    const keywords = argumentsOf(name);
    const { allowed, takes } = RULES[name];
    if (allowed !== OPTIONAL && !(takes[0] in keywords)) {
      fail(`${name} must be given ${takes[0]}; got nothing at character ${token.start + 1}.`, token);
    }
    return { op: "rule", name, keywords, at: token.start + 1 };
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
    const isNone = has("None");
    const value = isNone ? null : valueAt(0);
    if (!AXES[allowed].includes(axesOf(value)) || (isNone && allowed !== OPTIONAL)) {
      fail(`${name} must be ${allowed}; got ${told(token)}.`, token);
    }
    return value;
  }

  function valueAt(level) {
    if (level === 2 || next().text !== "[") return number(level === 0 ? ", None or a list" : "");
    at += 1;
    const values = [];
    while (!has("]")) {
      values.push(valueAt(level + 1));
      if (next().text !== "]") expect(",", ", or ]");
    }
    return values;
  }

  function number(instead) {
    const token = next();
    if (!/^-?[0-9]+$/.test(token.text)) complain(`a whole number${instead}`);
    if (token.text.length > 11 || Math.abs(Number(token.text)) > GRAMMAR.largest) {
      fail(`mask must have numbers up to ${GRAMMAR.largest}; got ${told(token)}.`, token);
    }
    at += 1;
    return Number(token.text);
  }

  return { read };
}

function lengthOf(text) {
  return Array.from(text).length;
}

function isName({ text }) {
  return /^[A-Za-z_]/.test(text);
}

function told({ text, start }) {
  return `${text ? quoted(text) : "the end"} at character ${start + 1}`;
}

// Numbers, names and signs, and an empty one for the end; places are counted in characters.
function tokensOf(text) {
  const pattern = new RegExp(GRAMMAR.token, "suy");
  const found = [];
  let read = 0;
  while (pattern.lastIndex < text.length) {
    const [all, number, name, sign] = pattern.exec(text);
    const part = number ?? name ?? sign;
    read += lengthOf(all);
    if (part === undefined) break; // spaces at the end
    const token = { text: part, start: read - lengthOf(part) };
    if (sign !== undefined && !GRAMMAR.signs.includes(sign)) {
      throw new MaskError(`mask must be made of names, numbers and ${GRAMMAR.signs}; got ${told(token)}.`, token.start);
    }
    found.push(token);
  }
  return [...found, { text: "", start: lengthOf(text) }];
}

// How many axes a value has; -1 if its rows are unlike.
function axesOf(value) {
  if (!Array.isArray(value)) return 0;
  const inner = new Set(value.map((each) => `${axesOf(each)} ${each?.length ?? 0}`));
  return inner.size === 1 ? axesOf(value[0]) + 1 : -1;
}

// Text as Python's repr writes it, for what may stand in an expression.
function quoted(text) {
  const escapes = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const coded = (character) => `\\x${character.codePointAt(0).toString(16).padStart(2, "0")}`;
  const inner = Array.from(text, (each) => escapes[each] ?? (each < " " || each === "\x7f" ? coded(each) : each)).join("");
  return text.includes("'") ? `"${inner}"` : `'${inner}'`;
}

// The most similar name, as Python's difflib tells it.
function hint(name, names) {
  const likeness = (each) => (2 * common(each, name)) / (each.length + name.length);
  const [found] = names.filter((each) => likeness(each) >= 0.6).sort((one, other) => likeness(other) - likeness(one) || (one < other ? 1 : -1));
  return found ? ` Did you mean '${found}'?` : "";
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

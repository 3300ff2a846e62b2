// Elements, made plainly: text only ever enters a page as text. And how a token is written: its
// language, its space marks, and signs that are no text.

// Found by the parser, so that a page holds no web address at all.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

/**
 * What follows the name of an element: attributes and listeners (`onclick: f`) first, if there are any, and then children.
 *
 * @typedef {Record<string, any> | Node | string | false | 0 | null | undefined} Content
 */

/**
 * @template {string} S
 * @typedef {S extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[S] : S extends `${infer N}.${string}` ? Named<N> : HTMLElement} Named
 */

/**
 * An element by its name and classes, such as "p.hint"; a child that is false or null is left out.
 *
 * @template {string} S
 * @param {S} selector
 * @param {...Content} contents
 * @returns {Named<S>}
 */
export function element(selector, ...contents) {
  const [name, ...classes] = selector.split(".");
  const node = document.createElement(name);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  return /** @type {any} */ (furnish(node, contents));
}

/**
 * A shape of a drawing, likewise.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {...Content} contents
 * @returns {SVGElementTagNameMap[K]}
 */
export const shape = (name, ...contents) => /** @type {any} */ (furnish(document.createElementNS(SVG, name), contents));

/** @type {(node: Element, contents: any[]) => Element} */
function furnish(node, contents) {
  const attributes = contents[0]?.constructor === Object ? contents.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...contents.filter(Boolean));
  return node;
}

/** A titled part of a view. */
export const section = (title, ...children) => sectionWith(null, title, ...children);

/** The same with a `tool` next to its title. */
export function sectionWith(tool, title, ...children) {
  const heading = element("h2", title);
  return element(
    "section",
    { "aria-label": title },
    tool ? element("div.titled", heading, tool) : heading,
    ...children,
  );
}

/** A button, whose `label` is text or nodes. */
export const button = (label, onclick, attributes = {}) =>
  element("button", { type: "button", ...attributes, onclick }, ...[label].flat());

/** A button of a sign, whose title says what it does. */
export const signButton = (sign, title, onclick) => button(sign, onclick, { title, "aria-label": title });

/** The head of a table: a column for each name. */
export const headOf = (names) =>
  element("thead", element("tr", ...names.map((name) => element("th", { scope: "col" }, name))));

/** A row of a table: what names it, and its cells, which are text or nodes. */
export const rowOf = (name, cells, attributes = {}) =>
  element("tr", attributes, element("th", { scope: "row" }, name), ...cells.map((cell) => element("td", cell)));

/** A list of names, each with its value or values: pairs of text or nodes. */
export const namedValues = (selector, pairs) =>
  element(selector, ...pairs.map(([name, ...values]) => element("div", element("dt", name), element("dd", ...values))));

/** Radio buttons to be dressed as one strip: `options` are [key, label, tooltip]; `chosen` receives the key. */
export const radios = (name, options, value, chosen) =>
  options.map(([key, label, title]) =>
    element(
      "label",
      { title: title || null, class: title ? "stored" : null },
      element("input", { type: "radio", name, value: key, checked: key === value, onchange: () => chosen(key) }),
      element("span", label),
    ),
  );

/** A choice of a view's setting as a strip of radio buttons under a title. */
export function choice(view, name, title, options, chosen, choose, lang = null) {
  const inputs = radios(`${view}-${name}`, options, chosen, (key) => choose({ [name]: key }));
  const strip = element("div.strip", { role: "radiogroup", "aria-label": title, lang }, ...inputs);
  return element("div.ways", element("span.name", title), strip);
}

/** Gives `host` other children; of a choice among them that is drawn anew, the chosen one keeps the focus. */
export function redraw(host, ...children) {
  const focused = /** @type {HTMLInputElement | null} */ (document.activeElement);
  const name = host.contains(focused) && focused.name;
  host.replaceChildren(...children.filter(Boolean));
  if (name) /** @type {HTMLInputElement | null} */ (host.querySelector(`input[name="${name}"]:checked`))?.focus();
}

/** Gives a node its weight, from which the style sheet mixes its colour. */
export function weigh(node, share) {
  node.style.setProperty("--w", share.toFixed(4));
}

/** Shades a token by a share of −1 to 1; of zero it is plain. */
export function shadeBy(node, share) {
  node.classList.toggle("shaded", share !== 0);
  node.classList.toggle("negative", share < 0);
  if (share !== 0) weigh(node, Math.abs(share));
}

const MARKS = { "▁": "▁", Ġ: "▁", " ": "␣", "\u00a0": "␣", "\n": "↵", "\r": "␍", "\t": "⇥" };
const PART = /^(\S) (\d+\/\d+)$/u; // one of the pieces of one character: see texts.py
/** @type {[string, RegExp][]} */
const SCRIPTS = [
  ["ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ["ko", /\p{Script=Hangul}/u],
  ["zh", /\p{Script=Han}/u],
];

// The language of a text: as declared, or by its script, or none.
const languageOf = (text, declared) => declared ?? SCRIPTS.find(([, script]) => script.test(text))?.[0] ?? null;

/** Both sides' languages; a token shows in the language of its whole sentence. */
export function languagesOf(example, data) {
  const source = languageOf(example.source, data.source_language);
  const output = languageOf(example.output, data.output_language);
  return { source, output, "output so far": output };
}

/** A token as it is shown, spaces marked so gently that one may read over them. */
export function tokenLabel(token, language) {
  const isSign = token.start === token.end;
  const label = element(isSign ? "bdi.token.sign" : "bdi.token", { lang: isSign ? "en" : language });
  const [, piece, number] = (!isSign && token.text.match(PART)) || [null, token.text, null];
  for (const part of piece.split(/([▁Ġ \u00a0\n\r\t]+)/)) {
    if (part === "") continue;
    if (!(part[0] in MARKS)) label.append(part);
    else {
      const marks = [...part].map((mark) => MARKS[mark]).join("");
      label.append(element("span.space", { "aria-hidden": "true" }, marks));
    }
  }
  if (number) label.append(element("small.part", number));
  if (token.text === "") label.append(element("span.space", "∅"));
  return label;
}

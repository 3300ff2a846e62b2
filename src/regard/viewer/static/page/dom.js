// Elements, made plainly: text only ever enters a page as text. And how a token is written: its
// language, its space marks, and signs that are no text.

// Found by the parser, so that a page holds no web address at all.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

/**
 * An element with attributes, listeners (`onclick: f`) and children (nodes or text).
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} attributes
 * @param {...(Node | string)} children
 */
export function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/**
 * A shape of a drawing, likewise.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} attributes
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function shape(name, attributes = {}, ...children) {
  return /** @type {any} */ (furnish(document.createElementNS(SVG, name), attributes, children));
}

/**
 * @template {Element} E
 * @param {E} node
 * @param {Record<string, any>} attributes
 * @param {(Node | string)[]} children
 */
function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A titled part of a view; a `tool` may stand next to its title. */
export function section(title, tool, ...children) {
  const heading = element("h2", {}, title);
  return element(
    "section",
    { "aria-label": title },
    tool ? element("div", { class: "titled" }, heading, tool) : heading,
    ...children,
  );
}

/** A button of a sign, whose title says what it does. */
export const signButton = (sign, title, onclick) =>
  element("button", { type: "button", title, "aria-label": title, onclick }, sign);

/** The head of a table: a column for each name. */
export function headOf(names) {
  return element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name))));
}

/** Radio buttons to be dressed as one strip: `options` are [key, label, tooltip]; `chosen` receives the key. */
export function radios(name, options, value, chosen) {
  return options.map(([key, label, tooltip = null]) => {
    const input = element("input", {
      type: "radio",
      name,
      value: key,
      checked: key === value,
      onchange: () => chosen(key),
    });
    return element(
      "label",
      { title: tooltip || null, class: tooltip ? "stored" : null },
      input,
      element("span", {}, label),
    );
  });
}

/** A choice of a view's setting as a strip of radio buttons under a title. */
export function choice(view, name, title, options, chosen, choose, language = null) {
  const strip = element(
    "div",
    { class: "strip", role: "radiogroup", "aria-label": title, lang: language },
    ...radios(`${view}-${name}`, options, chosen, (key) => choose({ [name]: key })),
  );
  return element("div", { class: "ways" }, element("span", { class: "name" }, title), strip);
}

/** Gives `host` other children; of a choice among them that is drawn anew, the chosen one keeps the focus. */
export function redraw(host, ...children) {
  const focused = /** @type {HTMLInputElement | null} */ (document.activeElement);
  const name = host.contains(focused) && focused.name;
  host.replaceChildren(...children);
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

/** The language of a text: as declared, or by its script, or none. */
export function languageOf(text, declared) {
  const match = SCRIPTS.find(([, script]) => script.test(text));
  return declared ?? (match ? match[0] : null);
}

/** Both sides' languages; a token shows in the language of its whole sentence. */
export function languagesOf(example, data) {
  const source = languageOf(example.source, data.source_language);
  const output = languageOf(example.output, data.output_language);
  return { source, output, "output so far": output };
}

/** A token as it is shown, spaces marked so gently that one may read over them. */
export function tokenLabel(token, language) {
  const isSign = token.start === token.end;
  const label = element("bdi", { class: isSign ? "token sign" : "token", lang: isSign ? "en" : language });
  const [, piece, number] = (!isSign && token.text.match(PART)) || [null, token.text, null];
  for (const part of piece.split(/([▁Ġ \u00a0\n\r\t]+)/)) {
    if (part === "") continue;
    if (!(part[0] in MARKS)) label.append(part);
    else {
      const marks = [...part].map((mark) => MARKS[mark]).join("");
      label.append(element("span", { class: "space", "aria-hidden": "true" }, marks));
    }
  }
  if (number) label.append(element("small", { class: "part" }, number));
  if (token.text === "") label.append(element("span", { class: "space" }, "∅"));
  return label;
}

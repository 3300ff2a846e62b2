// A text that flows as prose, whose tokens are shaded and can be pointed at. Only what is near the
// screen has an element for each token; the rest is plain text, so that long texts scroll smoothly.

import { within } from "../data/maps.js";
import { element, shadeBy } from "../page/dom.js";

const BLOCK = 256; // tokens of a paragraph, about
const SLACK = 64; // tokens within which a paragraph may wait for the end of a sentence
const ENDS = /[.!?。！？…\n]["'”’」』)]*$/u;

/**
 * A text inside `host`. `point(position, isFirm)` receives the position of a token, or null.
 *
 * `show` takes tokens with their positions in the text (or without any: then the tokens themselves
 * are the text; `hasSigns` shows those that are no text too), `shade` a function from a token's position to its share of −1 to 1, and `mark` the
 * positions of tokens to bring out.
 *
 * @param {HTMLElement} host
 * @param {object} options
 * @param {(position: number | null, isFirm: boolean) => void} options.point
 * @param {string} [options.label]
 * @param {boolean} [options.hasSigns]
 */
export function createProse(host, { point, label, hasSigns = true }) {
  const text = element("div.prose", { role: "group", "aria-label": label, tabindex: "0" });
  host.append(text);
  let blocks = [];
  let tokens = [];
  /** @type {(position: number) => number} */
  let shareOf = () => 0;
  let marked = new Set();
  let cursor = -1;
  let hasNumbers = false;
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const block = blocks[Number(/** @type {HTMLElement} */ (entry.target).dataset.block)];
        if (!block || block.node !== entry.target) continue;
        if (entry.isIntersecting) fill(block);
        else if (block.spans && blocks.length > 8 && !block.node.contains(document.activeElement)) empty(block);
      }
    },
    { rootMargin: "600px 0px" },
  );

  text.addEventListener("pointerover", (event) => pointFrom(event, false));
  text.addEventListener("pointerleave", () => point(null, false));
  text.addEventListener("click", (event) => pointFrom(event, true));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && cursor >= 0) point(cursor, true);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? tokens.length - 1 : null;
    if ((by === undefined && to === null) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const forward = getComputedStyle(text).direction === "rtl" && event.key.match(/Left|Right/) ? -by : by;
    const next = within(to ?? (cursor < 0 ? 0 : cursor + forward), tokens.length);
    reveal(next);
    cursor = next;
    point(next, true);
  });

  function pointFrom(event, isFirm) {
    const at = event.target.dataset?.at;
    if (at !== undefined) point(Number(at), isFirm);
  }

  function show(next, whole, language) {
    near.disconnect();
    tokens = next;
    marked = new Set();
    cursor = -1;
    text.lang = language ?? "";
    text.dir = "auto";
    blocks = blocksOf(tokens, whole, hasSigns);
    hasNumbers = blocks.length > 2;
    text.classList.toggle("numbered", hasNumbers);
    text.replaceChildren(
      ...blocks.map((block, at) => {
        block.node = element("p", {
          "data-block": at,
          "data-number": hasNumbers ? (block.first + 1).toLocaleString("en") : null,
        });
        block.node.append(plainOf(block));
        return block.node;
      }),
    );
    for (const block of blocks) near.observe(block.node);
    if (blocks.length) fill(blocks[0]);
  }

  function fill(block) {
    if (block.spans) return;
    block.spans = block.parts.map(({ at, before, surface, isSign }) => {
      const span = element("span", { "data-at": at, class: isSign ? "sign" : null }, surface);
      return [before, span, at];
    });
    block.node.replaceChildren(...block.spans.flatMap((one) => one.slice(0, 2)), block.rest);
    for (const [, span, at] of block.spans) dress(span, at);
  }

  function empty(block) {
    block.spans = null;
    block.node.replaceChildren(plainOf(block));
  }

  function dress(span, at) {
    shadeBy(span, shareOf(at));
    span.classList.toggle("marked", marked.has(at));
  }

  function dressAll() {
    for (const block of blocks) for (const [, span, at] of block.spans ?? []) dress(span, at);
  }

  /** Shades every token by `share(at)`, from −1 to 1. */
  function shade(share) {
    shareOf = share;
    dressAll();
  }

  function mark(positions) {
    marked = new Set(positions);
    if (positions.length === 1) [cursor] = positions;
    for (const block of blocks)
      for (const [, span, at] of block.spans ?? []) span.classList.toggle("marked", marked.has(at));
  }

  function reveal(at) {
    const block = blocks.find(({ first, last }) => at >= first && at <= last);
    if (!block) return;
    fill(block);
    const span = block.spans.find(([, , position]) => position === at)?.[1] ?? block.node;
    const { top, bottom } = span.getBoundingClientRect();
    if (top < 120 || bottom > innerHeight - 20) span.scrollIntoView({ block: "center" });
  }

  /** The tokens near the screen, of a short text all: `{text, before, share}`. */
  const shaded = () =>
    blocks
      .filter((block) => block.spans)
      .flatMap((block) =>
        block.parts.map(({ at, before, surface }) => ({ text: surface, before, share: shareOf(at) })),
      );

  return { node: text, shaded, show, shade, mark, reveal, focus: () => text.focus(), destroy: () => near.disconnect() };
}

/** Shades the tokens at the end "rows" or "columns" of `axes` in the texts of an example, `{side: prose}`, by their positions. */
export function shadeTexts(proses, { sideOf, tokenAt }, end, shares) {
  const ofTokens = new Map(Array.from(shares, ([position, share]) => [tokenAt(end, position), share]));
  for (const [side, prose] of Object.entries(proses))
    prose.shade(side === sideOf(end) ? (token) => ofTokens.get(token) ?? 0 : () => 0);
}

/** Marks the tokens at `positions`, lists of rows and of columns, in the texts. */
export function markTexts(proses, { sideOf, tokenAt }, positions) {
  for (const [side, prose] of Object.entries(proses)) {
    prose.mark(
      ["rows", "columns"].flatMap((axis) =>
        side === sideOf(axis) ? positions[axis].map((position) => tokenAt(axis, position)) : [],
      ),
    );
  }
}

function plainOf(block) {
  return block.parts.map(({ before, surface }) => before + surface).join("") + block.rest;
}

// Offsets count code points, so the text is cut as a list of them. A token that overlaps the one
// before it, or is no text, has no letters of its own; without any positions, tokens are the text.
function blocksOf(tokens, whole, hasSigns) {
  const characters = Array.from(whole);
  const hasPositions = tokens.some((token) => token.end > token.start);
  const blocks = [];
  let done = 0;
  let block = null;
  tokens.forEach((token, at) => {
    const size = block ? at - block.first : 0;
    const isOver = block && size >= BLOCK && (size >= BLOCK + SLACK || ENDS.test(block.parts.at(-1).surface.trim()));
    if (!block || isOver) {
      block = { first: at, last: at, parts: [], rest: "", spans: null };
      blocks.push(block);
    }
    block.last = at;
    const isSign = token.start === token.end;
    if (!hasPositions)
      block.parts.push({ at, before: "", surface: token.text.replaceAll(/[▁Ġ]/g, " "), isSign: false });
    else if (isSign || token.start < done) {
      if (isSign && hasSigns) block.parts.push({ at, before: " ", surface: token.text, isSign: true });
    } else {
      const between = characters.slice(done, token.start).join("");
      const before = block.parts.length ? between : between.trimStart();
      block.parts.push({ at, before, surface: characters.slice(token.start, token.end).join(""), isSign: false });
      done = token.end;
    }
  });
  const rest = hasPositions ? characters.slice(done).join("") : "";
  if (blocks.length) blocks.at(-1).rest = rest;
  return blocks;
}

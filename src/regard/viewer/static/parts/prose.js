// A text that flows as prose, whose tokens are shaded and can be pointed at. Only what is near the
// screen has an element for each token; the rest is plain text, so that long texts scroll smoothly.

import { within } from "../data/maps.js";
import { element, shadeBy } from "../page/dom.js";

const BLOCK = 256; // tokens of a paragraph, about
const SLACK = 64; // tokens within which a paragraph may wait for the end of a sentence
const ENDS = /[.!?。！？…\n]["'”’」』)]*$/u;

/**
 * A text inside `host`. `point(place, isFirm)` is told the place of a token, or null.
 *
 * `show` takes tokens with their places in the text (or without any: then the tokens themselves
 * are the text; `hasSigns` shows those that are no text too), `shade` a function from a token's place to its share of −1 to 1, and `mark` the
 * places of tokens to bring out.
 */
export function createProse(host, { point, label, hasSigns = true }) {
  const text = element("div", { class: "prose", role: "group", "aria-label": label, tabindex: "0" });
  host.append(text);
  let blocks = [];
  let tokens = [];
  let shareOf = () => 0;
  let marked = new Set();
  let cursor = -1;
  let hasNumbers = false;
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const block = blocks[Number(entry.target.dataset.block)];
        if (!block || block.node !== entry.target) continue;
        if (entry.isIntersecting) fill(block);
        else if (block.spans && blocks.length > 8 && !block.node.contains(document.activeElement)) empty(block);
      }
    },
    { rootMargin: "600px 0px" },
  );

  text.addEventListener("pointerover", (event) => tell(event, false));
  text.addEventListener("pointerleave", () => point(null, false));
  text.addEventListener("click", (event) => tell(event, true));
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

  function tell(event, isFirm) {
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
    text.replaceChildren(...blocks.map((block, at) => {
      block.node = element("p", { "data-block": at, "data-number": hasNumbers ? (block.first + 1).toLocaleString("en") : null });
      block.node.append(plainOf(block));
      return block.node;
    }));
    for (const block of blocks) near.observe(block.node);
    if (blocks.length) fill(blocks[0]);
  }

  function fill(block) {
    if (block.spans) return;
    block.spans = block.parts.map(({ at, before, shown, isSign }) => {
      const span = element("span", { "data-at": at, class: isSign ? "sign" : null }, shown);
      return [before, span, at];
    });
    block.node.replaceChildren(...block.spans.flatMap(([before, span]) => [before, span]), block.rest);
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

  function mark(places) {
    marked = new Set(places);
    if (places.length === 1) [cursor] = places;
    for (const block of blocks) for (const [, span, at] of block.spans ?? []) span.classList.toggle("marked", marked.has(at));
  }

  function reveal(at) {
    const block = blocks.find(({ first, last }) => at >= first && at <= last);
    if (!block) return;
    fill(block);
    const span = block.spans.find(([, , place]) => place === at)?.[1] ?? block.node;
    const { top, bottom } = span.getBoundingClientRect();
    if (top < 120 || bottom > innerHeight - 20) span.scrollIntoView({ block: "center" });
  }

  return { node: text, show, shade, mark, reveal, focus: () => text.focus(), destroy: () => near.disconnect() };
}

/** Shades the tokens at the end "rows" or "columns" of `axes` in the texts of an example, `{side: prose}`, by their places. */
export function shadeTexts(proses, { sideOf, tokenAt }, end, shares) {
  const ofTokens = new Map(Array.from(shares, ([place, share]) => [tokenAt(end, place), share]));
  for (const [side, prose] of Object.entries(proses)) prose.shade(side === sideOf(end) ? (token) => ofTokens.get(token) ?? 0 : () => 0);
}

/** Marks the tokens at `places`, lists of rows and of columns, in the texts. */
export function markTexts(proses, { sideOf, tokenAt }, places) {
  for (const [side, prose] of Object.entries(proses)) {
    prose.mark(["rows", "columns"].flatMap((axis) => (side === sideOf(axis) ? places[axis].map((place) => tokenAt(axis, place)) : [])));
  }
}

function plainOf(block) {
  return block.parts.map(({ before, shown }) => before + shown).join("") + block.rest;
}

// Offsets count code points, so the text is cut as a list of them. A token that overlaps the one
// before it, or is no text, has no letters of its own; without any places, tokens are the text.
function blocksOf(tokens, whole, hasSigns) {
  const characters = Array.from(whole);
  const hasPlaces = tokens.some((token) => token.end > token.start);
  const blocks = [];
  let done = 0;
  let block = null;
  tokens.forEach((token, at) => {
    const size = block ? at - block.first : 0;
    const isOver = block && size >= BLOCK && (size >= BLOCK + SLACK || ENDS.test(block.parts.at(-1).shown.trim()));
    if (!block || isOver) {
      block = { first: at, last: at, parts: [], rest: "", spans: null };
      blocks.push(block);
    }
    block.last = at;
    const isSign = token.start === token.end;
    if (!hasPlaces) block.parts.push({ at, before: "", shown: token.text.replaceAll(/[▁Ġ]/g, " "), isSign: false });
    else if (isSign || token.start < done) {
      if (isSign && hasSigns) block.parts.push({ at, before: " ", shown: token.text, isSign: true });
    } else {
      const between = characters.slice(done, token.start).join("");
      const before = block.parts.length ? between : between.trimStart();
      block.parts.push({ at, before, shown: characters.slice(token.start, token.end).join(""), isSign: false });
      done = token.end;
    }
  });
  const rest = hasPlaces ? characters.slice(done).join("") : "";
  if (blocks.length) blocks.at(-1).rest = rest;
  return blocks;
}

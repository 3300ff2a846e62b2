// Two lines of tokens with links between them, keys above, queries below; or one line of a text that looks at itself, with
// arcs: above it a token looks back, below it ahead. For texts of any length: only what is in sight has elements and links.

import { button, element, shadeBy, shape, tokenLabel, weigh } from "../page/dom.js";
import { chosenOf, nameOf, within } from "../data/maps.js";
import { textAt } from "../page/exporting.js";
import { t } from "../page/language.js";
import { COLOURS, dashOf, headInk, inks, sized } from "../page/palette.js";
import { after, arc, curve, isRightToLeft, measured } from "./geometry.js";

const OVERSCAN = 200; // pixels beyond the frame that tokens stay in the page
const WIDEST = 6; // pixels of a link
const WIDEST_OF_MANY = 3.5; // where heads are overlaid
const LANES = 9; // pixels that the links of heads stand apart to each side
const NARROWEST = 450; // pixels that few tokens spread over
/** @type {[number, string, number][]} */
const DENSITIES = [
  [14, "roomy", 14],
  [40, "medium", 6],
  [Infinity, "dense", 4],
]; // up to so many tokens; pixels between

/**
 * Lines and links inside `host`. `point(position, isFirm)` receives the position that is pointed at, and
 * `onVisible({rows, columns})` which positions are in sight, `[first, last]` of each line, when they change. Of
 * few tokens (`areFew`) both lines spread over the same width. With `joins`, a text that looks at itself is one line.
 *
 * @param {HTMLElement} host
 * @param {object} options
 * @param {(position: any, isFirm: boolean) => void} options.point
 * @param {(visible: {rows: number[], columns: number[]}) => void} [options.onVisible]
 * @param {boolean} [options.areFew]
 * @param {boolean} [options.joins]
 */
export function createLines(host, { point, onVisible = () => {}, areFew = false, joins = false }) {
  const sides = { columns: createSide("columns"), rows: createSide("rows") };
  const names = [element("p.side"), element("p.side")];
  const drawing = shape("svg", { class: "links", "aria-hidden": "true" });
  const below = element("div.below", { hidden: true }); // room for arcs
  const sheet = element("div.sheet", sides.columns.node, drawing, sides.rows.node, below);
  const extent = element("div.extent", sheet);
  const frame = element("div.frame", { tabindex: "-1" }, extent);
  const overview = element("canvas.overview", { "aria-hidden": "true", onclick: (event) => jump(event) });
  host.append(element("div.lines", names[0], frame, names[1], overview));
  let links = [];
  let highlighted = null; // the position whose links are brought out
  let foremost = null; // the head whose links are
  let isJoined = false;
  let ends = []; // what the overview ticks: [{side, at, share}]
  let lastVisible = "";
  let [frames, isGone] = [0, false];

  frame.addEventListener("scroll", () => {
    frames ||= requestAnimationFrame(() => {
      frames = 0;
      layOut();
    });
  });

  function createSide(name) {
    const node = element("div", { class: `line ${name}`, role: "group" });
    const side = {
      name,
      node,
      tokens: [],
      language: null,
      starts: new Float64Array(1),
      gap: 0,
      isBackwards: false,
      offset: 0,
      buttons: new Map(),
      current: 0,
      shares: () => 0,
      marked: new Set(),
      hits: new Set(),
      isFaded: () => false,
    };
    const at = (event) => Number(event.target.closest("button")?.dataset.at ?? -1);
    const positionOf = (number) => ({ row: null, column: null, [name === "rows" ? "row" : "column"]: number });
    const pointFrom = (isFirm) => (event) => at(event) >= 0 && point(positionOf(at(event)), isFirm);
    node.addEventListener("pointerover", pointFrom(false));
    node.addEventListener("pointerleave", () => point(null, false));
    node.addEventListener("click", (event) => {
      if (at(event) >= 0) side.current = at(event);
      pointFrom(true)(event);
    });
    node.addEventListener("focusin", (event) => {
      if (at(event) < 0 || /** @type {HTMLElement} */ (event.target).matches(":active")) return;
      side.current = at(event);
      point(positionOf(at(event)), true);
    });
    node.addEventListener("keydown", (event) => walk(event, side));
    return side;
  }

  function walk(event, side) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const other = side === sides.rows ? sides.columns : sides.rows;
    const forward = side.isBackwards ? -1 : 1;
    const across = Math.round((side.current / Math.max(1, side.tokens.length)) * other.tokens.length);
    const next = {
      ArrowLeft: [side, side.current - forward],
      ArrowRight: [side, side.current + forward],
      ArrowDown: side === sides.columns ? [other, isSquare() ? side.current : across] : null,
      ArrowUp: side === sides.rows && !isJoined ? [other, isSquare() ? side.current : across] : null,
      Home: [side, 0],
      End: [side, side.tokens.length - 1],
      PageDown: [side, side.current + 50],
      PageUp: [side, side.current - 50],
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next) focusToken(next[0], next[1]);
  }

  const isSquare = () => sides.rows.tokens.length === sides.columns.tokens.length;

  function focusToken(side, target) {
    if (!side.tokens.length) return;
    side.current = within(target, side.tokens.length);
    bring(side, side.current);
    side.buttons.get(side.current)?.focus({ preventScroll: true });
  }

  /** Sets both lines, to the tokens of `axes`; `columnsKey` and `rowsKey` say what they are called. */
  function build(axes, columnsKey = "line.keys", rowsKey = "line.queries") {
    if (isGone) return;
    const most = Math.max(axes.columns.length, axes.rows.length);
    const [, density, gap] = DENSITIES.find(([size]) => most <= size);
    isJoined = joins && axes.rows === axes.columns;
    sides.columns.node.hidden = names[0].hidden = isJoined;
    below.hidden = true;
    drawing.classList.toggle("over", isJoined);
    /** @type {HTMLElement} */ (host.firstChild).dataset.density = density;
    for (const [side, label, key] of /** @type {[any, Element, string][]} */ ([
      [sides.columns, names[0], columnsKey],
      [sides.rows, names[1], isJoined ? null : rowsKey],
    ])) {
      for (const token of side.buttons.values()) token.remove();
      side.buttons.clear();
      Object.assign(side, { tokens: axes[side.name], language: axes.languages[side.name], gap, current: 0 });
      Object.assign(side, { marked: new Set(), shares: () => 0, isFaded: () => false });
      side.isBackwards = isRightToLeft(side);
      side.starts = measured(side.tokens, side.node, gap);
      const name = axes.axisNames[side.name];
      label.textContent = key ? t(key, { side: name }) : name;
      side.node.setAttribute("aria-label", label.textContent);
    }
    [links, highlighted, foremost, ends, lastVisible] = [[], null, null, [], ""];
    drawing.replaceChildren();
    if (areFew) spread();
    fit();
    frame.scrollLeft = sides.rows.isBackwards && sides.columns.isBackwards ? frame.scrollWidth : 0;
    layOut();
  }

  function spread() {
    const both = Object.values(sides);
    const whole = Math.max(Math.min(NARROWEST, width()), ...both.map(lengthOf));
    for (const side of both) {
      const more = (whole - lengthOf(side)) / Math.max(1, side.tokens.length);
      side.starts = side.starts.map((start, at) => start + at * more);
      side.gap += more;
    }
  }

  const lengthOf = (side) => side.starts[side.tokens.length];
  const width = () => frame.clientWidth;

  /** The frame, the theme or the font is another. */
  function fit() {
    if (!sides.rows.starts.length) return;
    const whole = Math.max(lengthOf(sides.columns), lengthOf(sides.rows));
    extent.style.width = `${Math.max(whole, 1)}px`;
    sheet.style.width = `${width()}px`;
    overview.hidden = whole <= width();
    layOut();
  }

  // Both lines scroll as one; the shorter goes slower, so that both end together.
  function layOut() {
    const room = Math.max(1, frame.scrollWidth - width());
    const share = Math.min(1, frame.scrollLeft / room);
    for (const side of [sides.columns, sides.rows]) {
      const beyond = lengthOf(side) - width();
      side.offset = beyond > 0 ? directed(side, share) * beyond : beyond / 2;
      lay(side);
    }
    const visible = { rows: visibleRange(sides.rows), columns: visibleRange(sides.columns) };
    if (JSON.stringify(visible) !== lastVisible) {
      lastVisible = JSON.stringify(visible);
      onVisible(visible);
    }
    paint();
  }

  const directed = (side, share) =>
    side.isBackwards && !(sides.rows.isBackwards && sides.columns.isBackwards) ? 1 - share : share;

  const leftOf = (side, at) =>
    (side.isBackwards ? lengthOf(side) - side.starts[at + 1] : side.starts[at]) - side.offset;
  const rightOf = (side, at) => leftOf(side, at) + side.starts[at + 1] - side.starts[at];
  const middleOf = (side, at) => (leftOf(side, at) + rightOf(side, at)) / 2;

  function visibleRange(side) {
    if (!side.tokens.length) return [0, -1];
    const [from, to] = side.isBackwards
      ? [lengthOf(side) - side.offset - width(), lengthOf(side) - side.offset]
      : [side.offset, side.offset + width()];
    return [Math.max(0, after(side.starts, from) - 1), Math.min(side.tokens.length - 1, after(side.starts, to))];
  }

  function lay(side) {
    const { tokens, buttons } = side;
    if (!tokens.length || side.node.hidden) return;
    const overscan = Math.min(60, Math.ceil(OVERSCAN / 20));
    const [first, last] = visibleRange(side);
    const [from, to] = [Math.max(0, first - overscan), Math.min(tokens.length - 1, last + overscan)];
    for (const [at, button] of buttons) {
      if ((at < from || at > to) && button !== document.activeElement) {
        button.remove();
        buttons.delete(at);
      }
    }
    for (let at = from; at <= to; at++) {
      if (!buttons.has(at)) {
        const label = tokenLabel(tokens[at], side.language);
        const token = button(label, null, { "data-at": at, tabindex: "-1", title: nameOf(tokens[at]) });
        token.style.width = `${side.starts[at + 1] - side.starts[at] - side.gap}px`;
        buttons.set(at, token);
        side.node.append(token);
        dress(side, at);
      }
    }
    for (const [at, button] of buttons) {
      button.style.transform = `translateX(${(leftOf(side, at) + side.gap / 2).toFixed(1)}px)`;
      button.tabIndex = at === side.current || (at === from && !(side.current >= from && side.current <= to)) ? 0 : -1;
    }
  }

  function dress(side, at) {
    const button = side.buttons.get(at);
    shadeBy(button, side.shares(at));
    button.classList.toggle("marked", side.marked.has(at));
    button.classList.toggle("hit", side.hits.has(at));
    button.classList.toggle("faded", side.isFaded(at));
  }

  /** Fades queries where `isFaded(row)`: what is not written yet. */
  function fade(isFaded) {
    sides.rows.isFaded = isFaded;
    for (const position of sides.rows.buttons.keys()) dress(sides.rows, position);
  }

  /** Outlines what was searched for: `{rows, columns}`, lists of positions. */
  function find(hits) {
    for (const side of [sides.rows, sides.columns]) {
      side.hits = new Set(hits[side.name]);
      for (const position of side.buttons.keys()) dress(side, position);
    }
  }

  // What was under way ends: a line outside the page has no widths.
  function destroy() {
    isGone = true;
    cancelAnimationFrame(frames);
  }

  /**
   * Draws these links: `[{row, column, share, head, lane}]`; shares are 0 to 1. A link of a head has its colour and,
   * so that equal links of heads are all seen, a lane from −1 to 1.
   */
  function draw(next) {
    if (isGone) return;
    links = [...next].sort((a, b) => a.share - b.share);
    if (isJoined && links.some(isAhead)) below.hidden = false;
    drawing.replaceChildren(...links.map(pathOf));
    paint();
  }

  /**
   * Brings out the links of a position; `shares` is what shades the tokens of the other line, as
   * `{rows: Map, columns: Map}` from positions to shares.
   */
  function mark(where, shares) {
    const { rows, columns } = chosenOf(where ?? {});
    highlighted = rows.length + columns.length ? { rows: new Set(rows), columns: new Set(columns) } : null;
    ends = [];
    for (const [side, map] of [
      [sides.rows, shares?.rows],
      [sides.columns, shares?.columns],
    ]) {
      side.marked = isJoined ? new Set([...rows, ...columns]) : (highlighted?.[side.name] ?? new Set());
      const shown = isJoined ? (shares?.rows ?? shares?.columns) : map;
      side.shares = (position) => shown?.get(position) ?? 0;
      for (const position of side.buttons.keys()) dress(side, position);
      for (const [position, share] of map ?? []) ends.push({ side, at: position, share });
    }
    paint();
  }

  /** Brings out the links of a head, or of all of them (null). */
  function light(head) {
    foremost = head;
    paint();
  }

  const isHighlighted = (link) =>
    (foremost === null || link.head === foremost) &&
    (!highlighted?.rows.size || highlighted.rows.has(link.row)) &&
    (!highlighted?.columns.size || highlighted.columns.has(link.column));
  const isAhead = ({ row, column }) => column > row;
  const strokeOf = ({ share, head }) => 0.6 + ((head === undefined ? WIDEST : WIDEST_OF_MANY) - 0.6) * share;
  const endsOf = ({ row, column }) => [middleOf(sides.columns, column), middleOf(sides.rows, row)];

  // The path of a link whose ends are these, in a drawing that begins and ends at these heights.
  function pathBetween(link, [x, y], top, foot, beyond) {
    const aside = (link.lane ?? 0) * LANES;
    if (!isJoined) return curve(x + aside, y + aside, top, foot);
    const inwards = Math.sign(y - x) * aside; // one arc within the other
    const [from, to] = [x + inwards, y - inwards];
    return isAhead(link)
      ? arc(from, to, beyond, 1, below.clientHeight - 8 - LANES - aside)
      : arc(from, to, foot, -1, foot - top - 8 - LANES - aside);
  }

  function paint() {
    const [across, height] = [width(), drawing.clientHeight];
    const beyond = height + sides.rows.node.clientHeight;
    const isDimmed = highlighted !== null || foremost !== null;
    drawing.classList.toggle("dimmed", isDimmed);
    links.forEach((link, at) => {
      const [top, foot] = endsOf(link);
      const isBeyond = Math.max(top, foot) < 0 || Math.min(top, foot) > across;
      const path = drawing.children[at];
      path.setAttribute("d", isBeyond ? "" : pathBetween(link, [top, foot], 0, height, beyond));
      path.classList.toggle("lit", isDimmed && isHighlighted(link));
    });
    if (!overview.hidden) paintOverview();
  }

  function pathOf(link) {
    const path = shape("path", {
      "stroke-width": strokeOf(link).toFixed(2),
      "data-row": link.row,
      "data-column": link.column,
    });
    weigh(path, link.share);
    if (link.head !== undefined) {
      path.style.stroke = `var(--head-${link.head % COLOURS})`;
      path.style.strokeDasharray = dashOf(link.head) ?? "";
    }
    return path;
  }

  // The whole of both lines: where the frame is, and where the links that are brought out end.
  function paintOverview() {
    const [across, height] = [overview.clientWidth, 18];
    const pen = sized(overview, across, height);
    pen.clearRect(0, 0, across, height);
    const { accent, edge, rule } = inks();
    pen.fillStyle = rule;
    pen.fillRect(0, height / 2 - 1, across, 2);
    const shareAt = (side, at) => {
      const share = (side.starts[at] + side.starts[at + 1]) / 2 / lengthOf(side);
      return (side.isBackwards ? 1 - share : share) * across;
    };
    for (const { side, at, share } of ends) {
      pen.fillStyle = accent;
      pen.globalAlpha = 0.25 + 0.75 * share;
      pen.fillRect(shareAt(side, at) - 1, side === sides.columns ? 1 : height / 2, 2, height / 2 - 1);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = edge;
    const left = (frame.scrollLeft / frame.scrollWidth) * across;
    pen.strokeRect(left + 0.5, 0.5, Math.max(3, (width() / frame.scrollWidth) * across) - 1, height - 1);
  }

  function jump(event) {
    const share = event.offsetX / overview.clientWidth;
    frame.scrollLeft = share * frame.scrollWidth - width() / 2;
  }

  function bring(side, at) {
    if (leftOf(side, at) >= 0 && rightOf(side, at) <= width()) return;
    const beyond = lengthOf(side) - width();
    if (beyond <= 0) return;
    const middle = middleOf(side, at) + side.offset;
    const share = Math.max(0, Math.min(1, (middle - width() / 2) / beyond));
    frame.scrollLeft = directed(side, share) * (frame.scrollWidth - width());
    layOut();
  }

  function reveal({ row, column }) {
    if (row !== null && row < sides.rows.tokens.length) bring(sides.rows, row);
    else if (column !== null && column < sides.columns.tokens.length)
      bring(isJoined ? sides.rows : sides.columns, column);
  }

  function focus() {
    focusToken(sides.rows, sides.rows.current);
  }

  /** The tokens that are in sight whole, and the links between them, for PNG and SVG. */
  function picture() {
    const { accent, ink, quiet } = inks();
    const [height, size] = [drawing.clientHeight, parseFloat(getComputedStyle(sides.rows.node).fontSize)];
    const top = isJoined ? 8 : 24 + size * 1.6;
    const foot = top + height;
    const beyond = foot + size * 1.6;
    const reach = isJoined ? (below.hidden ? 0 : below.clientHeight) : 0;
    const isWhole = (side, at) => areFew || (leftOf(side, at) >= 0 && rightOf(side, at) - side.gap <= width());
    const [keys, queries] = [sides.columns, sides.rows].map((side) =>
      [...side.tokens.keys()].filter((at) => isWhole(side, at)),
    );
    const lines = [
      ...(isJoined ? [] : [{ side: sides.columns, positions: keys, y: top - size * 0.5 }]),
      { side: sides.rows, positions: queries, y: foot + size * 1.1 },
    ];
    const ends = lines.flatMap(({ side, positions }) =>
      positions.flatMap((at) => [leftOf(side, at), rightOf(side, at)]),
    );
    const left = ends.reduce((least, x) => Math.min(least, x), width());
    const wide = Math.max(160, ends.reduce((most, x) => Math.max(most, x), 0) - left);
    const [visibleAbove, visibleBelow] = [new Set(keys), new Set(queries)];
    const middle = (side, at) => middleOf(side, at) - left;
    const drawn = links
      .filter(({ row, column, share }) => share > 0 && visibleBelow.has(row) && visibleAbove.has(column))
      .map((link) => {
        const [x, y] = endsOf(link);
        return {
          path: pathBetween(link, [x - left, y - left], top, foot, beyond),
          stroke: link.head === undefined ? accent : headInk(link.head),
          dash: link.head === undefined ? null : dashOf(link.head),
          line: strokeOf(link),
          opacity: 0.06 + 0.8 * link.share,
        };
      });
    const words = lines.flatMap(({ side, positions, y }) =>
      positions.map((at) => textAt(nameOf(side.tokens[at]), [middle(side, at), y], size, ink, "middle")),
    );
    const labels = (isJoined ? [] : names).map(({ textContent }, at) =>
      textAt(textContent, [wide / 2, at ? foot + size * 2.8 : 14], 12, quiet, "middle"),
    );
    const high = foot + reach + size * (isJoined ? 1.8 : 3.2);
    return { width: wide, height: high, shapes: [...drawn, ...words, ...labels] };
  }

  return { build, draw, mark, light, find, fade, reveal, fit, focus, picture, destroy };
}

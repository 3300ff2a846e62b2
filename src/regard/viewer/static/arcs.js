// Two lines of tokens with a link for every weight: looked at above, looking below.

import { element, shape, weigh } from "./dom.js";
import { figure, nameOf } from "./maps.js";
import { tokenLabel } from "./tokens.js";

const FAINTEST = 0.01; // weights below are no link
const WIDEST = 7; // pixels

/** Lines and links inside `host`; `point` is told as by the matrix. */
export function createArcs(host, { point }) {
  const upper = element("div", { class: "line", role: "group" });
  const lower = element("div", { class: "line", role: "group" });
  const drawing = shape("svg", { "aria-hidden": "true" });
  const inner = element("div", { class: "inner" }, upper, drawing, lower);
  const frame = element("div", { class: "frame" }, inner);
  const names = [element("p", { class: "side" }), element("p", { class: "side" })];
  host.append(names[0], frame, names[1]);
  let map = null;
  let full = 1;
  let links = [];

  for (const [line, side] of [[upper, "column"], [lower, "row"]]) {
    const told = (event) => {
      const token = event.target.closest("button");
      return token ? { row: null, column: null, [side]: Number(token.dataset.at) } : null;
    };
    line.addEventListener("pointerover", (event) => told(event) && point(told(event), false));
    line.addEventListener("pointerleave", () => point(null, false));
    line.addEventListener("click", (event) => told(event) && point(told(event), true));
    line.addEventListener("focusin", (event) => told(event) && point(told(event), true));
    line.addEventListener("keydown", (event) => walk(event, line));
  }

  function walk(event, line) {
    const token = event.target.closest("button");
    const other = line === upper ? lower : upper;
    const across = Math.round((token.dataset.at / line.children.length) * other.children.length);
    const next = {
      ArrowLeft: token.previousElementSibling,
      ArrowRight: token.nextElementSibling,
      ArrowDown: line === upper ? other.children[Math.min(across, other.children.length - 1)] : null,
      ArrowUp: line === lower ? other.children[Math.min(across, other.children.length - 1)] : null,
      Home: line.firstElementChild,
      End: line.lastElementChild,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (!next) return;
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /** Sets both lines anew. */
  function build(next, languages, sides) {
    map = next;
    names[0].textContent = `${sides.called.columns}, looked at`;
    names[1].textContent = `${sides.called.rows}, looking`;
    upper.setAttribute("aria-label", names[0].textContent);
    lower.setAttribute("aria-label", names[1].textContent);
    const most = Math.max(map.rows.length, map.columns.length);
    inner.dataset.density = most <= 14 ? "roomy" : most <= 28 ? "medium" : "dense";
    const button = (language) => (token, at) =>
      element(
        "button",
        { type: "button", "data-at": at, tabindex: at === 0 ? "0" : "-1" },
        tokenLabel(token, language),
      );
    upper.replaceChildren(...map.columns.map(button(languages[sides.seen])));
    lower.replaceChildren(...map.rows.map(button(languages[sides.looks])));
  }

  /** Draws the links of these weights. */
  function paint(next, deepest) {
    map = next;
    full = deepest;
    fit();
  }

  /** Draws the links again where the tokens stand now. */
  function fit() {
    if (!map) return;
    const width = inner.clientWidth;
    const height = drawing.clientHeight;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const tops = [...upper.children].map(middleOf);
    const feet = [...lower.children].map(middleOf);
    links = [];
    map.weights.forEach((weights, row) =>
      weights.forEach((weight, column) => {
        if (weight < FAINTEST) return;
        const share = full > 0 ? Math.min(1, weight / full) : 0;
        const path = shape("path", {
          d: curve(tops[column], feet[row], height),
          "stroke-width": (0.6 + (WIDEST - 0.6) * share).toFixed(2),
          "data-row": row,
          "data-column": column,
        });
        weigh(path, share);
        links.push({ row, column, weight, path });
      }),
    );
    links.sort((a, b) => a.weight - b.weight);
    drawing.replaceChildren(...links.map((link) => link.path));
  }

  /** Brings out the links of a row, a column or one cell, and the tokens at their other ends. */
  function mark({ row, column }) {
    drawing.classList.toggle("dimmed", row !== null || column !== null);
    for (const path of drawing.querySelectorAll(".lit")) path.classList.remove("lit");
    if (row === null && column === null) return unshade();
    for (const link of links) {
      const isLit = (row === null || link.row === row) && (column === null || link.column === column);
      if (isLit) link.path.classList.add("lit");
    }
    [...upper.children].forEach((token, at) => shade(token, at === column, weightAt(row, at)));
    [...lower.children].forEach((token, at) => shade(token, at === row, row === null ? weightAt(at, column) : 0));
  }

  function unshade() {
    for (const token of inner.querySelectorAll("button")) token.classList.remove("marked", "shaded");
  }

  /** Scrolls to a row or column, if it is out of sight. */
  function reveal({ row, column }) {
    const token = row === null ? upper.children[column] : lower.children[row];
    if (!token) return;
    const middle = middleOf(token);
    const isSeen = middle > frame.scrollLeft && middle < frame.scrollLeft + frame.clientWidth;
    if (!isSeen) frame.scrollLeft = middle - frame.clientWidth / 2;
  }

  function weightAt(row, column) {
    return row === null || column === null || row === undefined ? 0 : map.weights[row][column];
  }

  function shade(token, isMarked, weight) {
    token.classList.toggle("marked", isMarked);
    token.classList.toggle("shaded", weight >= FAINTEST);
    weigh(token, full > 0 ? Math.min(1, weight / full) : 0);
    token.title = weight > 0 ? `${nameOf({ text: token.textContent })}: ${figure(weight)}` : "";
  }

  return { build, paint, mark, fit, reveal };
}

function middleOf(token) {
  return token.offsetLeft + token.offsetWidth / 2;
}

function curve(top, foot, height) {
  const half = (height / 2).toFixed(1);
  const [x, y] = [top.toFixed(1), foot.toFixed(1)];
  return `M${x} 0C${x} ${half} ${y} ${half} ${y} ${height}`;
}

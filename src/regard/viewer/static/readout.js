// The figures of what is pointed at: one weight, and the largest of its row or column.

import { element, weigh } from "./dom.js";
import { figure } from "./maps.js";
import { tokenLabel } from "./tokens.js";

const MOST = 8; // tokens listed

/** Figures inside `host`. */
export function createReadout(host) {
  let map = null;
  let languages = null;
  let sides = null;
  let full = 1;

  function paint(next, tongues, axes, deepest) {
    [map, languages, sides, full] = [next, tongues, axes, deepest];
    const lines = Math.min(MOST, Math.max(map.rows.length, map.columns.length));
    host.style.setProperty("--lines", lines); // room kept, so that nothing jumps under the pointer
  }

  function mark({ row, column }) {
    const parts = [];
    if (row !== null && column !== null) parts.push(...cellParts(row, column));
    if (row !== null) {
      const others = map.weights[row].map((weight, at) => [map.columns[at], weight, at === column]);
      parts.push(...listParts(map.rows[row], sides.looks, "looks at", others, sides.seen));
    } else if (column !== null) {
      const others = map.weights.map((weights, at) => [map.rows[at], weights[column], false]);
      parts.push(...listParts(map.columns[column], sides.seen, "is looked at by", others, sides.looks));
    } else {
      parts.push(...largestParts(), element("p", { class: "hint" }, "Point at a cell or a word to read its weights."));
    }
    host.replaceChildren(...parts);
  }

  // Nothing is pointed at: the largest weights of all.
  function largestParts() {
    const all = map.weights.flatMap((weights, row) => weights.map((weight, column) => ({ row, column, weight })));
    const largest = all.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight).slice(0, MOST);
    const items = largest.map(({ row, column, weight }) =>
      itemOf([tokenLabel(map.rows[row], languages[sides.looks]), " → ", tokenLabel(map.columns[column], languages[sides.seen])], weight),
    );
    return items.length ? [element("h3", {}, "Largest weights"), element("ol", { class: "pairs" }, ...items)] : [];
  }

  function itemOf(named, weight, isChosen = false) {
    const bar = element("i", { "aria-hidden": "true" });
    weigh(bar, full > 0 ? Math.min(1, weight / full) : 0);
    return element("li", { class: isChosen ? "marked" : null }, element("span", { class: "named" }, ...named), bar, element("data", { value: weight }, figure(weight)));
  }

  function cellParts(row, column) {
    const link = map.gold.get(`${row},${column}`);
    const parts = [
      element("p", { class: "weight" }, figure(map.weights[row][column])),
      element(
        "p",
        { class: "pair" },
        tokenLabel(map.rows[row], languages[sides.looks]),
        " → ",
        tokenLabel(map.columns[column], languages[sides.seen]),
      ),
    ];
    if (link) parts.push(element("p", { class: "hint" }, link === "sure" ? "gold link" : "possible gold link"));
    return parts;
  }

  function listParts(token, side, verb, others, otherSide) {
    const listed = others
      .filter(([, weight]) => weight > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST);
    const items = listed.map(([other, weight, isChosen]) => itemOf([tokenLabel(other, languages[otherSide])], weight, isChosen));
    const rest = others.filter(([, weight]) => weight > 0).length - listed.length;
    const head = element("h3", {}, tokenLabel(token, languages[side]), element("small", {}, ` ${verb}`));
    const list = items.length ? element("ol", {}, ...items) : element("p", { class: "hint" }, "nothing");
    return rest > 0 ? [head, list, element("p", { class: "hint" }, `and ${rest} more`)] : [head, list];
  }

  return { paint, mark };
}

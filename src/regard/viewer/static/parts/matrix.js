// The matrix of a short text, with its figures.

import { element, tokenLabel, weigh } from "../page/dom.js";
import { columnText, textAt } from "../page/exporting.js";
import { t } from "../page/language.js";
import { cellFigure, chosenOf, figure, nameOf, stepIn, widthOf } from "../data/maps.js";
import { cssOf, inkOn, inks, shareOf } from "../page/palette.js";

const SMALLEST = 15; // pixels a cell may shrink to before the matrix scrolls
const LARGEST = 72;
const WITH_FIGURES = 27;

/**
 * A matrix inside `host`. `point(position, isFirm)` receives the position that is pointed at: `{row, column}`,
 * either of them null; firmly by focus or click, else in passing.
 */
export function createMatrix(host, { point }) {
  const table = element("table", { role: "grid", class: "matrix" });
  const plot = element("div.plot", table);
  const frame = element("div.frame", plot);
  host.append(frame);
  let cells = [];
  const heads = { rows: [], columns: [] };
  /** @type {Partial<Record<"rows" | "columns", string>>} */
  let axisNames = {}; // what rows and columns are
  let map = null;
  let at = { row: 0, column: 0 };
  let shares = [];
  let strips = []; // the bands of what is pointed at

  table.addEventListener("pointerover", (event) => {
    const position = positionOf(event.target);
    if (position) point(position, false);
  });
  table.addEventListener("pointerleave", () => point(null, false));
  table.addEventListener("focusin", (event) => select(positionOf(event.target)));
  table.addEventListener("click", (event) => select(positionOf(event.target)));
  table.addEventListener("keydown", (event) => {
    if (event.key === "Enter") select(at);
    const next = stepIn(cells, cells[at.row]?.[at.column], event);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  function select(position) {
    if (!position) return;
    if (position.row !== null && position.column !== null) move(position);
    point(position, true);
  }

  function move(position) {
    cells[at.row]?.[at.column]?.setAttribute("tabindex", "-1");
    at = position;
    cells[at.row][at.column].setAttribute("tabindex", "0");
  }

  function build(next, sides) {
    map = next;
    axisNames = sides.axisNames;
    at = { row: 0, column: 0 };
    const lang = sides.languages.columns;
    const headOf = (scope, at, token, label) =>
      element("th", { scope, [`data-${scope === "row" ? "row" : "column"}`]: at, title: nameOf(token) }, label);
    heads.columns = map.columns.map((token, column) =>
      headOf("col", column, token, element("div", { lang }, tokenLabel(token, lang))),
    );
    heads.rows = map.rows.map((token, row) => headOf("row", row, token, tokenLabel(token, sides.languages.rows)));
    const cellOf = (row, column) => {
      const place = { "data-row": row, "data-column": column, "data-gold": map.gold.get(`${row},${column}`) };
      const tabindex = row + column === 0 ? "0" : "-1";
      return element("td.cell", { role: "gridcell", ...place, tabindex }, element("span", { "aria-hidden": "true" }));
    };
    cells = map.rows.map((_, row) => map.columns.map((_, column) => cellOf(row, column)));
    const { rows: down, columns: across } = axisNames;
    const corner = element("td.corner", element("span.across", `${across} →`), element("span.down", `${down} ↓`));
    const body = cells.map((row, at) => element("tr", heads.rows[at], ...row));
    table.setAttribute("aria-label", t("matrix.name", sides.axisNames));
    table.replaceChildren(element("thead", element("tr", corner, ...heads.columns)), element("tbody", ...body));
    fit();
  }

  /** Puts the weights into the cells; `full` is the weight of the deepest colour on the scale. */
  function paint(next, full, scale, hits) {
    map = next;
    shares = map.weights.map((weights) => weights.map((weight) => shareOf(weight, full, scale)));
    heads.rows.forEach((head, row) => head.classList.toggle("hit", hits.rows.includes(row)));
    heads.columns.forEach((head, column) => head.classList.toggle("hit", hits.columns.includes(column)));
    map.weights.forEach((weights, row) =>
      weights.forEach((weight, column) => {
        const cell = cells[row][column];
        const isBest = map.best[row] === column;
        const share = shares[row][column];
        weigh(cell, share);
        cell.classList.toggle("slight", share < 0.1);
        cell.dataset.weight = figure(weight);
        cell.classList.toggle("best", isBest);
        cell.firstChild.textContent = cellFigure(weight);
        cell.setAttribute(
          "aria-label",
          t("words.cell", { row: nameOf(map.rows[row]), column: nameOf(map.columns[column]), weight: figure(weight) }) +
            (isBest ? t("words.cell.best") : "") +
            (cell.dataset.gold ? t(`gold.cell.${cell.dataset.gold}`) : ""),
        );
      }),
    );
  }

  /** Draws the cross-hairs of what is pointed at. */
  function mark(position) {
    const { rows, columns } = chosenOf(position);
    for (const head of table.querySelectorAll("th.marked")) head.classList.remove("marked");
    for (const head of [...rows.map((row) => heads.rows[row]), ...columns.map((column) => heads.columns[column])])
      head?.classList.add("marked");
    for (const strip of strips) strip.remove();
    strips = [
      ...rows.map((row) => bandOver("row", cells[row]?.[0], cells[row]?.at(-1))),
      ...columns.map((column) => bandOver("column", cells[0]?.[column], cells.at(-1)?.[column])),
      ...(rows.length && columns.length
        ? [bandOver("ring", cells[rows[0]]?.[columns[0]], cells[rows[0]]?.[columns[0]])]
        : []),
    ];
    plot.append(...strips);
  }

  /** Chooses a size of cell at which all columns fit, if there is one that can be read. */
  function fit() {
    if (!map?.columns.length || !host.clientWidth) return;
    const longest = map.columns.reduce((most, token) => Math.max(most, widthOf(token.text)), 0);
    // The table's font, and so the labels around the cells, goes with their size: try what is left.
    let size = LARGEST;
    for (let tries = 0; tries < 6; tries++) {
      const gap = size < 22 ? 1 : 3;
      table.style.setProperty("--cell", `${size}px`);
      table.classList.toggle("figures", size >= WITH_FIGURES);
      table.classList.toggle("upright", longest <= 2 || longest * 9 + 6 <= size);
      table.classList.toggle("fine", gap === 1);
      const over = table.offsetWidth - frame.clientWidth;
      if (over <= 0 || size === SMALLEST) break;
      size = Math.max(SMALLEST, size - Math.max(1, Math.ceil(over / map.columns.length)));
    }
  }

  function reveal({ row, column }) {
    cells[row ?? 0]?.[column ?? 0]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function picture() {
    const { ink, quiet, gold } = inks();
    const size = 40;
    const names = [map.rows, map.columns].map((tokens) => tokens.map(nameOf));
    const { rows: down, columns: across } = axisNames;
    const corner = 16 + 6.5 * Math.max(widthOf(across) + 2, widthOf(down) + 2);
    const [room, high] = names.map((side) => 16 + 8 * Math.min(40, Math.max(...side.map(widthOf))));
    const [left, top] = [Math.max(room, corner), Math.max(high, 40)];
    const shapes = [
      textAt(`${across} →`, [left - 8, top - 24], 11, quiet, "end"),
      textAt(`${down} ↓`, [left - 8, top - 8], 11, quiet, "end"),
    ];
    names[0].forEach((text, row) => shapes.push(textAt(text, [left - 8, top + size * (row + 0.62)], 14, ink, "end")));
    names[1].forEach((text, column) =>
      shapes.push(...columnText(text, [left + size * (column + 0.5), top - 6], { size: 14, fill: ink })),
    );
    map.weights.forEach((weights, row) =>
      weights.forEach((weight, column) => {
        const [x, y, share] = [left + size * column, top + size * row, shares[row][column]];
        const rect = [x + 1, y + 1, size - 2, size - 2];
        const fill = share < 0.1 ? quiet : inkOn(share);
        shapes.push({ rect, fill: cssOf(share) });
        const link = map.gold.get(`${row},${column}`);
        if (link) shapes.push(goldMark(rect, link, gold));
        if (map.best[row] === column) shapes.push(bestMark([x + size - 8, y + 8], inkOn(share)));
        const text = cellFigure(weight);
        if (text) shapes.push(textAt(text, [x + size / 2, y + size / 2 + 4], 11, fill, "middle"));
      }),
    );
    return { width: left + size * names[1].length + 8, height: top + size * names[0].length + 8, shapes };
  }

  return { build, paint, mark, fit, focus: () => cells[at.row]?.[at.column]?.focus(), reveal, picture };
}

/** The mark of a row's largest weight, for a file. */
export const bestMark = ([x, y], fill) => ({
  path: `M${x - 2.2} ${y}a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0 -4.4 0z`,
  fill,
});

/** The outline of a link that people set, for a file. */
export const goldMark = (rect, strength, stroke) => ({
  rect,
  stroke,
  line: 2,
  dash: strength === "possible" ? "4 3" : null,
});

/** A band over the cells from one corner to the other. */
function bandOver(name, from, to) {
  const strip = element(`i.band.${name}`, { hidden: !from });
  if (!from) return strip;
  const { offsetLeft: left, offsetTop: top } = from;
  const [width, height] = [to.offsetLeft + to.offsetWidth - left, to.offsetTop + to.offsetHeight - top];
  Object.assign(strip.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  return strip;
}

function positionOf(target) {
  const { row = null, column = null } = target.closest("[data-row], [data-column]")?.dataset ?? {};
  const numberOf = (value) => (value === null ? null : Number(value));
  return row === null && column === null ? null : { row: numberOf(row), column: numberOf(column) };
}

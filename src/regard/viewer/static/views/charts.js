// Maps of the comparison: a canvas each, and how they differ.

import { nameOf, widthOf } from "../data/maps.js";
import { element, tokenLabel } from "../page/dom.js";
import { columnText, textAt } from "../page/exporting.js";
import { t } from "../page/language.js";
import { inks, isDark, largestShare, painted, sized } from "../page/palette.js";

/** Pixels of a cell whose token can be written at its side. */
export const LEGIBLE = 14;
/** Pixels for tokens at the side of a map. */
export const MARGIN = 92;
const MOST_SAVED = 64; // tokens that are written in a file

/** One map on a canvas, with tokens at its side where there is room. */
export function createChart(name, title, point) {
  const canvas = element("canvas.map", { role: "img", tabindex: name === "one" ? "0" : null, "data-side": name });
  const [rows, columns] = ["rows", "columns"].map((side) => element(`div.ticks.${side}`, { "aria-hidden": "true" }));
  const band = ["row", "column"].map((side) => element(`i.band.${side}`, { hidden: true }));
  const plane = element("div.plane", columns, rows, element("div.cells", canvas, ...band));
  const node = element("figure.side", { "data-side": name }, element("figcaption", title), plane);
  let drawn = null;
  let names = [[], []]; // of rows and columns, which files may have room for
  let size = 1;
  let at = { row: null, column: null };
  let raw = null; // a pixel a cell

  const cellOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const [row, column] = [Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size)];
    return row >= 0 && column >= 0 && row < drawn.rows && column < drawn.columns ? { row, column } : null;
  };
  canvas.addEventListener("pointermove", (event) => drawn && point(cellOf(event), false));
  canvas.addEventListener("pointerleave", () => point(null, false));
  canvas.addEventListener("click", (event) => drawn && point(cellOf(event), true));

  function draw(map, wide, colour, axes) {
    drawn = map;
    const hasTicks = !map.isPooled && (wide - MARGIN) / Math.max(map.columns, map.rows) >= LEGIBLE;
    size = Math.min(44, (wide - (hasTicks ? MARGIN : 0)) / Math.max(map.columns, map.rows));
    if (size > 2) size = Math.floor(size);
    raw = painted(map.rows, map.columns, colour);
    const [width, height] = [map.columns * size, map.rows * size];
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = sized(canvas, width, height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(raw, 0, 0, width, height);
    const says = t(map.isPooled ? "compare.canvas.pooled" : "compare.canvas", {
      title,
      rows: map.rows,
      columns: map.columns,
    });
    canvas.setAttribute("aria-label", says);
    node.style.setProperty("--cell", `${size}px`);
    const ticks = (tokens, language) =>
      tokens.map((token) => element("span", { title: nameOf(token) }, tokenLabel(token, language)));
    const isNamed = (tokens) => !map.isPooled && tokens.length <= MOST_SAVED;
    names = [axes.rows, axes.columns].map((tokens) => (isNamed(tokens) ? tokens.map(nameOf) : []));
    rows.replaceChildren(...(hasTicks ? ticks(axes.rows, axes.languages.rows) : []));
    columns.replaceChildren(...(hasTicks ? ticks(axes.columns, axes.languages.columns) : []));
    mark(at);
  }

  function mark(cell) {
    at = cell;
    if (!drawn) return;
    const [across, down] = [drawn.columns, drawn.rows].map((count) => `${count * size}px`);
    const [left, top] = [cell.column, cell.row].map((at) => `${at * size}px`);
    band[0].hidden = cell.row === null || cell.row >= drawn.rows;
    band[1].hidden = cell.column === null || cell.column >= drawn.columns;
    Object.assign(band[0].style, { left: 0, top, width: across, height: `${size}px` });
    Object.assign(band[1].style, { left, top: 0, width: `${size}px`, height: down });
    [...rows.children].forEach((tick, position) => tick.classList.toggle("marked", position === cell.row));
    [...columns.children].forEach((tick, position) => tick.classList.toggle("marked", position === cell.column));
  }

  function picture() {
    const { ink } = inks();
    const [rowNames, columnNames] = names;
    const room = (tokens) => 12 + 6.5 * Math.max(0, ...tokens.map(widthOf));
    const [left, top] = names.map((tokens) => (tokens.length ? room(tokens) : 0));
    const cell = rowNames.length ? Math.max(size, LEGIBLE) : size;
    const [width, height] = [drawn.columns * cell, drawn.rows * cell];
    /** @type {import("../page/exporting.js").Shape[]} */
    const shapes = [{ image: raw, at: [left, top, width, height] }];
    rowNames.forEach((text, at) => shapes.push(textAt(text, [left - 6, top + cell * (at + 0.5) + 4], 11, ink, "end")));
    columnNames.forEach((text, at) =>
      shapes.push(...columnText(text, [left + cell * (at + 0.5), top - 6], { size: 11, fill: ink })),
    );
    return { title, width: left + width, height: top + height, shapes };
  }

  return { node, draw, mark, picture, marked: () => at, focus: () => canvas.focus() };
}

/** A view as a map that can be drawn: exact where it is short, else pooled; or null. */
export async function drawable(reader, view) {
  const map = await reader.map(view);
  if (map) {
    const { rows, columns, largest, weights } = map;
    const weight = (row, column) => weights[row][column];
    const error = (row, column) => map.error(weight(row, column));
    return { rows: rows.length, columns: columns.length, bucket: [1, 1], largest, isPooled: false, weight, error };
  }
  const pooled = await reader.pooled(view);
  if (!pooled) return null;
  return { ...pooled, largest: largestShare(pooled), isPooled: true, weight: pooled.share };
}

/** How much more B has in a cell; 0 where that may be rounding. */
export function gapOf({ one, other }, row, column) {
  const gap = other.weight(row, column) - one.weight(row, column);
  return Math.abs(gap) > one.error(row, column) + other.error(row, column) ? gap : 0;
}

/** The differences of all cells, ascending. */
export function gapsOf(maps) {
  const { rows, columns } = maps.one;
  const gaps = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) gaps[row * columns + column] = Math.abs(gapOf(maps, row, column));
  }
  return gaps.sort();
}

/** A few cells of a large map may differ more than all others: they share the deepest colour. */
export function largeOf(gaps) {
  return gaps[gaps.length < 500 ? gaps.length - 1 : Math.floor(0.99 * gaps.length)] || gaps.at(-1);
}

/** Black or white, whichever is read on the colour of a gap. */
export const gapInk = (share) => (Math.abs(share) > 0.45 === isDark() ? "#14171b" : "#ffffff");
export const gapCss = (share) => `rgb(${gapColour(share).join(",")})`;

const numbersOf = (colours) => colours.split(", ").map((colour) => colour.split(" ").map(Number));
const [LIGHT, DARK] = ["176 84 0, 21 84 176, 244 244 242", "255 176 92, 116 172 255, 36 40 46"].map(numbersOf);

/** Orange where A is larger, blue where B is: two hues that no colour-blindness confuses. */
export function gapColour(share) {
  const clamped = Math.max(-1, Math.min(1, share));
  const [orange, blue, middle] = isDark() ? DARK : LIGHT;
  const end = clamped < 0 ? orange : blue;
  const depth = Math.abs(clamped) ** 0.8; // small differences should not vanish
  return middle.map((value, at) => Math.round(value + (end[at] - value) * depth));
}

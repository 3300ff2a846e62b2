// The canvas of the map: cells, strips, labels and cross-hairs, sharp on any screen.

import { element } from "../page/dom.js";
import { FONT, columnText, drawOn, textAt } from "../page/exporting.js";
import { cellFigure, mostOf, nameOf } from "../data/maps.js";
import { cssOf, inkOn, inks, isDark, pixels, shareOf, sized } from "../page/palette.js";

const STRIP = 14; // pixels of the strips at the sides of the cells
const GAP = 4;
const LABEL = 13; // pixels between labels, at least
const TEXT = 12; // pixels of a label
const FIGURE = [27, 15]; // pixels of a cell, across and down, from which its weight is written in it
const OUTLINED = 6; // pixels of a pooled square from which it is outlined
const HATCHED = 24; // and hatched
const HATCH = 9; // pixels between the lines of the hatching

/** Draws scenes of map.js on `canvas`; margins are pixels around the cells. */
export function createSurface(canvas, margins) {
  let size = { width: 1, height: 1 };
  let whole = [1, 1]; // with the margins
  /** @type {Record<string, any>[]} */
  const [plate, tile] = [{}, {}]; // images of the whole map, or the pooled one, and of exact rows, a pixel a cell
  const pen = canvas.getContext("2d");

  function resize(width, height) {
    size = { width: Math.round(width), height: Math.round(height) };
    whole = [size.width + margins.left + margins.right, size.height + margins.top + margins.bottom];
    [canvas.style.width, canvas.style.height] = whole.map((side) => `${side}px`);
  }

  function draw(scene, position) {
    sized(canvas, ...whole);
    pen.clearRect(0, 0, ...whole);
    pen.save();
    pen.translate(margins.left, margins.top);
    const colours = inks();
    cells(scene, colours);
    strips(scene);
    for (const shape of [...figures(scene, colours), ...labels(scene, position, colours)]) drawOn(pen, shape);
    crossHairs(scene, position, colours);
    pen.restore();
  }

  function cells(scene, colours) {
    const { viewport, scale } = scene;
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, size.width, size.height);
    pen.clip();
    pen.fillStyle = cssOf(0);
    pen.fillRect(0, 0, size.width, size.height);
    const place = (image, column, row, across = 1, down = 1) => {
      const [width, height] = [image.width * across * viewport.x(), image.height * down * viewport.y()];
      pen.drawImage(image, viewport.leftOf(column), viewport.topOf(row), width, height);
    };
    const { whole, pooled, tile: exact } = scene;
    if (whole || pooled) {
      const [height, width] = whole ? [1, 1] : pooled.bucket;
      const [above, before] = whole ? [0, 0] : pooled.start;
      const under = whole
        ? imageOf(plate, whole, scale, whole.largest)
        : imageOf(plate, pooled, scale, scene.pooledFull);
      // More cells than pixels are averaged, fewer are drawn as the squares they are.
      pen.imageSmoothingEnabled = viewport.x() * width < 1;
      pen.imageSmoothingQuality = "high";
      pen.globalAlpha = exact ? 0.35 : 1;
      place(under, -before, -above, width, height);
      pen.globalAlpha = 1;
      if (height * width > 1 && !(exact && !exact.isTop)) hatch(scene, colours);
    }
    if (exact) {
      const image = imageOf(tile, exact, scale, exact.full, exact.isTop);
      pen.imageSmoothingEnabled = false;
      place(image, exact.columns[0], exact.rows[0]);
    }
    pen.restore();
  }

  // The weights in their cells, where each is known and cells have room.
  function figures({ whole, tile: exact, viewport, scale }, { quiet }) {
    const known = exact ?? (whole && { rows: [0], columns: [0], weights: whole.weights, full: whole.largest });
    const [wide, high] = [viewport.x(), viewport.y()];
    if (!known || wide < FIGURE[0] || high < FIGURE[1]) return [];
    const { rows, columns } = viewport.visible();
    const shapes = [];
    for (let row = rows[0]; row < rows[1]; row++)
      for (let column = columns[0]; column < columns[1]; column++) {
        const weight = known.weights[row - known.rows[0]]?.[column - known.columns[0]];
        const text = weight ? cellFigure(weight) : "";
        const [x, y] = [viewport.leftOf(column + 0.5), viewport.topOf(row + 0.5)];
        if (!text || x < wide / 2 || y < high / 2 || x > size.width - wide / 2 + 1 || y > size.height - high / 2 + 1)
          continue;
        const share = shareOf(weight, scale === "one" ? 1 : known.full, scale);
        const fill = share < 0.1 ? quiet : inkOn(share);
        shapes.push(textAt(text, [x, y + 4], Math.min(12, wide * 0.38), fill, "middle"));
      }
    return shapes;
  }

  // Squares that stand for many tokens are outlined, and hatched once they look like single cells.
  function hatch({ pooled, viewport }, { edge, panel }) {
    const [height, width] = [pooled.bucket[0] * viewport.y(), pooled.bucket[1] * viewport.x()];
    if (Math.min(height, width) < OUTLINED) return;
    const [left, top] = [viewport.leftOf(-pooled.start[1]), viewport.topOf(-pooled.start[0])];
    const lines = new Path2D();
    const line = (x, y, toX, toY) => {
      lines.moveTo(x, y);
      lines.lineTo(toX, toY);
    };
    for (let x = left + width * Math.ceil(-left / width); x < size.width; x += width) line(x, 0, x, size.height);
    for (let y = top + height * Math.ceil(-top / height); y < size.height; y += height) line(0, y, size.width, y);
    if (Math.min(height, width) >= HATCHED) {
      for (let x = -size.height; x < size.width; x += HATCH) line(x, size.height, x + size.height, 0);
    }
    pen.save();
    pen.lineWidth = 1;
    pen.globalAlpha = Math.min(height, width) < HATCHED ? 0.3 : 0.5;
    for (const colour of [edge, panel]) {
      // one of them is seen on any cell
      pen.strokeStyle = colour;
      pen.stroke(lines);
      pen.translate(1, 1);
    }
    pen.restore();
  }

  // One pixel a cell; made again only when the weights, the scale or the theme are others.
  function imageOf(cache, from, scale, full, isClear = false) {
    const key = `${scale} ${isDark()}`;
    if (cache.from === from && cache.key === key) return cache.image;
    const { weights } = from;
    const share = (row, column) => weights[row][column];
    const map = weights ? { rows: weights.length, columns: weights[0].length, share } : from;
    const image = pixels(map, scale, scale === "one" ? 1 : full, isClear);
    Object.assign(cache, { from, key, image });
    return image;
  }

  function strips({ received, entropy, viewport: { visible, leftOf, topOf } }) {
    const { rows, columns } = visible();
    strip(received, columns, "log", leftOf, (start, end) => [start, -GAP - STRIP, end - start, STRIP], size.width);
    strip(entropy, rows, "largest", topOf, (start, end) => [size.width + GAP, start, STRIP, end - start], size.height);
  }

  // The mean of what falls on a pixel, so that a strip of any length is drawn in pixels' time.
  function strip(line, [first, last], scale, pixelOf, rect, end) {
    if (!line) return;
    const { values, span } = line;
    const full = mostOf(values);
    let from = Math.floor(first / span);
    const to = Math.ceil(last / span);
    while (from < to) {
      const start = Math.max(0, pixelOf(from * span));
      let [at, sum, count] = [from, 0, 0];
      do {
        sum += values[at];
        count += 1;
        at += 1;
      } while (at < to && pixelOf((at + 1) * span) - start < 1);
      pen.fillStyle = cssOf(shareOf(sum / count, full, scale));
      pen.fillRect(...rect(start, Math.min(end, pixelOf(at * span)) + 0.3));
      from = at;
    }
  }

  // Everything that is written, and ticks of what was searched for: shapes, for the screen and for files.
  function labels({ axes, viewport, hits, note }, { row, column }, { ink, quiet, accent, gold }) {
    const { rows, columns } = viewport.visible();
    const shapesOf = (tokens, [first, last], cell, marked, searched, startOf, end, side) => {
      const step = Math.max(1, Math.ceil(LABEL / cell));
      const at = (one) => startOf(one + 0.5);
      const labelled = new Set();
      for (let one = Math.ceil(first / step) * step; one < last; one += step)
        if (marked === null || Math.abs(at(one) - at(marked)) >= LABEL) labelled.add(one);
      if (marked !== null) labelled.add(marked);
      const isSeen = (one) => at(one) >= 0 && at(one) <= end && tokens[one];
      const names = [...labelled].filter(isSeen).flatMap((one) => {
        const fill = one === marked ? accent : tokens[one].start === tokens[one].end ? quiet : ink;
        return label(tokens[one], one, side, at(one), step > 1, { size: TEXT, fill, bold: one === marked });
      });
      const ticks = searched.filter(isSeen).map((one) => ({
        rect: side === 0 ? [-GAP, at(one) - 1, GAP - 1, 2] : [at(one) - 1, -GAP, 2, GAP - 1],
        fill: gold,
      }));
      return [...names, ...ticks];
    };
    return [
      ...shapesOf(axes.rows, rows, viewport.y(), row, hits.rows, viewport.topOf, size.height, 0),
      ...shapesOf(axes.columns, columns, viewport.x(), column, hits.columns, viewport.leftOf, size.width, 1),
      textAt(`${axes.axisNames.columns} →`, [-10, -GAP - STRIP - 16], 11, quiet, "end"),
      textAt(`${axes.axisNames.rows} ↓`, [-10, -GAP - STRIP - 2], 11, quiet, "end"),
      ...(note ? [textAt(note, [0, size.height + 15], 11, ink)] : []),
    ];
  }

  function label(token, at, side, pixel, isSparse, style) {
    const name = nameOf(token);
    // The name keeps its own direction next to a number.
    const text = isSparse ? `\u2068${name}\u2069 ${at + 1}` : name;
    pen.font = `${style.bold ? "bold " : ""}${TEXT}px ${FONT}`;
    if (side === 0) return [{ ...style, text: shortened(text, margins.left - 14), at: [-8, pixel + 4], anchor: "end" }];
    return columnText(shortened(text, margins.top - STRIP - 12), [pixel, -GAP - STRIP - 4], style);
  }

  function shortened(text, room) {
    if (pen.measureText(text).width <= room) return text;
    const cut = [...text];
    while (cut.length > 1 && pen.measureText(`${cut.join("")}…`).width > room) cut.pop();
    return `${cut.join("")}…`;
  }

  function crossHairs({ viewport }, { row, column }, { ink, edge }) {
    const [x, y] = [viewport.x(), viewport.y()];
    pen.save();
    pen.beginPath();
    pen.rect(-2, -2, size.width + 4, size.height + 4);
    pen.clip();
    pen.strokeStyle = edge;
    pen.lineWidth = 1;
    if (row !== null) pen.strokeRect(-3, viewport.topOf(row) - 0.5, size.width + 6, Math.max(2, y) + 1);
    if (column !== null) pen.strokeRect(viewport.leftOf(column) - 0.5, -3, Math.max(2, x) + 1, size.height + 6);
    if (row !== null && column !== null) {
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.strokeRect(viewport.leftOf(column) - 1, viewport.topOf(row) - 1, Math.max(3, x) + 2, Math.max(3, y) + 2);
    }
    pen.restore();
  }

  /** Pixels of an event within the cells. */
  function within(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left - margins.left, event.clientY - box.top - margins.top];
  }

  /** The position under an event: a cell, or a row or column whose label it is. */
  function cellAt(event, viewport) {
    const [x, y] = within(event);
    if (x < 0 && y >= 0) {
      const cell = viewport.cellAt(0, y);
      return cell && { row: cell.row, column: null };
    }
    if (y < 0 && x >= 0) {
      const cell = viewport.cellAt(x, 0);
      return cell && { row: null, column: cell.column };
    }
    return viewport.cellAt(x, y);
  }

  /** What is drawn in a box, whose corner is counted from the cells' own, as an image for a file. */
  function part(left, top, width, height) {
    const sharp = devicePixelRatio || 1;
    const image = element("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
    const [x, y] = [left + margins.left, top + margins.top];
    image
      .getContext("2d")
      .drawImage(canvas, x * sharp, y * sharp, width * sharp, height * sharp, 0, 0, image.width, image.height);
    return { image, at: [x, y, width, height] };
  }

  /** The scene for a file: cells and strips as images, with the cross-hairs; all else as text. */
  function picture(scene, position) {
    const nowhere = { row: null, column: null };
    draw({ ...scene, hits: { rows: [], columns: [] } }, nowhere);
    const strips = [];
    if (scene.received) strips.push(part(0, -GAP - STRIP, size.width, STRIP));
    if (scene.entropy) strips.push(part(size.width + GAP, 0, STRIP, size.height));
    draw({ ...scene, hits: { rows: [], columns: [] } }, position);
    /** @type {import("../page/exporting.js").Shape[]} */
    const shapes = [part(0, 0, size.width, size.height), ...strips];
    draw(scene, position);
    shapes.push({ group: labels(scene, position, inks()), at: [margins.left, margins.top] });
    return { width: whole[0], height: whole[1], shapes };
  }

  return { resize, draw, within, cellAt, picture };
}

// The canvas of the map: cells, strips, labels and cross-hairs, sharp on any screen.

import { shareOf } from "./legend.js";
import { nameOf } from "./maps.js";
import { cssOf, inks } from "./palette.js";
import { element } from "./dom.js";
import { isDark } from "./theme.js";
import { pixels } from "./thumbnail.js";

const STRIP = 14; // pixels of the strips beside the cells
const GAP = 4;
const LABEL = 13; // pixels between labels, at least
const FONT = '"Segoe UI","Helvetica Neue","Noto Sans","Liberation Sans",Arial,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif';
const TALL = /^[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\u3040-\u30ff\uac00-\ud7af]{1,4}$/u; // set upright
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/u;

/** Draws scenes of map.js on `canvas`; margins are pixels around the cells. */
export function createSurface(canvas, margins) {
  let size = { width: 1, height: 1 };
  let plate = { key: null, image: null }; // the whole map, or the pooled one, a pixel a cell
  let tile = { of: null, image: null };
  const pen = canvas.getContext("2d");

  function resize(width, height) {
    size = { width: Math.round(width), height: Math.round(height) };
    const sharp = devicePixelRatio || 1;
    const [w, h] = [size.width + margins.left + margins.right, size.height + margins.top + margins.bottom];
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
    const [wide, high] = [Math.round(w * sharp), Math.round(h * sharp)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  }

  const forget = () => (plate = { key: null, image: null });
  const forgetTile = () => (tile = { of: null, image: null });

  function draw(scene, place) {
    const sharp = devicePixelRatio || 1;
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.save();
    pen.translate(margins.left, margins.top);
    cells(scene);
    strips(scene);
    const colours = inks();
    labels(scene, place, colours);
    crossHairs(scene, place, colours);
    pen.restore();
  }

  function cells(scene) {
    const { viewport, scale } = scene;
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, size.width, size.height);
    pen.clip();
    pen.fillStyle = cssOf(0);
    pen.fillRect(0, 0, size.width, size.height);
    const under = plateOf(scene);
    if (under) {
      const [height, width] = scene.whole ? [1, 1] : scene.pooled.bucket;
      const [above, before] = scene.whole ? [0, 0] : scene.pooled.start;
      // More cells than pixels are averaged, fewer are drawn as the squares they are.
      pen.imageSmoothingEnabled = viewport.x() * width < 1;
      pen.imageSmoothingQuality = "high";
      pen.globalAlpha = scene.tile ? 0.35 : 1;
      pen.drawImage(under, viewport.leftOf(-before), viewport.topOf(-above), under.width * width * viewport.x(), under.height * height * viewport.y());
      pen.globalAlpha = 1;
    }
    if (scene.tile) {
      const { rows, weights, full } = scene.tile;
      const key = `${scale} ${isDark()}`;
      if (tile.of !== scene.tile || tile.key !== key) {
        const deepest = scale === "one" ? 1 : full;
        const image = pixels({ rows: weights.length, columns: weights[0].length, share: (row, column) => weights[row][column] }, scale, deepest);
        tile = { of: scene.tile, key, image };
      }
      pen.imageSmoothingEnabled = false;
      pen.drawImage(tile.image, viewport.leftOf(0), viewport.topOf(rows[0]), tile.image.width * viewport.x(), tile.image.height * viewport.y());
    }
    pen.restore();
  }

  // One pixel a cell; made again only when the weights, the scale or the theme are others.
  function plateOf({ whole, pooled, scale, pooledFull }) {
    const from = whole ?? pooled;
    if (!from) return null;
    const key = `${scale} ${isDark()}`;
    if (plate.from === from && plate.key === key) return plate.image;
    const image = whole
      ? pixels({ rows: whole.rows.length, columns: whole.columns.length, share: (row, column) => whole.weights[row][column] }, scale, scale === "one" ? 1 : whole.largest)
      : pixels(pooled, scale, scale === "one" ? 1 : pooledFull);
    plate = { from, key, image };
    return image;
  }

  function strips({ received, entropy, viewport }) {
    const { rows, columns } = viewport.seen();
    strip(received, columns, "log", (at) => viewport.leftOf(at), (start, end) => [start, -GAP - STRIP, end - start, STRIP], size.width);
    strip(entropy, rows, "largest", (at) => viewport.topOf(at), (start, end) => [size.width + GAP, start, STRIP, end - start], size.height);
  }

  // The mean of what falls on a pixel, so that a strip of any length is drawn in pixels' time.
  function strip(line, [first, last], scale, pixelOf, rect, end) {
    if (!line) return;
    const { values, places } = line;
    const full = values.reduce((most, value) => Math.max(most, value), 0);
    let from = Math.floor(first / places);
    const to = Math.ceil(last / places);
    while (from < to) {
      const start = Math.max(0, pixelOf(from * places));
      let [at, sum, count] = [from, 0, 0];
      do {
        sum += values[at];
        count += 1;
        at += 1;
      } while (at < to && pixelOf((at + 1) * places) - start < 1);
      pen.fillStyle = cssOf(shareOf(sum / count, full, scale));
      pen.fillRect(...rect(start, Math.min(end, pixelOf(at * places)) + 0.3));
      from = at;
    }
  }

  function labels({ axes, viewport, hits }, place, { ink, quiet, accent, gold }) {
    const { rows, columns } = viewport.seen();
    const isSquare = axes.rows === axes.columns;
    const every = (pixelsOfCell) => Math.max(1, Math.ceil(LABEL / pixelsOfCell));
    const sets = [
      { tokens: axes.rows, seen: rows, step: every(viewport.y()), marked: place.row, found: hits.rows, at: (row) => viewport.topOf(row + 0.5), end: size.height },
      { tokens: axes.columns, seen: columns, step: every(viewport.x()), marked: place.column, found: isSquare ? hits.rows : hits.columns, at: (column) => viewport.leftOf(column + 0.5), end: size.width },
    ];
    sets.forEach(({ tokens, seen, step, marked, found, at, end }, side) => {
      const shown = new Set();
      for (let one = Math.ceil(seen[0] / step) * step; one < seen[1]; one += step) shown.add(one);
      if (marked !== null) for (const one of shown) if (Math.abs(at(one) - at(marked)) < LABEL) shown.delete(one);
      if (marked !== null) shown.add(marked);
      for (const one of shown) {
        if (at(one) < 0 || at(one) > end || !tokens[one]) continue;
        const colour = one === marked ? accent : tokens[one].start === tokens[one].end ? quiet : ink;
        label(tokens[one], one, side, at(one), step > 1, colour, one === marked);
      }
      pen.fillStyle = gold;
      for (const one of found) {
        if (at(one) < 0 || at(one) > end) continue;
        if (side === 0) pen.fillRect(-GAP, at(one) - 1, GAP - 1, 2);
        else pen.fillRect(at(one) - 1, -GAP, 2, GAP - 1);
      }
    });
    pen.fillStyle = quiet;
    pen.font = `11px ${FONT}`;
    pen.textAlign = "right";
    pen.textBaseline = "alphabetic";
    pen.fillText(`${axes.called.columns} →`, -10, -GAP - STRIP - 16);
    pen.fillText(`${axes.called.rows} ↓`, -10, -GAP - STRIP - 2);
  }

  function label(token, at, side, pixel, isSparse, colour, isMarked) {
    const name = nameOf(token);
    const text = isSparse ? `\u2068${name}\u2069 ${at + 1}` : name; // the name keeps its own direction
    pen.save();
    pen.fillStyle = colour;
    pen.font = `${isMarked ? "bold " : ""}12px ${FONT}`;
    pen.direction = !isSparse && RIGHT_TO_LEFT.test(name) ? "rtl" : "ltr";
    pen.textBaseline = "middle";
    if (side === 0) {
      pen.textAlign = "right";
      pen.fillText(shortened(text, margins.left - 14), -8, pixel);
    } else if (!isSparse && TALL.test(name)) {
      pen.textAlign = "center";
      [...name].reverse().forEach((character, up) => pen.fillText(character, pixel, -GAP - STRIP - 10 - 13 * up));
    } else {
      pen.translate(pixel, -GAP - STRIP - 4);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillText(shortened(text, margins.top - STRIP - 12), 0, 0);
    }
    pen.restore();
  }

  function shortened(text, room) {
    if (pen.measureText(text).width <= room) return text;
    let cut = [...text];
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

  /** The place under an event: a cell, or a row or column whose label it is. */
  function placeAt(event, viewport) {
    const [x, y] = within(event);
    if (x < 0 && y >= 0) {
      const found = viewport.placeAt(0, y);
      return found && { row: found.row, column: null };
    }
    if (y < 0 && x >= 0) {
      const found = viewport.placeAt(x, 0);
      return found && { row: null, column: found.column };
    }
    return viewport.placeAt(x, y);
  }

  /** What is drawn in a box, whose corner is counted from the cells' own, as an image for a file. */
  function part(left, top, width, height) {
    const sharp = devicePixelRatio || 1;
    const image = element("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
    const [x, y] = [left + margins.left, top + margins.top];
    image.getContext("2d").drawImage(canvas, x * sharp, y * sharp, width * sharp, height * sharp, 0, 0, image.width, image.height);
    return { image, at: [x, y, width, height] };
  }

  /** The scene for a file: cells and strips as images, everything else as text. */
  function picture(scene, place) {
    const { viewport, axes } = scene;
    const colours = inks();
    draw({ ...scene, hits: { rows: [], columns: [] } }, { row: null, column: null });
    const shapes = [part(0, 0, size.width, size.height)];
    if (scene.received) shapes.push(part(0, -GAP - STRIP, size.width, STRIP));
    if (scene.entropy) shapes.push(part(size.width + GAP, 0, STRIP, size.height));
    draw(scene, place);
    const corner = { size: 11, fill: colours.quiet, anchor: "end" };
    shapes.push({ ...corner, text: `${axes.called.columns} →`, at: [margins.left - 10, margins.top - GAP - STRIP - 16] });
    shapes.push({ ...corner, text: `${axes.called.rows} ↓`, at: [margins.left - 10, margins.top - GAP - STRIP - 2] });
    const { rows, columns } = viewport.seen();
    const step = (pixelsOfCell) => Math.max(1, Math.ceil(LABEL / pixelsOfCell));
    const cut = (text) => ([...text].length > 16 ? `${[...text].slice(0, 15).join("")}…` : text);
    for (let row = Math.ceil(rows[0] / step(viewport.y())) * step(viewport.y()); row < rows[1]; row += step(viewport.y())) {
      shapes.push({ text: cut(nameOf(axes.rows[row])), at: [margins.left - 8, margins.top + viewport.topOf(row + 0.5) + 4], size: 12, fill: colours.ink, anchor: "end" });
    }
    for (let column = Math.ceil(columns[0] / step(viewport.x())) * step(viewport.x()); column < columns[1]; column += step(viewport.x())) {
      const at = [margins.left + viewport.leftOf(column + 0.5) + 4, margins.top - GAP - STRIP - 4];
      shapes.push({ text: cut(nameOf(axes.columns[column])), at, size: 12, fill: colours.ink, turn: -90 });
    }
    return { width: size.width + margins.left + margins.right, height: size.height + margins.top + margins.bottom, shapes };
  }

  return { resize, draw, forget, forgetTile, within, placeAt, picture };
}

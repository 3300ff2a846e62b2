// A pooled map as a small picture.

import { element } from "./dom.js";
import { shareOf } from "./legend.js";
import { colourOf } from "./palette.js";

/** A canvas whose pixels are the buckets of a map; those of zero may be left clear. */
export function pixels({ rows, columns, share }, scale, full, isClear = false) {
  const canvas = element("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = share(row, column);
      const [red, green, blue] = colourOf(shareOf(value, full, scale));
      image.data.set([red, green, blue, isClear && value === 0 ? 0 : 255], 4 * (row * columns + column));
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** The largest share of a map. */
export function largestShare({ rows, columns, share }) {
  let most = 0;
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) most = Math.max(most, share(row, column));
  return most;
}

/** The map at a size, on a log scale, so that faint patterns show. */
export function thumbnail(pooled, size) {
  const canvas = pixels(pooled, "log", largestShare(pooled));
  canvas.className = "thumbnail";
  canvas.style.width = `${size}px`;
  canvas.style.height = `${Math.round(Math.max(8, Math.min(size * 2, (size * pooled.rows) / pooled.columns)))}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Where this head looks: a picture of its weights on a log scale");
  return canvas;
}

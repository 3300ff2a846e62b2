// What is visible of a matrix on a canvas, and how it zooms and pans.

/** Pixels of a cell, at most. */
export const LARGEST = 56;

/** A viewport over `rows` × `columns` cells; `resize` gives it its pixels. */
export function createViewport(rows, columns) {
  const box = { width: 1, height: 1, left: 0, top: 0 }; // left and top in cells
  let zoom = 1;

  const most = () => Math.max(1, LARGEST / Math.min(box.width / columns, box.height / rows));
  const x = () => (zoom * box.width) / columns; // pixels of a cell
  const y = () => (zoom * box.height) / rows;

  function hold() {
    zoom = Math.min(most(), Math.max(1, zoom));
    box.left = Math.min(columns - box.width / x(), Math.max(0, box.left));
    box.top = Math.min(rows - box.height / y(), Math.max(0, box.top));
  }

  return {
    x,
    y,
    isWhole: () => zoom === 1,
    isClosest: () => zoom >= most() * 0.999,
    resize(width, height) {
      [box.width, box.height] = [Math.max(1, width), Math.max(1, height)];
      hold();
    },
    /** Zooms by a factor, keeping the cell under a pixel where it is. */
    zoomBy(factor, pixelX = box.width / 2, pixelY = box.height / 2) {
      const [column, row] = [box.left + pixelX / x(), box.top + pixelY / y()];
      zoom *= factor;
      zoom = Math.min(most(), Math.max(1, zoom));
      [box.left, box.top] = [column - pixelX / x(), row - pixelY / y()];
      hold();
    },
    panBy(pixelsX, pixelsY) {
      [box.left, box.top] = [box.left + pixelsX / x(), box.top + pixelsY / y()];
      hold();
    },
    whole() {
      [zoom, box.left, box.top] = [1, 0, 0];
    },
    /** Brings a position into sight, if it is not; null leaves a side alone. */
    reveal({ row, column }) {
      const [wide, high] = [box.width / x(), box.height / y()];
      if (column !== null && (column < box.left || column + 1 > box.left + wide)) box.left = column + 0.5 - wide / 2;
      if (row !== null && (row < box.top || row + 1 > box.top + high)) box.top = row + 0.5 - high / 2;
      hold();
    },
    /** The cell under a pixel, or null outside. */
    cellAt(pixelX, pixelY) {
      if (pixelX < 0 || pixelY < 0 || pixelX > box.width || pixelY > box.height) return null;
      const [column, row] = [Math.floor(box.left + pixelX / x()), Math.floor(box.top + pixelY / y())];
      return row < rows && column < columns ? { row, column } : null;
    },
    /** First and one past the last row and column in sight. */
    visible() {
      return {
        rows: [Math.floor(box.top), Math.min(rows, Math.ceil(box.top + box.height / y()))],
        columns: [Math.floor(box.left), Math.min(columns, Math.ceil(box.left + box.width / x()))],
      };
    },
    leftOf: (column) => (column - box.left) * x(),
    topOf: (row) => (row - box.top) * y(),
    save: () => [zoom, box.left, box.top].map((value) => Number(value.toPrecision(6))).join("_"),
    restore(text) {
      const [size, left, top] = String(text).split("_").map(Number);
      if (![size, left, top].every(Number.isFinite)) return;
      [zoom, box.left, box.top] = [size, left, top];
      hold();
    },
  };
}

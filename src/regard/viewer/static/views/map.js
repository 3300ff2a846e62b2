// The matrix of any size, on a canvas: all of it as a pooled map, every weight where one zooms in.

import { element, section, signButton } from "../page/dom.js";
import { createFacts } from "../parts/facts.js";
import { sentences, t } from "../page/language.js";
import { figure, weightsTable, within } from "../data/maps.js";
import { DECADES, createLegend, largestShare } from "../page/palette.js";
import { createSurface } from "../parts/surface.js";

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
    zoom: () => zoom,
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
    /** Brings a place into sight, if it is not; null leaves a side alone. */
    reveal({ row, column }) {
      const [wide, high] = [box.width / x(), box.height / y()];
      if (column !== null && (column < box.left || column + 1 > box.left + wide)) box.left = column + 0.5 - wide / 2;
      if (row !== null && (row < box.top || row + 1 > box.top + high)) box.top = row + 0.5 - high / 2;
      hold();
    },
    /** The cell under a pixel, or null outside. */
    placeAt(pixelX, pixelY) {
      if (pixelX < 0 || pixelY < 0 || pixelX > box.width || pixelY > box.height) return null;
      const [column, row] = [Math.floor(box.left + pixelX / x()), Math.floor(box.top + pixelY / y())];
      return row < rows && column < columns ? { row, column } : null;
    },
    /** First and one past the last row and column in sight. */
    seen() {
      return {
        rows: [Math.floor(box.top), Math.min(rows, Math.ceil(box.top + box.height / y()))],
        columns: [Math.floor(box.left), Math.min(columns, Math.ceil(box.left + box.width / x()))],
      };
    },
    leftOf: (column) => (column - box.left) * x(),
    topOf: (row) => (row - box.top) * y(),
    size: () => ({ width: box.width, height: box.height }),
    save: () => [zoom, box.left, box.top].map((value) => Number(value.toPrecision(6))).join("_"),
    restore(text) {
      const [size, left, top] = String(text).split("_").map(Number);
      if (![size, left, top].every(Number.isFinite)) return;
      [zoom, box.left, box.top] = [size, left, top];
      hold();
    },
  };
}

const EXACT = 3; // pixels of a cell from which exact rows are asked for
const MOST_ROWS = 256; // asked for at a time
const STEP = 1.5; // of zooming
const MARGINS = { left: 132, top: 118, right: 26, bottom: 8 };
const SAID = 24; // pixels below the cells, where it is said that they are pooled
const NARROW = 520; // pixels of a page with less room for labels

export const map = {
  id: "map",
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
  applies: ({ reader }, example) => !reader.isEmpty(example),
  create,
};

function create(host, context) {
  const { reader, point, say, choose } = context;
  const canvas = element("canvas", {
    tabindex: "0", class: "map", role: "application", "aria-roledescription": t("map.role"), onwheel: wheel, onpointermove: move,
    onpointerdown: down, onpointerup: up, onpointercancel: lost, onpointerleave: () => point(null, false), ondblclick: (event) => zoomAt(STEP ** 2, event), onkeydown: key,
  });
  const caption = element("p", { class: "caption" });
  const tools = element(
    "div",
    { class: "tools", role: "group", "aria-label": t("map.zoom") },
    signButton("+", t("map.in"), () => zoomBy(STEP)),
    signButton("−", t("map.out"), () => zoomBy(1 / STEP)),
    signButton(t("map.all.short"), t("map.all"), () => whole()),
  );
  const what = element("span", { class: "what" });
  const aside = element("aside", { class: "readout", "aria-label": t("weights") });
  const facts = createFacts(aside, context);
  const holder = element("div", { class: "holder" }, canvas);
  const legend = createLegend(what, element("span", { class: "key" }, element("i", { class: "strip-key" }), t("map.strips")));
  host.append(section(t("map"), tools, caption, element("div", { class: "split wide" }, holder, aside), legend.node));
  const margins = { ...MARGINS };
  const surface = createSurface(canvas, margins);
  let state = null;
  let scene = null; // what the surface draws
  let viewport = null;
  let shape = "";
  let kept = 0; // largest weights of a row that the document has
  let place = { row: null, column: null };
  let grip = null; // where a drag began
  const fingers = new Map(); // where each is that is down, by its number
  let tileTurn = 0;

  async function show(next) {
    state = next;
    const axes = reader.axes(state);
    const [N, M] = [axes.rows.length, axes.columns.length];
    const whole = await reader.map(state);
    const [pooled, received, entropy] = await Promise.all([
      whole ? null : reader.pooled(state), reader.line(state, "received"), reader.line(state, "entropy"),
    ]);
    if (shape !== `${state.example} ${state.kind} ${state.pair}`) {
      shape = `${state.example} ${state.kind} ${state.pair}`;
      viewport = createViewport(N, M);
      surface.forget();
    }
    scene = {
      axes, whole, pooled, received, entropy, viewport, scale: state.scale, hits: context.hits(), tile: null,
      pooledFull: pooled ? largestShare(pooled) : 0,
    };
    margins.bottom = isPooled(scene) ? SAID : MARGINS.bottom;
    caption.textContent = sentences(axes.says, t("map.size", { rows: N.toLocaleString("en"), columns: M.toLocaleString("en") }));
    kept = reader.keptOf(state);
    canvas.setAttribute("aria-label", t("map.name", { looks: axes.called.rows, seen: axes.called.columns, rows: N, columns: M }));
    fit();
    if (state.zoom && viewport.save() !== state.zoom) viewport.restore(state.zoom);
    repaint();
  }

  function fit() {
    if (!scene) return;
    const { rows, columns } = scene.axes;
    margins.left = holder.clientWidth < NARROW ? 84 : MARGINS.left;
    const room = Math.max(120, holder.clientWidth - margins.left - margins.right);
    const width = Math.min(room, LARGEST * columns.length);
    const height = Math.min(LARGEST * rows.length, Math.max(140, (width * rows.length) / columns.length), 0.8 * Math.max(innerHeight, 500), 1.4 * width);
    surface.resize(width, height);
    viewport.resize(width, height);
    repaint();
  }

  let frame = 0;
  function repaint() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      redraw();
      fetchTile();
    });
  }

  function redraw() {
    scene.says = pooledSays(scene, kept);
    surface.draw(scene, place);
    explain();
  }

  function explain() {
    const { whole, pooled, tile, pooledFull, scale } = scene;
    const full = tile ? tile.full : whole ? whole.largest : pooledFull;
    const top = scale === "one" ? 1 : full;
    legend.tell(scale === "log" ? figure(top / 10 ** DECADES, 2) : "0", figure(top, 3));
    what.textContent = cellSays(scene, kept);
    tools.children[0].disabled = viewport.isClosest();
    tools.children[1].disabled = tools.children[2].disabled = viewport.isWhole();
  }

  // Exact rows over the pooled map, for what is in sight, once a cell is large enough to be seen.
  async function fetchTile() {
    if (scene.whole || viewport.y() < EXACT || viewport.x() < EXACT / 2) {
      if (scene.tile) {
        scene.tile = null;
        redraw();
      }
      return;
    }
    const mine = ++tileTurn;
    const { rows, columns } = viewport.seen();
    const holds = ([from, to], [start, end]) => from <= start && to >= end;
    if (scene.tile && holds(scene.tile.rows, rows) && holds(scene.tile.columns, columns)) return;
    const beside = columns[1] - columns[0];
    const across = [Math.max(0, columns[0] - beside), Math.min(scene.axes.columns.length, columns[1] + beside)];
    const first = Math.max(0, rows[0] - 16);
    const last = Math.min(scene.axes.rows.length, rows[1] + 16, first + MOST_ROWS);
    const queries = Array.from({ length: last - first }, (_, at) => first + at);
    const asked = scene;
    const exact = await reader.rows(state, queries);
    const found = exact ? windowOf(exact, across) : await topRows(queries, across);
    if (mine !== tileTurn || asked !== scene || !found) return;
    scene.tile = { rows: [first, last], columns: across, ...found, isTop: !exact };
    surface.forgetTile();
    redraw();
  }

  // Where only the largest weights of a head were kept, they are drawn alone.
  async function topRows(queries, [from, to]) {
    const found = { weights: [], full: 0 };
    for (const query of queries) {
      const top = await reader.keptTop(state, query);
      if (!top) return null;
      const row = new Float32Array(to - from);
      for (const { at, weight } of top.entries) {
        if (at >= from && at < to) row[at - from] = weight;
        found.full = Math.max(found.full, weight);
      }
      found.weights.push(row);
    }
    return found;
  }

  function zoomBy(factor, x, y) {
    viewport.zoomBy(factor, x, y);
    moved();
  }

  function zoomAt(factor, event) {
    const [x, y] = surface.within(event);
    zoomBy(factor, x, y);
  }

  function whole() {
    viewport.whole();
    moved();
  }

  let settling = 0;
  function moved() {
    canvas.style.touchAction = viewport.isWhole() ? "" : "none"; // the page scrolls where all is seen
    repaint();
    clearTimeout(settling);
    settling = setTimeout(() => choose({ zoom: viewport.isWhole() ? "" : viewport.save() }), 400);
  }

  function wheel(event) {
    const isOut = event.deltaY > 0;
    if ((isOut && viewport.isWhole()) || (!isOut && viewport.isClosest())) return; // the page scrolls
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0022)), event);
  }

  function down(event) {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    grip = { x: event.clientX, y: event.clientY, isDrag: fingers.size > 1 };
  }

  // Two fingers: what is between them stays between them.
  function pinch(event) {
    const [middle, apart] = spanOf([...fingers.values()]);
    fingers.set(event.pointerId, event);
    const [next, wider] = spanOf([...fingers.values()]);
    viewport.panBy(middle.clientX - next.clientX, middle.clientY - next.clientY);
    zoomAt(wider / Math.max(1, apart), next);
  }

  function move(event) {
    if (fingers.size > 1 && fingers.has(event.pointerId)) pinch(event);
    else if (grip && event.buttons) {
      const [x, y] = [grip.x - event.clientX, grip.y - event.clientY];
      if (!grip.isDrag && Math.hypot(x, y) < 4) return;
      grip = { x: event.clientX, y: event.clientY, isDrag: true };
      viewport.panBy(x, y);
      moved();
    } else point(surface.placeAt(event, viewport), false);
  }

  function up(event) {
    if (grip && !grip.isDrag) point(surface.placeAt(event, viewport) ?? { row: null, column: null }, true);
    lost(event);
  }

  // The finger that stays goes on as a drag from where it is.
  function lost(event) {
    fingers.delete(event.pointerId);
    const [left] = fingers.values();
    grip = left ? { x: left.clientX, y: left.clientY, isDrag: true } : null;
  }

  function key(event) {
    const { key, shiftKey } = event;
    const { rows, columns } = scene.axes;
    if (key === "+" || key === "=") zoomBy(STEP, ...middle());
    else if (key === "-") zoomBy(1 / STEP, ...middle());
    else if (key === "0") whole();
    else {
      const by = Math.max(shiftKey ? 10 : 1, Math.ceil(3 / viewport.y()));
      const across = Math.max(shiftKey ? 10 : 1, Math.ceil(3 / viewport.x()));
      const step = {
        ArrowUp: [-by, 0], ArrowDown: [by, 0], ArrowLeft: [0, -across], ArrowRight: [0, across],
        PageUp: [-10 * by, 0], PageDown: [10 * by, 0], Home: [0, -columns.length], End: [0, columns.length],
      }[key];
      if (!step || event.ctrlKey) return;
      const next = {
        row: within((place.row ?? -step[0]) + step[0], rows.length),
        column: within((place.column ?? -step[1]) + step[1], columns.length),
      };
      point(next, true);
      viewport.reveal(next);
      repaint();
    }
    event.preventDefault();
  }

  const middle = () => (place.row === null || place.column === null ? [] : [viewport.leftOf(place.column + 0.5), viewport.topOf(place.row + 0.5)]);

  function mark(next) {
    place = next;
    if (!scene) return;
    repaint();
    facts.show(state, place, say);
  }

  return {
    show,
    mark,
    fit,
    focus: () => canvas.focus(),
    press: (event) => ["+", "=", "-", "0"].includes(event.key) && (key(event), true),
    reveal: ({ row, column }) => {
      const isSquare = scene.axes.rows.length === scene.axes.columns.length;
      const other = isSquare ? (row ?? column) : null; // near the diagonal
      viewport.reveal({ row: row ?? other, column: column ?? other });
      repaint();
    },
    picture: () => ({ ...surface.picture(scene, place), legend: { ...legend.ends(), says: [what.textContent, t("map.strips")] } }),
    table,
    destroy: () => {
      clearTimeout(settling);
      cancelAnimationFrame(frame);
    },
  };

  // The weights, if they are at hand; else the shares of the pooled map.
  function table() {
    const { whole, pooled } = scene;
    if (whole) return weightsTable(whole);
    if (!pooled) return { columns: [], rows: [] };
    const across = Array.from({ length: pooled.columns }, (_, at) => at);
    return {
      columns: ["from row", ...across.map((at) => `from column ${at * pooled.bucket[1] + 1}`)],
      rows: Array.from({ length: pooled.rows }, (_, row) => [
        row * pooled.bucket[0] + 1, ...across.map((column) => figure(pooled.share(row, column))),
      ]),
    };
  }
}

/** The point between two fingers, as an event has one, and how far they are apart. */
function spanOf([one, other]) {
  const between = { clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2 };
  return [between, Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY)];
}

// The columns of rows that are in sight, and the largest weight of all.
function windowOf(rows, [from, to]) {
  let full = 0;
  for (const row of rows) for (let at = 0; at < row.length; at++) if (row[at] > full) full = row[at];
  return { weights: rows.map((row) => row.slice(from, to)), full };
}

function isPooled({ whole, pooled }) {
  return !whole && Boolean(pooled) && pooled.bucket[0] * pooled.bucket[1] > 1;
}

function cellSays({ whole, tile, pooled }, count) {
  if (tile?.isTop) return t(count === 1 ? "map.cell.top.one" : "map.cell.top.many", { count });
  if (!whole && !tile && !pooled) return t("map.cell.none");
  return !whole && !tile && isPooled({ pooled }) ? t("map.cell.pooled", sizeOf(pooled)) : t("map.cell");
}

// What is written on the canvas itself, so that nobody takes pooled squares for weights.
function pooledSays(scene, count) {
  if (!isPooled(scene) || (scene.tile && !scene.tile.isTop)) return "";
  const size = sizeOf(scene.pooled);
  if (scene.tile) return t(count === 1 ? "map.pooled.top.one" : "map.pooled.top.many", { ...size, count });
  return t("map.pooled", size);
}

const sizeOf = ({ bucket: [height, width] }) => ({ height, width });

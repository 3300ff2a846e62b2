// The matrix of any size, on a canvas: all of it as a pooled map, every weight where one zooms in.

import { element, sectionWith, signButton } from "../page/dom.js";
import { createFacts } from "../parts/facts.js";
import { sentences, t } from "../page/language.js";
import { figure, weightsTable, within } from "../data/maps.js";
import { DECADES, createLegend, largestShare } from "../page/palette.js";
import { createSurface } from "../parts/surface.js";
import { LARGEST, createViewport } from "../parts/viewport.js";

const EXACT = 3; // pixels of a cell from which exact rows are requested
const MOST_ROWS = 256; // of one request
const STEP = 1.5; // of zooming
const MARGINS = { left: 132, top: 118, right: 26, bottom: 8 };
const NOTE_HEIGHT = 24; // pixels below the cells, where a note says that they are pooled
const NARROW = 520; // pixels of a page with less room for labels

/** @type {import("./views.js").ViewType} */
export const map = {
  id: "map",
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
  applies: ({ reader }, example) => !reader.isEmpty(example),
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, say, choose } = context;
  const canvas = element("canvas", {
    tabindex: "0",
    class: "map",
    role: "application",
    "aria-roledescription": t("map.role"),
    onwheel: wheel,
    onpointermove: move,
    onpointerdown: down,
    onpointerup: up,
    onpointercancel: lost,
    onpointerleave: () => point(null, false),
    ondblclick: (event) => zoomAt(STEP ** 2, event),
    onkeydown: key,
  });
  const caption = element("p.caption");
  const tools = element(
    "div.tools",
    { role: "group", "aria-label": t("map.zoom") },
    signButton("+", t("map.in"), () => zoomBy(STEP)),
    signButton("−", t("map.out"), () => zoomBy(1 / STEP)),
    signButton(t("map.all.short"), t("map.all"), () => whole()),
  );
  const what = element("span.what");
  const aside = element("aside.readout", { "aria-label": t("weights") });
  const facts = createFacts(aside, context);
  const holder = element("div.holder", canvas);
  const legend = createLegend(what, element("span.key", element("i.strip-key"), t("map.strips")));
  host.append(sectionWith(tools, t("map"), caption, element("div.split.wide", holder, aside), legend.node));
  const margins = { ...MARGINS };
  const surface = createSurface(canvas, margins);
  let state = null;
  /** @type {any} */
  let scene = null; // what the surface draws
  /** @type {ReturnType<typeof createViewport>} */
  let viewport = null;
  let shape = "";
  let stored = 0; // largest weights of a row that the document has
  let position = { row: null, column: null };
  let grip = null; // where a drag began
  const fingers = new Map(); // where each is that is down, by its number
  let tileTurn = 0;

  async function show(next) {
    state = next;
    const axes = reader.axes(state);
    const [N, M] = [axes.rows.length, axes.columns.length];
    const whole = await reader.map(state);
    const [pooled, received, entropy] = await Promise.all([
      whole ? null : reader.pooled(state),
      reader.line(state, "received"),
      reader.line(state, "entropy"),
    ]);
    if (shape !== `${state.example} ${state.kind} ${state.pair}`) {
      shape = `${state.example} ${state.kind} ${state.pair}`;
      viewport = createViewport(N, M);
    }
    const scale = { scale: state.scale, pooledFull: pooled ? largestShare(pooled) : 0 };
    scene = { axes, whole, pooled, received, entropy, viewport, ...scale, hits: context.hits(), tile: null };
    margins.bottom = isPooled(scene) ? NOTE_HEIGHT : MARGINS.bottom;
    const size = { rows: N.toLocaleString("en"), columns: M.toLocaleString("en") };
    caption.textContent = sentences(axes.description, t("map.size", size));
    stored = reader.storedCount(state);
    const { rows: queries, columns: keys } = axes.axisNames;
    canvas.setAttribute("aria-label", t("map.name", { queries, keys, rows: N, columns: M }));
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
    const height = Math.min(
      LARGEST * rows.length,
      Math.max(140, (width * rows.length) / columns.length),
      0.8 * Math.max(innerHeight, 500),
      1.4 * width,
    );
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
    scene.note = pooledSays(scene, stored);
    surface.draw(scene, position);
    explain();
  }

  function explain() {
    const { whole, tile, pooledFull, scale } = scene;
    const full = tile ? tile.full : whole ? whole.largest : pooledFull;
    const top = scale === "one" ? 1 : full;
    legend.setEnds(scale === "log" ? figure(top / 10 ** DECADES, 2) : "0", figure(top, 3));
    what.textContent = cellSays(scene, stored);
    const [closer, wider, all] = tools.querySelectorAll("button");
    closer.disabled = viewport.isClosest();
    wider.disabled = all.disabled = viewport.isWhole();
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
    const { rows, columns } = viewport.visible();
    /** @type {(outer: number[], inner: number[]) => boolean} */
    const holds = ([from, to], [start, end]) => from <= start && to >= end;
    if (scene.tile && holds(scene.tile.rows, rows) && holds(scene.tile.columns, columns)) return;
    const margin = columns[1] - columns[0];
    const across = [Math.max(0, columns[0] - margin), Math.min(scene.axes.columns.length, columns[1] + margin)];
    const first = Math.max(0, rows[0] - 16);
    const last = Math.min(scene.axes.rows.length, rows[1] + 16, first + MOST_ROWS);
    const queries = Array.from({ length: last - first }, (_, at) => first + at);
    const requested = scene;
    const exact = await reader.rows(state, queries);
    const tile = exact ? windowOf(exact, across) : await topRows(queries, across);
    if (mine !== tileTurn || requested !== scene || !tile) return;
    scene.tile = { rows: [first, last], columns: across, ...tile, isTop: !exact };
    redraw();
  }

  // Where only the largest weights of a head were stored, they are drawn alone.
  /**
   * @param {number[]} queries
   * @param {number[]} columns
   */
  async function topRows(queries, [from, to]) {
    const tile = { weights: [], full: 0 };
    for (const query of queries) {
      const top = await reader.storedTop(state, query);
      if (!top) return null;
      const row = new Float32Array(to - from);
      for (const { at, weight } of top.entries) {
        if (at >= from && at < to) row[at - from] = weight;
        tile.full = Math.max(tile.full, weight);
      }
      tile.weights.push(row);
    }
    return tile;
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
    const before = spanOf([...fingers.values()]);
    fingers.set(event.pointerId, event);
    const after = spanOf([...fingers.values()]);
    viewport.panBy(before.between.clientX - after.between.clientX, before.between.clientY - after.between.clientY);
    zoomAt(after.distance / Math.max(1, before.distance), after.between);
  }

  function move(event) {
    if (fingers.size > 1 && fingers.has(event.pointerId)) pinch(event);
    else if (grip && event.buttons) {
      const [x, y] = [grip.x - event.clientX, grip.y - event.clientY];
      if (!grip.isDrag && Math.hypot(x, y) < 4) return;
      grip = { x: event.clientX, y: event.clientY, isDrag: true };
      viewport.panBy(x, y);
      moved();
    } else point(surface.cellAt(event, viewport), false);
  }

  function up(event) {
    if (grip && !grip.isDrag) point(surface.cellAt(event, viewport) ?? { row: null, column: null }, true);
    lost(event);
  }

  // The finger that stays continues as a drag from where it is.
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
        ArrowUp: [-by, 0],
        ArrowDown: [by, 0],
        ArrowLeft: [0, -across],
        ArrowRight: [0, across],
        PageUp: [-10 * by, 0],
        PageDown: [10 * by, 0],
        Home: [0, -columns.length],
        End: [0, columns.length],
      }[key];
      if (!step || event.ctrlKey) return;
      const next = {
        row: within((position.row ?? -step[0]) + step[0], rows.length),
        column: within((position.column ?? -step[1]) + step[1], columns.length),
      };
      point(next, true);
      viewport.reveal(next);
      repaint();
    }
    event.preventDefault();
  }

  const middle = () =>
    position.row === null || position.column === null
      ? []
      : [viewport.leftOf(position.column + 0.5), viewport.topOf(position.row + 0.5)];

  function mark(next) {
    position = next;
    if (!scene) return;
    repaint();
    facts.show(state, position, say);
  }

  return {
    show,
    mark,
    fit,
    focus: () => canvas.focus(),
    press: (event) => {
      const isZoom = ["+", "=", "-", "0"].includes(event.key);
      if (isZoom) key(event);
      return isZoom;
    },
    reveal: ({ row, column }) => {
      const isSquare = scene.axes.rows.length === scene.axes.columns.length;
      const other = isSquare ? (row ?? column) : null; // near the diagonal
      viewport.reveal({ row: row ?? other, column: column ?? other });
      repaint();
    },
    picture: () => ({
      ...surface.picture(scene, position),
      legend: { ...legend.ends(), notes: [what.textContent, t("map.strips")] },
    }),
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
        row * pooled.bucket[0] + 1,
        ...across.map((column) => figure(pooled.share(row, column))),
      ]),
    };
  }
}

// The point between two fingers, as an event has one, and their distance.
/** @param {any[]} fingers */
function spanOf([one, other]) {
  const between = { clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2 };
  return { between, distance: Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) };
}

/**
 * The columns of rows that are in sight, and the largest weight of all.
 *
 * @param {any[]} rows
 * @param {number[]} columns
 */
function windowOf(rows, [from, to]) {
  let full = 0;
  for (const row of rows) for (let at = 0; at < row.length; at++) if (row[at] > full) full = row[at];
  return { weights: rows.map((row) => row.slice(from, to)), full };
}

/** @param {{whole?: any, pooled: any}} scene */
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

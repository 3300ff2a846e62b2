// A mask is typed and drawn at once; what it costs is told by Python where there is one to ask.

import { element } from "./dom.js";
import { drawMask, fitMask } from "./masks.js";
import { colourOf, inks } from "./palette.js";
import { parseMask } from "./parsing.js";

const OPENING = "causal() & window(before=4) | prefix(2)";
const EXAMPLES = [
  ["causal()", "no looking ahead"],
  ["causal() & window(before=8)", "a sliding window"],
  ["prefix(6) | causal()", "a prefix language model"],
  ["window(before=2, after=2) | prefix(1)", "local, and one global token"],
  ["documents([0]*9 + …) & causal()", "texts packed into a row"],
  ["lengths([24, 15])", "padding at the end"],
  ["~window(before=3, after=3)", "all but the near"],
];
const SIZE = 24;
const MOST = 512; // places along a side that are drawn
const BLOCKS = 4; // batch rows that are drawn
const LARGEST = 100_000;
const PATIENCE = 250; // milliseconds after the last key
const HEADS = 8;
const HEAD_DIM = 64;

export const playground = {
  id: "masks",
  title: "Masks",
  says: "A playground: type a mask, see its drawing, the plan and the bytes",
  controls: [],
  applies: ({ reader }, example) => Boolean(reader.data.examples[example]) && !reader.isEmpty(example),
  create,
};

function create(host, context) {
  const { choose, say, source } = context;
  const input = element("textarea", { id: "mask", rows: "2", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "mask-fault", oninput: typed });
  const sizes = { queries: sizeField("queries"), keys: sizeField("keys") };
  const fault = element("pre", { class: "fault", id: "mask-fault", role: "alert", hidden: true });
  const offers = element("div", { class: "offers" }, ...EXAMPLES.map(([text, does]) => offer(text, does)));
  const drawing = element("div", { class: "drawing" });
  const told = element("p", { class: "caption told", role: "status" });
  const facts = element("dl", { class: "measures" });
  const plan = element("div", { class: "plan", "aria-live": "polite" });
  host.append(
    element(
      "section",
      { "aria-label": "Masks" },
      element("h2", {}, "A mask, drawn as it is typed"),
      element("p", { class: "caption" }, "A mask says which keys (across) a query (down) may look at. Masks join with &, | and ~; the last query stands at the last key unless first= says otherwise."),
      element("div", { class: "typing" }, element("label", { for: "mask", class: "name" }, "Mask"), input, element("div", { class: "sizes" }, sizes.queries.node, sizes.keys.node)),
      fault,
      offers,
      element("div", { class: "split wide" }, element("div", {}, drawing, told), element("aside", { class: "readout", "aria-label": "Cost" }, facts, plan)),
    ),
  );
  let charts = [];
  let shown = null; // {text, queries, keys, fitted}
  let at = null; // {block, query, key} on the drawing
  let waiting = 0;
  let turn = 0;

  function sizeField(name) {
    const field = element("input", { type: "number", id: `mask-${name}`, min: "1", max: String(LARGEST), step: "1", value: String(SIZE), oninput: typed });
    return { field, node: element("label", {}, element("span", { class: "name" }, name), field) };
  }

  function offer(text, does) {
    const sized = () => {
      const count = numberOf(sizes.keys.field);
      const ids = Array.from({ length: count }, (_, place) => Math.floor((3 * place) / count));
      return text.replace("[0]*9 + …", JSON.stringify(ids).replaceAll(",", ", "));
    };
    const take = () => {
      if (text.startsWith("documents")) sizes.queries.field.value = sizes.keys.field.value;
      input.value = sized();
      typed();
      input.focus();
    };
    const label = text.replace("[0]*9 + …", "[0, 0, …, 1, …]");
    return element("button", { type: "button", onclick: take }, element("code", {}, label), element("small", {}, does));
  }

  function typed() {
    clearTimeout(waiting);
    waiting = setTimeout(() => choose({ mask: input.value, queries: sizes.queries.field.value, keys: sizes.keys.field.value }), PATIENCE);
  }

  function numberOf(field) {
    const number = Math.round(Number(field.value));
    return Number.isFinite(number) ? Math.max(1, Math.min(LARGEST, number)) : SIZE;
  }

  async function show(state) {
    const wanted = [[input, state.mask ?? OPENING], [sizes.queries.field, state.queries ?? SIZE], [sizes.keys.field, state.keys ?? SIZE]];
    for (const [field, value] of wanted) if (document.activeElement !== field && field.value !== String(value)) field.value = String(value);
    const [queries, keys] = [numberOf(sizes.queries.field), numberOf(sizes.keys.field)];
    const text = input.value;
    try {
      shown = { text, queries, keys, fitted: fitMask(parseMask(text), queries, keys) };
      fault.hidden = true;
      input.removeAttribute("aria-invalid");
    } catch (error) {
      complain(error, text);
      return;
    }
    drawing.classList.remove("stale");
    draw();
    tellFacts();
    mark();
    askPlan();
  }

  // The fault below the text, with a caret under the character where it is known.
  function complain(error, text) {
    if (!("at" in error)) throw error;
    const before = error.at === null ? null : Array.from(text).slice(0, error.at).join("");
    const line = before === null ? "" : `${text.split("\n")[before.split("\n").length - 1]}\n${" ".repeat(before.split("\n").at(-1).length)}▲\n`;
    fault.textContent = line + error.message;
    fault.hidden = false;
    input.setAttribute("aria-invalid", "true");
    drawing.classList.add("stale");
    plan.replaceChildren();
  }

  function draw() {
    const { queries, keys, fitted } = shown;
    const blocks = Math.min(BLOCKS, fitted.batches);
    const [rows, columns] = [Math.min(queries, MOST), Math.min(keys, MOST)];
    const room = Math.max(180, Math.min(560, drawing.clientWidth || 560)) / (blocks > 1 ? 2 : 1) - 12;
    const size = Math.max(0.4, Math.min(26, room / columns, (blocks > 1 ? 300 : 560) / rows));
    charts = Array.from({ length: blocks }, (_, block) => chartOf(block, rows, columns, size));
    drawing.replaceChildren(...charts.map((chart) => chart.node));
    if (fitted.batches > blocks) drawing.append(element("p", { class: "hint" }, `and ${fitted.batches - blocks} batch rows more`));
  }

  function placesOf(count, many) {
    return Array.from({ length: count }, (_, place) => (count === many ? place : Math.floor((place * many) / count)));
  }

  function chartOf(block, rows, columns, size) {
    const { queries, keys, fitted } = shown;
    const [down, across] = [placesOf(rows, queries), placesOf(columns, keys)];
    const sharp = globalThis.devicePixelRatio || 1;
    const canvas = element("canvas", { class: "map", role: "img", tabindex: block ? null : "0", width: Math.round(columns * size * sharp), height: Math.round(rows * size * sharp) });
    Object.assign(canvas.style, { width: `${columns * size}px`, height: `${rows * size}px` });
    const pen = canvas.getContext("2d");
    const gap = size >= 6 ? 1 : 0;
    const [seen, hidden] = [0.72, 0.03].map((share) => `rgb(${colourOf(share).join(",")})`);
    let count = 0;
    pen.scale(sharp, sharp);
    down.forEach((query, row) =>
      across.forEach((key, column) => {
        const sees = fitted.sees(block, query, key);
        if (sees) count += 1;
        pen.fillStyle = sees ? seen : hidden;
        pen.fillRect(column * size, row * size, size - gap, size - gap);
      }),
    );
    canvas.setAttribute("aria-label", `${rows} queries by ${columns} keys, ${count} of ${rows * columns} visible. Arrow keys read it query by query.`);
    const cellOf = (event) => {
      const box = canvas.getBoundingClientRect();
      const [row, column] = [Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size)];
      return down[row] === undefined || across[column] === undefined ? null : { block, query: down[row], key: across[column] };
    };
    canvas.addEventListener("pointermove", (event) => mark(cellOf(event)));
    canvas.addEventListener("pointerleave", () => mark(null));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      const held = at ?? { block, query: 0, key: 0 };
      const moved = at ? { block, query: held.query + by[0], key: held.key + by[1] } : held;
      mark({ block, query: Math.max(0, Math.min(queries - 1, moved.query)), key: Math.max(0, Math.min(keys - 1, moved.key)) });
      say(told.textContent);
    });
    const rule = element("i", { class: "band row", hidden: true });
    const title = fitted.batches > 1 ? element("figcaption", {}, `batch row ${block + 1}`) : "";
    const node = element("figure", {}, title, element("div", { class: "cells" }, canvas, rule));
    const point = (cell) => {
      rule.hidden = !cell || cell.block !== block;
      if (!rule.hidden) Object.assign(rule.style, { left: 0, top: `${(cell.query * rows * size) / queries}px`, width: `${columns * size}px`, height: `${Math.max(2, (size * rows) / queries)}px` });
    };
    return { node, canvas, point, count, rows, columns, size };
  }

  function mark(cell = at) {
    at = cell;
    for (const chart of charts) chart.point(at);
    if (!at || !shown) {
      told.textContent = "Point at a query to read which keys it sees.";
      return;
    }
    const { keys, fitted } = shown;
    const seen = [];
    for (let key = 0; key < keys; key++) if (fitted.sees(at.block, at.query, key)) seen.push(key);
    const key = fitted.sees(at.block, at.query, at.key) ? `sees key ${at.key}` : `does not see key ${at.key}`;
    told.textContent = `Query ${at.query} ${key}. It sees ${seen.length ? `keys ${rangesOf(seen)} (${seen.length} of ${keys})` : "nothing: its answer is zeros"}.`;
  }

  // Exact while every pair is drawn, else from the pairs that are.
  function tellFacts() {
    const { queries, keys, fitted } = shown;
    const isExact = queries <= MOST && keys <= MOST && fitted.batches <= BLOCKS;
    const drawn = charts.reduce((sum, chart) => sum + chart.rows * chart.columns, 0);
    const share = charts.reduce((sum, chart) => sum + chart.count, 0) / drawn;
    const pairs = Math.round(share * queries * keys * fitted.batches);
    const about = isExact ? "" : "about ";
    const list = [
      ["visible pairs", `${about}${pairs.toLocaleString("en")} of ${(queries * keys * fitted.batches).toLocaleString("en")} (${(100 * share).toFixed(1)} %)`],
      ["as a boolean tensor", bytesOf(queries * keys * fitted.batches)],
      [`all weights, ${HEADS} heads, float32`, bytesOf(4 * HEADS * queries * keys * fitted.batches)],
    ];
    facts.replaceChildren(...list.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  }

  // The plan is Python's to make: it depends on the machine and on what is installed there.
  async function askPlan() {
    const mine = ++turn;
    const { text, queries, keys } = shown;
    const head = element("h3", {}, "Plan", element("small", {}, ` of attend, ${HEADS} heads of ${HEAD_DIM}`));
    if (!source?.explain) {
      const sizes = (many) => `torch.empty(${shown.fitted.batches}, ${HEADS}, ${many}, ${HEAD_DIM})`;
      const code = `q = ${sizes(queries)}\nk = ${sizes(keys)}\nmask = ${qualified(text)}\nprint(rg.explain(q, k, mask=mask))`;
      plan.replaceChildren(head, element("p", { class: "hint" }, "Which path serves it, and its bytes, depend on the machine: a file cannot tell. Ask Python, or open this page from regard serve."), element("pre", { class: "code" }, code));
      return;
    }
    try {
      const found = await source.explain(text, { queries, keys, heads: HEADS, head_dim: HEAD_DIM });
      if (mine !== turn) return;
      const rows = [["path", found.backend], ["bytes beyond inputs and output", bytesOf(found.bytes)], ["operations", found.operations.toLocaleString("en")]];
      plan.replaceChildren(
        head,
        element("dl", { class: "measures" }, ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
        element("p", { class: "hint" }, found.reason),
        ...found.notes.map((note) => element("p", { class: "hint" }, note)),
      );
    } catch (error) {
      if (mine === turn) plan.replaceChildren(head, element("p", { class: "hint" }, error.message));
    }
  }

  function picture() {
    const { ink } = inks();
    let left = 12;
    let height = 0;
    const shapes = [{ text: shown.text, at: [12, 20], size: 14, fill: ink, bold: true }];
    for (const { canvas, rows, columns, size } of charts) {
      shapes.push({ image: canvas, at: [left, 34, columns * size, rows * size] });
      left += columns * size + 24;
      height = Math.max(height, rows * size);
    }
    return { width: Math.max(left, 320), height: height + 46, shapes };
  }

  function table() {
    const { queries, keys, fitted } = shown;
    const [rows, columns] = [Math.min(queries, MOST), Math.min(keys, MOST)];
    const lines = drawMask({ ...fitted, batches: Math.min(BLOCKS, fitted.batches) }, rows, columns).split("\n");
    const cells = lines.filter(Boolean).map((line) => line.split(" ").map((mark) => (mark === "1" ? 1 : 0)));
    return { columns: ["batch row", "query", ...Array.from({ length: columns }, (_, key) => `key ${key}`)], rows: cells.map((row, place) => [Math.floor(place / rows), place % rows, ...row]) };
  }

  return {
    show, picture, table,
    fit: () => shown && (draw(), mark()),
    focus: () => input.focus(),
    destroy: () => {
      clearTimeout(waiting);
      host.replaceChildren();
    },
  };
}

// 0–3, 7, 9–12
function rangesOf(places) {
  const ranges = [];
  for (const place of places) {
    if (ranges.length && ranges.at(-1)[1] === place - 1) ranges.at(-1)[1] = place;
    else ranges.push([place, place]);
  }
  const written = ranges.slice(0, 8).map(([from, to]) => (from === to ? String(from) : `${from}–${to}`));
  return written.join(", ") + (ranges.length > 8 ? ", …" : "");
}

function bytesOf(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes > 0 ? Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3)) : 0;
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${units[power]}`;
}

// The expression as one writes it after `import regard as rg`; lists of numbers become tensors there.
function qualified(text) {
  return text.trim().replaceAll(/\b(?:rg\.|regard\.)?(\w+)\(/g, "rg.$1(");
}

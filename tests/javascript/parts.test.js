// What several views draw with: the largest weights of a view, differences of texts, lists, the viewport.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fixtures, isClose } from "./browser.js";

const { createAttention, listsOf } = await import("../../src/regard/viewer/static/parts/attention.js");
const { createReader } = await import("../../src/regard/viewer/static/data/reader.js");
const { wordsOf } = await import("../../src/regard/viewer/static/data/maps.js");
const { differing } = await import("../../src/regard/viewer/static/parts/differing.js");
const { createViewport, LARGEST } = await import("../../src/regard/viewer/static/parts/viewport.js");
const { createOverlay, overlaid } = await import("../../src/regard/viewer/static/parts/overlay.js");
const geometry = await import("../../src/regard/viewer/static/parts/geometry.js");
const { createProse } = await import("../../src/regard/viewer/static/parts/prose.js");
const { createMatrix } = await import("../../src/regard/viewer/static/parts/matrix.js");
const { overviewOf } = await import("../../src/regard/viewer/static/parts/facts.js");

const { short, long } = fixtures("data");
const reader = createReader(short.document, null);
const view = { example: 0, kind: "cross", layer: 0, head: 1 };
const rows = short.document.examples[0].maps[1].rows;
const indexOfLargest = (values) => values.indexOf(Math.max(...values));

test("top keys are the largest of a row, top queries of a column", async () => {
  const attention = createAttention(reader, view);
  const [[best]] = await attention.topKeys([3], 1);
  assert.equal(best.at, indexOfLargest(rows[3]));
  assert.ok(isClose(best.weight, Math.max(...rows[3])));
  const column = rows.map((row) => row[2]);
  const [query] = await attention.topQueries(2, 1);
  assert.equal(query.at, indexOfLargest(column));
  assert.ok(isClose(await attention.largest(), Math.max(...rows.flat())));
  assert.equal(await attention.depth(), Infinity);
});

test("several queries look at the mean of their keys; several keys are given a sum", async () => {
  const attention = createAttention(reader, view);
  const mean = rows[0].map((weight, key) => (weight + rows[4][key]) / 2);
  const [key] = await attention.meanTopKeys([0, 4], 1);
  assert.equal(key.at, indexOfLargest(mean));
  assert.ok(isClose(key.weight, Math.max(...mean)));
  const sums = rows.map((row) => row[0] + row[1]);
  const [query] = await attention.summedTopQueries([0, 1], 1);
  assert.equal(query.at, indexOfLargest(sums));
  assert.ok(isClose(query.weight, Math.max(...sums)));
});

test("a word looks where its tokens look on average, and receives the largest weight of its own", async () => {
  const { columns } = reader.axes(view);
  const whole = { words: columns.map((_, at) => ({ tokens: [at] })), wordOf: columns.map((_, at) => at) };
  const merged = {
    rows: { words: [{ tokens: [0, 1] }], wordOf: [] },
    columns: { words: [0, 1], wordOf: [0, 0, 1, 1, 1] },
  };
  const mean = rows[0].map((weight, key) => (weight + rows[1][key]) / 2);
  const [entries] = await createAttention(reader, view, merged).topKeys([0], 9);
  const expected = [Math.max(mean[0], mean[1]), Math.max(...mean.slice(2))];
  assert.ok(
    isClose(
      entries.map(({ weight }) => weight),
      expected.toSorted((a, b) => b - a),
    ),
  );
  assert.equal(whole.words.length, 5);
});

test("of a long text the stored weights are the top keys, and their inverse the top queries", async () => {
  const attention = createAttention(createReader(long.document, null), {
    example: 0,
    kind: "encoder",
    layer: 1,
    head: long.heads[1],
  });
  assert.equal(await attention.isAvailable(), true);
  assert.equal(await attention.isWhole(), false);
  assert.equal(await attention.depth(), 5);
  const lists = await attention.topKeys(long.queries, 9);
  assert.deepEqual(
    lists.map((entries) => entries.map(({ at }) => at)),
    long.top_keys[1].map((keys) => keys.filter((key) => key >= 0)),
  );
  const key = lists.at(-1)[0];
  const queries = await attention.topQueries(key.at, 1e9);
  assert.deepEqual(
    queries,
    queries.toSorted((a, b) => b.weight - a.weight),
  );
  assert.ok(queries.some(({ at, weight }) => at === long.queries.at(-1) && weight === key.weight));
});

test("lists name the tokens and their weights, and go where an entry leads", () => {
  const gone = [];
  const axes = reader.axes(view);
  const [list] = listsOf({
    axes,
    from: [0],
    to: [],
    topKeys: [
      { at: 2, weight: 0.5 },
      { at: 0, weight: 0.25 },
    ],
    go: (position) => gone.push(position),
  });
  const [heading, entries] = list;
  assert.equal(heading.textContent, "the looks at");
  assert.deepEqual(
    entries.children.map((item) => item.textContent),
    ["s20.5", "s00.25"],
  );
  entries.all("button")[0].click();
  assert.deepEqual(gone, [{ row: null, column: 2 }]);
  assert.deepEqual(listsOf({ axes, from: [0], to: [], go: () => {} }), []);
});

test("what only one of two texts has is marked", () => {
  const { one, other } = differing("the cat sleeps", "the dog sleeps well", "en");
  const marked = (nodes) => nodes.filter((node) => node instanceof FakeElement).map((node) => node.textContent);
  assert.deepEqual([marked(one), marked(other)], [["cat"], ["dog", "well"]]);
  assert.equal(other.map((node) => node.textContent ?? node).join(""), "the dog sleeps well");
});

test("a viewport zooms about a pixel, pans within the matrix, and is restored", () => {
  const viewport = createViewport(100, 200);
  viewport.resize(400, 200);
  assert.deepEqual([viewport.isWhole(), viewport.x(), viewport.y()], [true, 2, 2]);
  const before = viewport.cellAt(100, 50);
  viewport.zoomBy(4, 100, 50);
  assert.deepEqual(viewport.cellAt(100, 50), before);
  assert.equal(viewport.x(), 8);
  viewport.panBy(1e6, -1e6);
  assert.deepEqual(viewport.visible(), { rows: [0, 25], columns: [150, 200] });
  const saved = viewport.save();
  viewport.whole();
  viewport.restore(saved);
  assert.equal(viewport.save(), saved);
  viewport.zoomBy(1e9);
  assert.ok(viewport.isClosest() && viewport.x() <= LARGEST + 1e-9);
  viewport.reveal({ row: 99, column: 0 });
  assert.equal(viewport.visible().rows[1], 100);
});

test("positions along a line are found by halving, and scripts by their letters", () => {
  assert.deepEqual(
    [0, 10, 25, 99].map((x) => geometry.after([0, 10, 20, 30], x)),
    [1, 2, 3, 4],
  );
  assert.equal(geometry.isRightToLeft({ tokens: [{ text: "سلام" }], language: null }), true);
  assert.equal(geometry.isRightToLeft({ tokens: [{ text: "سلام" }], language: "en" }), false);
  assert.equal(geometry.curve(1, 2, 0, 10), "M1.0 0C1.0 5 2.0 5 2.0 10");
});

test("an arc goes over its line or under it, the higher the farther its ends are, and loops where they are one", () => {
  const handle = (path) => Number(path.match(/C\S+ (\S+)/)[1]);
  const [near, far, under, loop] = [
    [0, 20, 100, -1, 90],
    [0, 900, 100, -1, 90],
    [0, 20, 100, 1, 90],
    [5, 5, 100, -1, 90],
  ].map((ends) => geometry.arc(...ends));
  assert.match(near, /^M0.0 100C0.0 \S+ 20.0 \S+ 20.0 100$/);
  assert.ok(handle(far) < handle(near) && handle(near) < 100 && handle(under) > 100);
  assert.ok(100 - (100 - handle(far)) * 0.75 >= 10, "no higher than it may be");
  assert.match(loop, /^M2.0 100C-13.0 \S+ 23.0 \S+ 8.0 100$/);
});

test("a state overlays all heads of its layer, or those that it names, and buttons switch them", () => {
  const state = { example: 0, kind: "cross", layer: 0, head: 1 };
  assert.equal(overlaid(state, reader), null);
  assert.equal(overlaid({ ...state, heads: "all", layer: "mean" }, reader), null);
  assert.deepEqual(overlaid({ ...state, heads: "all" }, reader), { offered: [0, 1, 2], heads: [0, 1, 2] });
  const some = overlaid({ ...state, heads: "1_3" }, reader);
  assert.deepEqual(some.heads, [0, 2]);
  const chosen = [];
  const overlay = createOverlay({ choose: ({ heads }) => chosen.push(heads), light: () => {} });
  overlay.show(some);
  const buttons = overlay.node.all("button");
  assert.deepEqual(
    buttons.slice(0, 3).map((button) => button.getAttribute("aria-pressed")),
    ["true", "false", "true"],
  );
  for (const button of buttons) button.click();
  assert.deepEqual(chosen, ["3", "all", "1", "all", "none"]);
  overlay.show(overlaid({ ...state, heads: "3" }, reader));
  overlay.node.all("button")[2].click();
  assert.equal(chosen.at(-1), "none");
});

test("prose holds every token and what stands between, shaded by its share", () => {
  const host = new FakeElement("div");
  const { output, output_tokens: tokens } = short.document.examples[0];
  const prose = createProse(host, { point: () => {}, label: "text" });
  prose.show(tokens, output, "en");
  prose.shade((at) => (at === 1 ? 0.5 : 0));
  prose.mark([2]);
  const spans = prose.node.all("span");
  assert.equal(prose.node.textContent, output);
  assert.deepEqual(
    spans.map((span) => span.classList.contains("shaded")),
    tokens.map((_, at) => at === 1),
  );
  assert.equal(spans[1].style.properties["--w"], "0.5000");
  assert.deepEqual(
    spans.map((span) => span.classList.contains("marked")),
    tokens.map((_, at) => at === 2),
  );
});

test("a matrix has a cell for every weight, with its figure and its share of the largest", async () => {
  const host = new FakeElement("div");
  const matrix = createMatrix(host, { point: () => {} });
  const map = await reader.map(view);
  matrix.build(map, reader.axes(view));
  matrix.paint(map, map.largest, "largest", { rows: [], columns: [4] });
  const cells = host.all("td").filter((cell) => cell.classList.contains("cell"));
  assert.equal(cells.length, rows.length * rows[0].length);
  for (const cell of cells) {
    const weight = rows[cell.dataset.row][cell.dataset.column];
    assert.ok(isClose(Number(cell.dataset.weight), weight, 1e-4));
    assert.ok(isClose(Number(cell.style.properties["--w"]), weight / map.largest, 1e-4));
    assert.equal(cell.classList.contains("best"), weight === Math.max(...rows[cell.dataset.row]));
  }
  assert.equal(host.all("th").filter((head) => head.classList.contains("hit")).length, 1);
});

test("an overview lists what receives most", async () => {
  const received = rows[0].map((_, key) => rows.reduce((sum, row) => sum + row[key], 0));
  const [, list] = await overviewOf(reader, view, () => {});
  const [first] = list.children;
  assert.ok(first.textContent.startsWith(`s${indexOfLargest(received)}`));
  const words = wordsOf(short.document.examples[0].output_tokens, short.document.examples[0].output, "en");
  assert.equal(words.words.length, 7);
});

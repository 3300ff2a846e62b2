// The document as the page reads it: what is packed, the measures of heads, lines and maps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fixtures, isClose } from "./browser.js";

const { createReader } = await import("../../src/regard/viewer/static/data/reader.js");
const { unfold } = await import("../../src/regard/viewer/static/data/packed.js");
const maps = await import("../../src/regard/viewer/static/data/maps.js");

const { short, long, arrays } = fixtures("data");

const measuresOf = async (document, example, kind) => createReader(document, null).measures(example, kind);

test("packed arrays have the values that Python has", async () => {
  for (const { packed, values } of arrays) {
    const array = await unfold(packed);
    const read = Array.from({ length: array.size }, (_, at) => array.get(at));
    assert.ok(isClose(read, values, 1e-6), JSON.stringify(packed));
  }
});

test("an array of too few bytes is refused", async () => {
  const [{ packed }] = arrays;
  await assert.rejects(unfold({ ...packed, shape: [2, 5, 4] }), /must hold 40 bytes; got 30/);
});

for (const [example, kind] of ["cross", "encoder"].entries()) {
  test(`heads of ${kind} attention have the measures of their formulas`, async () => {
    const heads = await measuresOf(short.document, example, kind);
    assert.equal(heads.length, short[kind].length);
    for (const [at, { layer, head, measures }] of heads.entries()) {
      assert.deepEqual([layer, head], [0, at]);
      assert.deepEqual(Object.keys(measures).sort(), Object.keys(short[kind][at]).sort());
      assert.ok(
        isClose(measures, short[kind][at], 1e-3),
        `${JSON.stringify(measures)}\n${JSON.stringify(short[kind][at])}`,
      );
    }
  });
}

test("heads of a summary have its measures", async () => {
  const heads = await measuresOf(long.document, 0, "encoder");
  assert.deepEqual(
    heads.map(({ head }) => head),
    long.heads,
  );
  for (const [at, { measures }] of heads.entries()) {
    const expected = Object.entries(long.measures).map(([name, values]) => [name, values[at]]);
    assert.deepEqual(measures, Object.fromEntries(expected));
  }
});

test("lines of a head and of the mean of heads are those of the summary", async () => {
  const reader = createReader(long.document, null);
  for (const name of ["entropy", "received"]) {
    for (const [at, head] of [...long.heads, "mean"].entries()) {
      const { values, span } = await reader.line({ example: 0, kind: "encoder", layer: 1, head }, name);
      const mean = long[name][0].map(
        (_, place) => long[name].reduce((sum, line) => sum + line[place], 0) / long.heads.length,
      );
      assert.ok(isClose(Array.from(values), head === "mean" ? mean : long[name][at], 1e-4), `${name} ${head}`);
      assert.ok(span >= 1 && values.length * span >= 600);
    }
  }
});

test("a pooled map has the shares of the buckets, a row of which sums to one", async () => {
  const reader = createReader(long.document, null);
  for (const [at, head] of long.heads.entries()) {
    const pooled = await reader.pooled({ example: 0, kind: "encoder", layer: 1, head });
    assert.deepEqual(pooled.bucket, long.bucket);
    assert.deepEqual(pooled.at(long.bucket[0], 0), [1, 0]);
    for (let row = 0; row < pooled.rows; row++) {
      const total = long.pooled[at][row].reduce((sum, value) => sum + value, 0);
      const shares = Array.from({ length: pooled.columns }, (_, column) => pooled.share(row, column));
      assert.ok(
        isClose(
          shares,
          long.pooled[at][row].map((value) => value / total),
          1e-5,
        ),
      );
      assert.ok(
        isClose(
          shares.reduce((sum, share) => sum + share, 0),
          1,
          1e-5,
        ),
      );
    }
  }
});

test("the largest weights of a query are those that are stored", async () => {
  const reader = createReader(long.document, null);
  for (const [at, head] of long.heads.entries()) {
    for (const [place, query] of long.queries.entries()) {
      const { entries, isWhole } = await reader.top({ example: 0, kind: "encoder", layer: 1, head }, query, 99);
      const keys = long.top_keys[at][place].filter((key) => key >= 0);
      assert.equal(isWhole, false);
      assert.deepEqual(
        entries.map((entry) => entry.at),
        keys,
      );
      assert.ok(
        isClose(
          entries.map(({ weight }) => weight),
          long.top_weights[at][place].slice(0, keys.length),
        ),
      );
    }
  }
});

test("the mean of heads and layers is the mean of their rows", async () => {
  const reader = createReader(short.document, null);
  const view = { example: 0, kind: "cross", layer: "mean", head: "mean" };
  const [row] = await reader.rows(view, [2]);
  const heads = short.document.examples[0].maps.map(({ rows }) => rows[2]);
  assert.ok(
    isClose(
      Array.from(row),
      heads[0].map((_, key) => heads.reduce((sum, one) => sum + one[key], 0) / heads.length),
    ),
  );
  const map = await reader.map(view);
  assert.deepEqual(
    map.best,
    map.weights.map((weights) => weights.indexOf(Math.max(...weights))),
  );
  assert.deepEqual([...map.gold], short.gold);
});

test("the head with the sharpest links is the one of most confidence, of weights and of summaries", () => {
  const indexOfMost = (values) => values.indexOf(Math.max(...values));
  for (const [example, kind] of ["cross", "encoder"].entries()) {
    const best = createReader(short.document, null).sharpest(example);
    const confidence = short[kind].map((one) => one.confidence);
    assert.deepEqual([best.kind, best.layer, best.head, best.count], [kind, 0, indexOfMost(confidence), 3]);
    assert.ok(isClose(best.value, Math.max(...confidence), 1e-3));
  }
  const best = createReader(long.document, null).sharpest(0, "encoder");
  const { confidence } = long.measures;
  assert.deepEqual(
    [best.layer, best.head, best.value],
    [1, long.heads[indexOfMost(confidence)], Math.max(...confidence)],
  );
});

test("a head is named by the keys that have most of its weight; signs and unlike heads have no sharpest", () => {
  const words = ["a", "b", "c", "d"].map((text, at) => ({ text, start: at, end: at + 1 }));
  const rows = words.map((_, row) => words.map((_, column) => Number(column === Math.max(0, row - 1))));
  const even = words.map(() => words.map(() => 0.25));
  const maps = [even, rows].map((one, head) => ({ kind: "encoder", layer: 2, head, rows: one }));
  const example = { source: "abcd", output: "", source_tokens: words, output_tokens: [], maps };
  const sharpest = (changes) => createReader({ examples: [{ ...example, ...changes }] }, null).sharpest(0);
  assert.deepEqual((({ kind, layer, head, role, value }) => [kind, layer, head, role, value])(sharpest({})), [
    "encoder",
    2,
    1,
    "previous",
    0.5,
  ]);
  assert.equal(sharpest({ source_tokens: words.map((word) => ({ ...word, end: word.start })) }), null);
  assert.equal(sharpest({ head_names: ["one", "two"] }), null);
  assert.equal(sharpest({ maps: maps.slice(0, 1) }), null);
});

test("rows that a document lacks are fetched once", async () => {
  const requests = [];
  const source = {
    rows: async (...request) => {
      requests.push(request);
      return request.at(-1).map((query) => Float32Array.from({ length: 600 }, (_, key) => (key === query ? 1 : 0)));
    },
  };
  const reader = createReader(long.document, source);
  const view = { example: 0, kind: "encoder", layer: 1, head: 2 };
  const rows = await reader.rows(
    view,
    Array.from({ length: 100 }, (_, at) => at),
  );
  assert.deepEqual(
    requests.map((request) => request.at(-1).length),
    [64, 36],
  );
  assert.equal(rows[77][77], 1);
  await reader.rows(view, [5, 99]);
  assert.equal(requests.length, 2);
});

test("the largest entries fall, of equal ones the first first", () => {
  assert.deepEqual(maps.largestOf([0.1, 0.3, 0, 0.3, 0.2], 3), [
    { at: 1, weight: 0.3 },
    { at: 3, weight: 0.3 },
    { at: 4, weight: 0.2 },
  ]);
  assert.equal(maps.bestOf([0, 0, 0]), -1);
});

test("tokens become words by their positions, and by their marks", () => {
  const placed = [
    ["New", 0, 3],
    ["Yor", 4, 7],
    ["k", 7, 8],
    ["!", 8, 9],
  ].map(([text, start, end]) => ({ text, start, end }));
  assert.deepEqual(
    maps.wordsOf(placed, "New York!", "en").words.map(({ text, tokens }) => [text, tokens]),
    [
      ["New", [0]],
      ["York", [1, 2]],
      ["!", [3]],
    ],
  );
  const marked = (tokens) => tokens.map((text) => ({ text, start: 0, end: 0 }));
  assert.deepEqual(Array.from(maps.wordsOf(marked(["▁New", "▁Yor", "k"]), "", "en").wordOf), [0, 1, 1]);
  for (const [tokens, words] of [
    [
      ["[CLS]", "under", "##stand", "##ing", "it", "[SEP]"],
      ["[CLS]", "understanding", "it", "[SEP]"],
    ],
    [
      ["▁un", "der", "▁it", "</s>"],
      ["under", "it", "</s>"],
    ],
    [
      ["Hello", "Ġwor", "ld", "!"],
      ["Hello", "world!"],
    ],
  ])
    assert.deepEqual(
      maps.wordsOf(marked(tokens), "", "en").words.map(({ text }) => text),
      words,
    );
});

test("numbers read as people write them", () => {
  assert.deepEqual([maps.figure(0), maps.figure(0.123456), maps.signed(-1.5, 3)], ["0", "0.1235", "−1.5"]);
});

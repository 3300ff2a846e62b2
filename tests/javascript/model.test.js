// Models in the page answer as Python's do: every option, with the weights of every head.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fixtures, isClose } from "./browser.js";

const { createTranslator } = await import("../../src/regard/viewer/static/model/translator.js");
const { search } = await import("../../src/regard/viewer/static/model/searching.js");
const tensors = await import("../../src/regard/viewer/static/model/tensors.js");
const { draw, probabilitiesOf, restricted } = await import("../../src/regard/viewer/static/model/sampling.js");
const { createKnobs } = await import("../../src/regard/viewer/static/model/knobs.js");
const { createMuting } = await import("../../src/regard/viewer/static/model/muting.js");

const { bucket } = await import("../../src/regard/viewer/static/model/transformer.js");

const { buckets, draws, translators, language_models: languageModels, classifiers, cuts } = fixtures("model");

const mapsOf = ({ maps }) =>
  Object.fromEntries(maps.map(({ kind, layer, head, rows }) => [`${kind} ${layer} ${head}`, rows]));

const spansOf = (tokens, count) => tokens.slice(0, count).map(({ text, start, end }) => [text, start, end]);

function assertMaps(example, expected) {
  const maps = mapsOf(example);
  assert.deepEqual(Object.keys(maps).sort(), Object.keys(expected).sort());
  for (const [key, rows] of Object.entries(expected)) {
    const ours = maps[key].map((row) => Array.from(row));
    assert.ok(isClose(ours, rows, 2e-3), `${key}\n${JSON.stringify(ours)}\n${JSON.stringify(rows)}`);
  }
}

for (const [name, { packed, texts, answers, muted }] of Object.entries(translators)) {
  test(`a translator (${name}) answers as in Python`, () => {
    const translator = createTranslator(packed);
    for (const [at, text] of texts.entries()) {
      const { tokens, output, score, example } = translator.translate(text);
      const { source, written, ...expected } = answers[at];
      assert.deepEqual([tokens, output], [expected.tokens, expected.output], text);
      assert.ok(isClose(score, expected.score, 1e-3));
      assertMaps(example, expected.maps);
      assert.deepEqual(spansOf(example.source_tokens, source.length), source);
      assert.deepEqual(spansOf(example.output_tokens, written.length), written);
    }
  });
  if (!muted) continue;
  test(`a muted head of a translator (${name}) mixes nothing`, () => {
    const translator = createTranslator(packed);
    const outputs = texts.map((text) => translator.translate(text, { muted: [muted.head] }).output);
    assert.deepEqual(outputs, muted.outputs);
  });
}

test("a muted head changes some translation", () => {
  const changed = Object.values(translators).filter(
    ({ answers, muted }) => muted && answers.some(({ output }, at) => output !== muted.outputs[at]),
  );
  assert.ok(changed.length > 5);
});

for (const [name, { packed, texts, answers, sampling, sampled }] of Object.entries(languageModels)) {
  test(`a language model (${name}) writes the samples of Python`, () => {
    const model = createTranslator(packed);
    for (const [text, tokens] of Object.entries(sampled))
      assert.deepEqual(model.translate(text, { sampling }).tokens, tokens, text);
  });

  test(`a language model (${name}) continues as in Python`, () => {
    const model = createTranslator(packed);
    for (const [at, text] of texts.entries()) {
      const { tokens, output, next, example } = model.translate(text);
      assert.deepEqual([tokens, output], [answers[at].tokens, answers[at].output], text);
      assert.ok(isClose(example.answer.values, answers[at].surprise, 2e-3));
      assert.ok(next.every(({ probability }, rank) => rank === 0 || probability <= next[rank - 1].probability));
      assertMaps(example, answers[at].maps);
      assert.deepEqual(
        example.output_tokens.map((token) => token.text),
        answers[at].pieces,
      );
    }
  });
}

for (const { sampling, seeds, log_probs: rows, chances, tokens } of draws) {
  test(`tokens are drawn as in Python by ${JSON.stringify(sampling)}`, () => {
    for (const [at, seed] of seeds.entries()) {
      const settings = { ...sampling, seed };
      assert.ok(isClose(Array.from(probabilitiesOf(restricted(rows[at], settings))), chances[at], 1e-6));
      const drawn = tokens.map((_, position) => draw(rows[at], settings, position));
      assert.deepEqual(
        drawn,
        tokens.map((all) => all[at]),
      );
    }
  });
}

test("a sampled continuation is that of its steps, one by one, and a top-k of one is greedy", () => {
  const { packed, texts } = Object.values(languageModels)[0];
  const model = createTranslator(packed);
  const sampling = { temperature: 1.2, top_k: 20, top_p: 0.95, seed: 4 };
  const whole = model.translate(texts[0], { sampling });
  assert.deepEqual(model.translate(texts[0], { sampling }).tokens, whole.tokens);
  assert.notDeepEqual(model.translate(texts[0], { sampling: { ...sampling, seed: 5 } }).tokens, whole.tokens);
  for (const position of [0, 1, 2, 7]) {
    const drawn = whole.tokens.slice(0, position);
    const one = model.translate(texts[0], { sampling, drawn, most: 1 });
    assert.deepEqual(one.tokens, [whole.tokens[position]]);
    assert.equal(one.example.output_tokens.length, whole.example.output_tokens.length + position);
    assert.equal(
      one.example.output + one.output,
      texts[0] + whole.output.slice(0, one.example.output.length + one.output.length - texts[0].length),
    );
  }
  const greedy = model.translate(texts[0]);
  const likeliest = { ...sampling, top_k: 1 };
  assert.deepEqual(model.translate(texts[0], { sampling: likeliest }).tokens, greedy.tokens);
  const [first, ...remaining] = model.translate(texts[0], { sampling: likeliest }).next;
  assert.deepEqual([first.chance, Math.max(...remaining.map(({ chance }) => chance))], [1, 0]);
  assert.equal(greedy.next[0].chance, null);
});

test("knobs give their settings, and the buttons a token or the whole", () => {
  const calls = [];
  const knobs = createKnobs({ changed: () => calls.push("changed"), goOn: (isWhole) => calls.push(isWhole) });
  knobs.lay();
  assert.equal(knobs.sampling(), null);
  for (const button of knobs.node.all("button")) button.click();
  assert.deepEqual(calls, [false, true]);
});

for (const [name, { packed, texts, answers }] of Object.entries(classifiers)) {
  test(`a classifier (${name}) has the probabilities of Python`, () => {
    const model = createTranslator(packed);
    for (const [at, text] of texts.entries()) {
      const { output, labels, example } = model.translate(text);
      const { label, probabilities, measure, values, maps, pieces } = answers[at];
      assert.deepEqual([output, example.answer.measure], [label, measure]);
      assert.ok(isClose(Object.fromEntries(labels), probabilities, 1e-4));
      assert.ok(isClose(Array.from(example.answer.values), values, 2e-3));
      assertMaps(example, maps);
      assert.deepEqual(
        example.source_tokens.map((token) => token.text),
        pieces,
      );
    }
  });
}

for (const [kind, { packed, texts, pieces }] of Object.entries(cuts)) {
  test(`text is cut into ${kind} as in Python`, () => {
    const { read } = createTranslator(packed);
    const cut = texts.map((text) =>
      read(text).pieces.map(({ id, text: piece, start, end }) => [id, piece, start, end]),
    );
    assert.deepEqual(cut, pieces);
  });
}

test("a text without tokens has no translation", () => {
  assert.equal(createTranslator(translators.transformer.packed).translate("  "), null);
});

test("a text longer than the model takes is split into its sentences", () => {
  const { packed } = translators.transformer;
  const { split, translate } = createTranslator({ ...packed, longest_source: 12 });
  const sentences = ["我爱中国。", "他昨天去北京了！", "他在学校吗？"];
  assert.deepEqual(split(sentences[0], "zh"), [sentences[0]]);
  assert.deepEqual(split(sentences.join(""), "zh"), sentences);
  assert.deepEqual(
    split(`${sentences.join(" ")} \n`, "zh").map((one) => one.trim()),
    sentences,
  );
  for (const sentence of sentences) assert.ok(translate(sentence));
});

test("a beam finds what greedy search misses", () => {
  // After 3 greedy search is at .6 · .4; after 4, at .4 · .9.
  const logs = (probabilities) =>
    Float64Array.from({ length: 5 }, (_, token) => Math.log(probabilities[token] ?? 1e-9));
  const steps = { 2: { 3: 0.6, 4: 0.4 }, 3: { 1: 0.4, 3: 0.3, 4: 0.3 }, 4: { 1: 0.9, 3: 0.05, 4: 0.05 } };
  const step = (beams) => beams.map(({ token, state }) => ({ logProbs: logs(steps[token]), state: [...state, token] }));
  const options = { length_penalty: 0, min_length: 0, begin: 2, end: 1, forbidden: [0], limit: 4 };
  assert.deepEqual(search(step, [], { ...options, beam_size: 1 }).tokens, [3]);
  const best = search(step, [], { ...options, beam_size: 2 });
  assert.deepEqual([best.tokens, best.state, best.isFinished], [[4], [2, 4], true]);
  assert.ok(isClose(best.score, Math.log(0.36), 1e-9));
  assert.equal(search(step, [], { ...options, beam_size: 2, min_length: 3 }).tokens.length, 3);
});

test("distances fall into the buckets of Python", () => {
  for (const [isBidirectional, expected] of buckets.entries()) {
    assert.deepEqual(
      expected.map((_, at) => bucket(at - 150, 32, Boolean(isBidirectional))),
      expected,
    );
  }
});

test("softmax sums to one, or to zero where every score is −∞", () => {
  assert.ok(isClose(tensors.softmax([0, Math.log(3)]), [0.25, 0.75], 1e-12));
  assert.deepEqual(tensors.softmax([-Infinity, -Infinity]), [0, 0]);
  assert.ok(isClose(Array.from(tensors.logSoftmax([1, 1])), [-Math.LN2, -Math.LN2], 1e-12));
});

test("activations have their values at 1 and −1", () => {
  const values = {
    relu: [1, 0],
    silu: [0.731058578, -0.268941421],
    gelu: [0.841344746, -0.158655254],
    gelu_tanh: [0.841191991, -0.158808009],
  };
  for (const [name, expected] of Object.entries(values))
    assert.ok(isClose(tensors.ACTIVATIONS[name]([1, -1]), expected, 1e-8), name);
  assert.ok(isClose(tensors.ACTIVATIONS.swiglu([1, 2, 3, 4]), [3 * 0.731058578, 8 * 0.880797078], 1e-7));
});

test("heads are chosen and let go of, a layer's together too", () => {
  let count = 0;
  const muting = createMuting({ attentions: [{ kind: "cross", layer: 1, heads: [0, 1] }], changed: () => count++ });
  muting.draw();
  const [first, second, all, clear] = muting.node.all("button");
  first.click();
  assert.deepEqual(muting.edits(), [{ kind: "cross", layer: 1, heads: [0], factor: 0 }]);
  all.click();
  assert.deepEqual([...muting.chosen], ["cross 1 0", "cross 1 1"]);
  assert.deepEqual([second.textContent, clear.textContent, count], ["2", "Turn all heads on", 2]);
  muting.offer([{ kind: "cross", layer: 1, heads: [0] }]);
  assert.deepEqual([...muting.chosen], ["cross 1 0"]);
});

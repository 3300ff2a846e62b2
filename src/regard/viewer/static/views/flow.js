// A translation step by step: the cross-attention, what else it might have written, and what the
// search considered.

import { element, headOf, rowOf, sectionWith, signButton, weigh } from "../page/dom.js";
import { listed, sentences, t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { createAttention } from "../parts/attention.js";
import { figure, nameOf } from "../data/maps.js";
import { createLegend, shareOf } from "../page/palette.js";

const PACE = 900; // milliseconds of a step
const FAINTEST = 0.01;
const MOST = 64; // links of a step
const TAIL = 48; // characters of a beginning that are shown
const MOST_BARS = 400;

/** @type {import("./views.js").ViewType} */
export const flow = {
  id: "flow",
  reads: "links",
  controls: ["example", "layer", "head", "scale"],
  applies: ({ reader }, example) => reader.kinds(example).includes("cross") && isWritten(reader.exampleAt(example)),
  create,
};

// A label, an answer and weights of no text were not written step by step; nor is one row a flow.
/** @param {import("../data/contents.js").Example} example */
const isWritten = ({ answer, sides, output_tokens: { length } }) =>
  !answer && sides !== "queries and keys" && length > 1;

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, choose, say } = context;
  const play = signButton("▶", t("flow.play"), () => toggle());
  const slider = element("input", {
    type: "range",
    min: "0",
    "aria-label": t("flow.step"),
    oninput: () => goTo(Number(slider.value) - 1),
  });
  const count = element("output.count");
  const tools = element(
    "div.tools.steps",
    { role: "group", "aria-label": t("flow.steps") },
    signButton("|◀", t("flow.whole"), () => goTo(-1)),
    signButton("◀", t("flow.back"), () => goTo(at - 1)),
    play,
    signButton("▶|", t("flow.on"), () => goTo(at + 1)),
    slider,
    count,
  );
  const bars = element("div.bars", {
    "aria-hidden": "true",
    onclick: (event) => event.target.dataset.at && goTo(Number(event.target.dataset.at)),
  });
  const caption = element("p.caption.reading");
  const container = element("div");
  const choices = element("section", { "aria-label": t("flow.choices") });
  const answers = element("section", { "aria-label": t("flow.answers") });
  const name = element("span.name", { "aria-hidden": "true" }, t("flow.probability"));
  const chances = element("div.chances", name, bars);
  const legend = createLegend();
  host.append(sectionWith(tools, t("flow"), chances, caption, container, legend.node), choices, answers);
  const lines = createLines(container, { point });
  let built = "";
  /** @type {import("../data/contents.js").Example} */
  let example = null;
  /** @type {import("../data/contents.js").Axes} */
  let axes = null;
  /** @type {import("./views.js").State} */
  let view = null;
  /** @type {ReturnType<typeof createAttention>} */
  let attention = null;
  let entries = []; // of every row
  let full = 1;
  let scale = "largest";
  let at = -1; // the chosen step; -1 is the whole output
  let timer = 0;
  let turn = 0;

  async function show(state) {
    if (state.kind !== "cross") return choose({ kind: "cross" });
    view = state;
    axes = reader.axes(view);
    scale = state.scale;
    if (built !== String(state.example)) build(state.example);
    attention = createAttention(reader, view);
    full = scale === "one" ? 1 : await attention.largest();
    entries = await attention.topKeys([...axes.rows.keys()], MOST);
    legend.setEnds("0", figure(full, 3));
    return null;
  }

  function build(number) {
    built = String(number);
    example = reader.exampleAt(number);
    slider.max = String(axes.rows.length);
    lines.build(axes, "line.keys", "flow.written");
    const { length } = example.search?.probabilities ?? [];
    chances.hidden = !length || length > MOST_BARS;
    bars.replaceChildren(...(chances.hidden ? [] : example.search.probabilities.map(barOf)));
    drawAnswers();
  }

  function barOf(chance, row) {
    const weight = chance === null ? t("flow.not-computed") : figure(chance, 3);
    const title = t("token.weight", { token: nameOf(axes.rows[row]), weight });
    const bar = element("i", { "data-at": row, title });
    bar.style.setProperty("--p", String(chance ?? 0));
    return bar;
  }

  /** Shows a step, or the outputs that attended to a source token; nothing pointed at is the whole output. */
  function mark({ row, column }) {
    if (row === null && column !== null) return markColumn(column);
    at = row ?? -1;
    turn += 1;
    slider.value = String(at + 1);
    const step = { at: at + 1, count: axes.rows.length };
    slider.setAttribute(
      "aria-valuetext",
      at < 0 ? t("flow.value.whole") : t("flow.value", { ...step, token: nameOf(axes.rows[at]) }),
    );
    count.textContent = t(at < 0 ? "flow.count" : "flow.at", step);
    for (const bar of bars.children)
      bar.classList.toggle("now", /** @type {HTMLElement} */ (bar).dataset.at === String(at));
    lines.fade((row) => at >= 0 && row > at);
    lines.draw(linksOf((row) => at < 0 || row <= at));
    lines.mark(at < 0 ? null : { row: at, column: null }, { columns: sharesOf(entries[at]) });
    if (at >= 0) lines.reveal({ row: at, column: null });
    describeStep();
    drawChoices();
    return null;
  }

  async function markColumn(column) {
    const mine = ++turn;
    const topQueries = (await attention.topQueries(column, MOST)) ?? [];
    if (mine !== turn) return;
    lines.fade(() => false);
    lines.draw(linksOf(() => true));
    lines.mark({ row: null, column }, { rows: sharesOf(topQueries) });
    const most = topQueries.slice(0, 4);
    caption.textContent = t(most.length ? "flow.looked" : "flow.nobody", {
      token: nameOf(axes.columns[column]),
      tokens: weighed(most, axes.rows),
    });
  }

  const sharesOf = (list) => new Map((list ?? []).map((entry) => [entry.at, shareOf(entry.weight, full, scale)]));
  const weighed = (list, tokens) =>
    listed(list.map(({ at: position, weight }) => `${nameOf(tokens[position])} (${figure(weight, 2)})`));

  function linksOf(isVisible) {
    return entries.flatMap((topKeys, row) =>
      (isVisible(row) ? (topKeys ?? []) : [])
        .filter(({ weight }) => weight >= FAINTEST)
        .map((entry) => ({ row, column: entry.at, share: shareOf(entry.weight, full, "largest") })),
    );
  }

  function describeStep() {
    if (at < 0) {
      caption.textContent = t("flow.all");
      return;
    }
    const mostAttended = (entries[at] ?? []).slice(0, 3).filter(({ weight }) => weight >= FAINTEST);
    const before = tail(axes.rows.slice(0, at));
    const chance = example.search?.probabilities?.[at];
    const parts = [
      before ? t("flow.after", { before }) : t("flow.first"),
      mostAttended.length ? t("flow.most", { tokens: weighed(mostAttended, axes.columns) }) : t("flow.unstored"),
      typeof chance === "number"
        ? t("flow.wrote.chance", { token: nameOf(axes.rows[at]), chance: figure(chance, 3) })
        : t("flow.wrote", { token: nameOf(axes.rows[at]) }),
    ];
    caption.textContent = parts.join("");
    if (!timer) say(caption.textContent);
  }

  function tail(tokens) {
    const last = tokens.at(-1);
    if (!last) return "";
    const characters = Array.from(example.output).slice(0, Math.max(...tokens.map((token) => token.end)));
    const whole = characters.length ? characters.join("") : tokens.map((token) => nameOf(token)).join(" ");
    return shortened(whole);
  }

  // The hypotheses of the search, and what became of everything that might have followed.
  function drawChoices() {
    const { search } = example;
    const beginnings = search?.steps?.[at];
    choices.hidden = !beginnings;
    if (!beginnings) return;
    const width = search.beam_size;
    const title = t(width === null ? "flow.given" : width === 1 ? "flow.greedy" : "flow.beam", { width });
    const head = headOf(["rank", "so-far", "log-probability", "next"].map((name) => t(`flow.${name}`)));
    const rows = beginnings.map((beginning, rank) => {
      const isPath = search.path[at] === rank;
      const chips = beginning.extensions.map((extension) => chipOf(extension, isPath && isChosen(search, extension)));
      const text = shortened(textOf(search, at, rank));
      const cells = [
        element("bdi", { lang: axes.languages.rows, class: text ? null : "sign" }, text || t("flow.start")),
        beginning.log_prob.toFixed(2).replace("-", "−"),
        element("div.chips", ...chips, !chips.length && element("span.hint", t("flow.cut"))),
      ];
      return rowOf(String(rank + 1), cells, isPath ? { class: "path", "aria-label": t("flow.path") } : {});
    });
    const note = t(width === null ? "flow.note.given" : "flow.note");
    choices.replaceChildren(
      element("h2", title),
      element("div.frame", element("table.beam", head, element("tbody", ...rows))),
      element("p.hint", note, width !== null && t("flow.note.chips")),
    );
  }

  function isChosen(search, extension) {
    const next = search.steps[at + 1]?.[search.path[at + 1]];
    return next ? extension.outcome !== "ended" && extension.text === next.text : extension.outcome === "ended";
  }

  function chipOf({ text, probability, outcome }, isTaken) {
    const says = {
      token: text.trim() || t("space"),
      chance: figure(probability, 3),
      outcome: t(isTaken ? "flow.taken" : `outcome.${outcome}`),
    };
    const became = isTaken ? `${outcome} taken` : example.search.beam_size === null ? "open" : outcome;
    const chip = element(
      "span",
      { class: `chip ${became}`, title: t("flow.chip", says) },
      element("bdi", { lang: axes.languages.rows }, text.replace(/^ /, "") || "␣"),
      element("small", figure(probability, 2)),
    );
    weigh(chip, probability);
    return chip;
  }

  function textOf(search, number, rank) {
    const parts = [];
    for (let [step, index] = [number, rank]; step >= 0 && index >= 0; step -= 1) {
      const beginning = search.steps[step][index];
      parts.unshift(beginning.text);
      index = beginning.parent;
    }
    return parts.join("");
  }

  function drawAnswers() {
    const hypotheses = example.search?.answers ?? [];
    answers.hidden = !hypotheses.length;
    const items = hypotheses.map(({ text, score, log_prob, is_finished }) => {
      const says = { score: score.toFixed(3).replace("-", "−"), chance: figure(Math.exp(log_prob), 3) };
      return element(
        "li",
        element("bdi", { lang: axes.languages.rows, dir: "auto" }, text || t("flow.nothing")),
        element("small", t(is_finished ? "flow.score" : "flow.score.cut", says)),
      );
    });
    answers.replaceChildren(
      element("h2", t(hypotheses.length > 1 ? "flow.hypotheses" : "flow.answer")),
      element("p.caption", sentences(t("flow.score.says", { says: t("score.says") }), t("probability.says"))),
      element("ol.answers", ...items),
    );
  }

  function goTo(next) {
    const step = Math.max(-1, Math.min(axes.rows.length - 1, next));
    point({ row: step < 0 ? null : step, column: null }, true);
  }

  function toggle(isOn = !timer) {
    clearInterval(timer);
    timer = 0;
    if (isOn) {
      if (at >= axes.rows.length - 1) goTo(-1);
      timer = setInterval(() => (at >= axes.rows.length - 1 ? toggle(false) : goTo(at + 1)), PACE);
    }
    play.textContent = timer ? "❚❚" : "▶";
    play.title = t(timer ? "flow.pause" : "flow.play");
    play.setAttribute("aria-label", play.title);
    tools.dataset.playing = String(Boolean(timer));
  }

  function press({ key, target }) {
    if (key === " " && !target.closest?.("button")) {
      toggle();
      return true;
    }
    if (target !== document.body && !tools.contains(target)) return false;
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: -1, End: axes.rows.length - 1 };
    if (!(key in moves)) return false;
    goTo(moves[key]);
    return true;
  }

  function table() {
    const columns = "step,token,probability,beginning,so far,log-probability,next,next probability,outcome".split(",");
    const rows = axes.rows.flatMap((token, number) => {
      const common = [number + 1, token.text, example.search?.probabilities?.[number] ?? ""];
      const beginnings = example.search?.steps?.[number] ?? [];
      if (!beginnings.length) return [common];
      return beginnings.flatMap(({ log_prob, extensions }, rank) => {
        const start = [...common, rank + 1, textOf(example.search, number, rank), log_prob];
        return extensions.map(({ text, probability, outcome }) => [...start, text, probability, outcome]);
      });
    });
    return { columns, rows };
  }

  return {
    show,
    mark,
    press,
    table,
    reveal: (where) => lines.reveal(where),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    picture: () => ({ ...lines.picture(), legend: { ...legend.ends(), notes: at < 0 ? [] : [caption.textContent] } }),
    destroy: () => {
      toggle(false);
      lines.destroy();
    },
  };
}

function shortened(text) {
  const characters = Array.from(text);
  return characters.length > TAIL ? `…${characters.slice(-TAIL).join("")}` : characters.join("").trimStart();
}

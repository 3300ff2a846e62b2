// A translation step by step: where the model looked, what else it might have written, and what the
// search kept.

import { element, headOf, section, signButton, weigh } from "../page/dom.js";
import { listed, t } from "../page/language.js";
import { createLines } from "../parts/lines.js";
import { createLooking } from "../parts/looking.js";
import { figure, nameOf } from "../data/maps.js";
import { createLegend, shareOf } from "../page/palette.js";

const PACE = 900; // milliseconds of a step
const FAINTEST = 0.01;
const MOST = 64; // links of a step
const TAIL = 48; // characters of a beginning that are shown
const MOST_BARS = 400;

export const flow = {
  id: "flow",
  reads: "links",
  controls: ["example", "layer", "head", "scale"],
  applies: ({ reader }, example) => reader.kinds(example).includes("cross") && isWritten(reader.exampleAt(example)),
  create,
};

// A label, an answer and weights of no text were not written step by step; nor is one row a flow.
const isWritten = ({ answer, sides, output_tokens: { length } }) => !answer && sides !== "queries and keys" && length > 1;

function create(host, context) {
  const { reader, point, choose, say } = context;
  const play = signButton("▶", t("flow.play"), () => toggle());
  const slider = element("input", { type: "range", min: "0", "aria-label": t("flow.step"), oninput: () => settle(Number(slider.value) - 1) });
  const count = element("output", { class: "count" });
  const tools = element(
    "div",
    { class: "tools steps", role: "group", "aria-label": t("flow.steps") },
    signButton("|◀", t("flow.whole"), () => settle(-1)), signButton("◀", t("flow.back"), () => settle(at - 1)), play,
    signButton("▶|", t("flow.on"), () => settle(at + 1)), slider, count,
  );
  const bars = element("div", { class: "bars", "aria-hidden": "true", onclick: (event) => event.target.dataset.at && settle(Number(event.target.dataset.at)) });
  const says = element("p", { class: "caption told" });
  const place = element("div", {});
  const choices = element("section", { "aria-label": t("flow.choices") });
  const answers = element("section", { "aria-label": t("flow.answers") });
  const chances = element("div", { class: "chances" }, element("span", { class: "name", "aria-hidden": "true" }, t("flow.probability")), bars);
  const legend = createLegend();
  host.append(section(t("flow"), tools, chances, says, place, legend.node), choices, answers);
  const lines = createLines(place, { point });
  let built = "";
  let example = null;
  let axes = null;
  let view = null;
  let looking = null;
  let entries = []; // of every row
  let full = 1;
  let scale = "largest";
  let at = -1; // the step that is held; -1 is the whole output
  let timer = 0;
  let turn = 0;

  async function show(state) {
    if (state.kind !== "cross") return choose({ kind: "cross" });
    view = state;
    axes = reader.axes(view);
    scale = state.scale;
    if (built !== String(state.example)) build(state.example);
    looking = createLooking(reader, view);
    full = scale === "one" ? 1 : await looking.largest();
    entries = await looking.rows(axes.rows.map((_, row) => row), MOST);
    legend.tell("0", figure(full, 3));
    return null;
  }

  function build(number) {
    built = String(number);
    example = reader.exampleAt(number);
    slider.max = String(axes.rows.length);
    lines.build(axes, "line.seen", "flow.written");
    const chances = example.search?.probabilities ?? [];
    bars.parentElement.hidden = !chances.length || chances.length > MOST_BARS;
    bars.replaceChildren(...(bars.parentElement.hidden ? [] : chances).map((chance, row) => {
      const title = t("flow.chance", { token: nameOf(axes.rows[row]), chance: chance === null ? t("flow.not-asked") : figure(chance, 3) });
      const bar = element("i", { "data-at": row, title });
      bar.style.setProperty("--p", String(chance ?? 0));
      return bar;
    }));
    drawAnswers();
  }

  /** Shows a step, or who looked at a source token; nothing pointed at is the whole output. */
  function mark({ row, column }) {
    if (row === null && column !== null) return markColumn(column);
    at = row ?? -1;
    turn += 1;
    slider.value = String(at + 1);
    const step = { at: at + 1, count: axes.rows.length };
    slider.setAttribute("aria-valuetext", at < 0 ? t("flow.value.whole") : t("flow.value", { ...step, token: nameOf(axes.rows[at]) }));
    count.textContent = t(at < 0 ? "flow.count" : "flow.at", step);
    for (const bar of bars.children) bar.classList.toggle("now", Number(bar.dataset.at) === at);
    lines.fade((place) => at >= 0 && place > at);
    lines.draw(linksOf((place) => at < 0 || place <= at));
    const shares = new Map((entries[at] ?? []).map((entry) => [entry.at, shareOf(entry.weight, full, scale)]));
    lines.mark(at < 0 ? null : { row: at, column: null }, { columns: shares });
    if (at >= 0) lines.reveal({ row: at, column: null });
    tell();
    drawChoices();
    return null;
  }

  async function markColumn(column) {
    const mine = ++turn;
    const lookers = await looking.lookers(column, MOST);
    if (mine !== turn) return;
    lines.fade(() => false);
    lines.draw(linksOf(() => true));
    lines.mark({ row: null, column }, { rows: new Map((lookers ?? []).map((entry) => [entry.at, shareOf(entry.weight, full, scale)])) });
    const most = (lookers ?? []).slice(0, 4);
    says.textContent = t(most.length ? "flow.looked" : "flow.nobody", { token: nameOf(axes.columns[column]), tokens: weighed(most, axes.rows) });
  }

  const weighed = (some, tokens) => listed(some.map(({ at: place, weight }) => `${nameOf(tokens[place])} (${figure(weight, 2)})`));

  function linksOf(isShown) {
    return entries.flatMap((found, row) =>
      (isShown(row) ? found ?? [] : [])
        .filter(({ weight }) => weight >= FAINTEST)
        .map((entry) => ({ row, column: entry.at, share: shareOf(entry.weight, full, "largest") })),
    );
  }

  function tell() {
    if (at < 0) {
      says.textContent = t("flow.all");
      return;
    }
    const looked = (entries[at] ?? []).slice(0, 3).filter(({ weight }) => weight >= FAINTEST);
    const before = tail(axes.rows.slice(0, at));
    const chance = example.search?.probabilities?.[at];
    const parts = [
      before ? t("flow.after", { before }) : t("flow.first"),
      looked.length ? t("flow.most", { tokens: weighed(looked, axes.columns) }) : t("flow.unkept"),
      typeof chance === "number" ? t("flow.wrote.chance", { token: nameOf(axes.rows[at]), chance: figure(chance, 3) }) : t("flow.wrote", { token: nameOf(axes.rows[at]) }),
    ];
    says.textContent = parts.join("");
    if (!timer) say(says.textContent);
  }

  function tail(tokens) {
    const last = tokens.at(-1);
    if (!last) return "";
    const characters = Array.from(example.output).slice(0, Math.max(...tokens.map((token) => token.end)));
    const whole = characters.length ? characters.join("") : tokens.map((token) => nameOf(token)).join(" ");
    return shortened(whole);
  }

  // Which beginnings the search held, and what became of everything that might have followed.
  function drawChoices() {
    const { search } = example;
    const held = search?.steps?.[at];
    choices.hidden = !held;
    if (!held) return;
    const width = search.beam_size;
    const title = t(width === null ? "flow.given" : width === 1 ? "flow.greedy" : "flow.beam", { width });
    const head = headOf(["rank", "so-far", "log-probability", "next"].map((name) => t(`flow.${name}`)));
    const rows = held.map((beginning, rank) => {
      const isPath = search.path[at] === rank;
      const chips = beginning.extensions.map((extension) => chipOf(extension, isPath && isChosen(search, extension)));
      const text = shortened(textOf(search, at, rank));
      return element(
        "tr",
        { class: isPath ? "path" : null, "aria-label": isPath ? t("flow.path") : null },
        element("th", { scope: "row" }, String(rank + 1)),
        element("td", {}, element("bdi", { lang: axes.languages.rows, class: text ? null : "sign" }, text || t("flow.start"))),
        element("td", { class: "number" }, beginning.log_prob.toFixed(2).replace("-", "−")),
        element("td", {}, element("div", { class: "chips" }, ...(chips.length ? chips : [element("span", { class: "hint" }, t("flow.cut"))]))),
      );
    });
    const note = t(width === null ? "flow.note.given" : "flow.note");
    choices.replaceChildren(
      element("h2", {}, title),
      element("div", { class: "frame" }, element("table", { class: "beam" }, head, element("tbody", {}, ...rows))),
      element("p", { class: "hint" }, note, ...(width === null ? [] : [t("flow.note.chips")])),
    );
  }

  function isChosen(search, extension) {
    const next = search.steps[at + 1]?.[search.path[at + 1]];
    return next ? extension.outcome !== "ended" && extension.text === next.text : extension.outcome === "ended";
  }

  function chipOf({ text, probability, outcome }, isTaken) {
    const says = t("flow.chip", { token: text.trim() || t("space"), chance: figure(probability, 3), outcome: t(isTaken ? "flow.taken" : `outcome.${outcome}`) });
    const chip = element(
      "span",
      { class: `chip ${example.search.beam_size === null && !isTaken ? "open" : outcome} ${isTaken ? "taken" : ""}`, title: says },
      element("bdi", { lang: axes.languages.rows }, text.replace(/^ /, "") || "␣"),
      element("small", {}, figure(probability, 2)),
    );
    weigh(chip, probability);
    return chip;
  }

  function textOf(search, number, rank) {
    const parts = [];
    for (let [step, place] = [number, rank]; step >= 0 && place >= 0; step -= 1) {
      const beginning = search.steps[step][place];
      parts.unshift(beginning.text);
      place = beginning.parent;
    }
    return parts.join("");
  }

  function drawAnswers() {
    const found = example.search?.answers ?? [];
    answers.hidden = found.length < 1;
    answers.replaceChildren(
      element("h2", {}, t(found.length > 1 ? "flow.found" : "flow.answer")),
      element(
        "ol",
        { class: "answers" },
        ...found.map((one) =>
          element(
            "li",
            {},
            element("bdi", { lang: axes.languages.rows, dir: "auto" }, one.text || t("flow.nothing")),
            element("small", {}, t(one.is_finished ? "flow.score" : "flow.score.cut", { score: one.score.toFixed(3).replace("-", "−"), chance: figure(Math.exp(one.log_prob), 3) })),
          ),
        ),
      ),
    );
  }

  function settle(next) {
    const held = Math.max(-1, Math.min(axes.rows.length - 1, next));
    point({ row: held < 0 ? null : held, column: null }, true);
  }

  function toggle(isOn = !timer) {
    clearInterval(timer);
    timer = 0;
    if (isOn) {
      if (at >= axes.rows.length - 1) settle(-1);
      timer = setInterval(() => (at >= axes.rows.length - 1 ? toggle(false) : settle(at + 1)), PACE);
    }
    play.textContent = timer ? "❚❚" : "▶";
    play.title = t(timer ? "flow.pause" : "flow.play");
    play.setAttribute("aria-label", play.title);
    tools.dataset.playing = String(Boolean(timer));
  }

  function press({ key, target }) {
    if (key === " " && !target.closest?.("button")) return toggle(), true;
    if (target !== document.body && !tools.contains(target)) return false;
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: -1, End: axes.rows.length - 1 };
    if (!(key in moves)) return false;
    settle(moves[key]);
    return true;
  }

  function table() {
    const columns = ["step", "token", "probability", "beginning", "so far", "log-probability", "next", "next probability", "outcome"];
    const rows = axes.rows.flatMap((token, number) => {
      const own = [number + 1, token.text, example.search?.probabilities?.[number] ?? ""];
      const held = example.search?.steps?.[number] ?? [];
      if (!held.length) return [own];
      return held.flatMap((beginning, rank) =>
        beginning.extensions.map((extension) => [
          ...own, rank + 1, textOf(example.search, number, rank), beginning.log_prob, extension.text, extension.probability, extension.outcome,
        ]),
      );
    });
    return { columns, rows };
  }

  return {
    show, mark, press, table,
    reveal: (where) => lines.reveal(where),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    picture: () => ({ ...lines.picture(), legend: { ...legend.ends(), says: at < 0 ? [] : [says.textContent] } }),
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

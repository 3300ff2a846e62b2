// The whole instrument: one state, and parts that draw it.

import { createArcs } from "./arcs.js";
import { changeOf, createControls, helpLine } from "./controls.js";
import { element, weigh } from "./dom.js";
import { KINDS, figure, mapOf, nearestView } from "./maps.js";
import { createMatrix } from "./matrix.js";
import { createReadout } from "./readout.js";
import { createTexts } from "./texts.js";
import { languagesOf } from "./tokens.js";

const NOWHERE = { row: null, column: null };

/** Shows a document of version 1 inside `root`. */
export function show(root, data) {
  if (data.format !== "regard.attention" || data.version !== 1) {
    throw new Error(`This page reads regard.attention version 1, not ${data.format} ${data.version}.`);
  }
  const parts = layOut(root, data);
  if (!data.examples.some((example) => example.maps.length)) {
    parts.main.replaceChildren(element("p", { class: "hint" }, "There is nothing to look at in this document."));
    return;
  }
  let state = { example: data.examples.findIndex((example) => example.maps.length), scale: "largest" };
  let held = NOWHERE; // what was clicked or focused
  let built = "";
  let view = null;

  const tell = { point };
  const texts = createTexts(parts.texts, tell);
  const arcs = createArcs(parts.arcs, tell);
  const matrix = createMatrix(parts.matrix, tell);
  const readout = createReadout(parts.readout);
  const controls = createControls(parts.controls, data, { choose });
  const drawn = [texts, arcs, matrix, readout];

  function choose(changes) {
    const wish = { ...state, ...changes };
    const example = data.examples[wish.example];
    if (!example.maps.length) return;
    state = { ...wish, ...nearestView(example, wish) };
    draw(example);
  }

  function draw(example) {
    const sides = KINDS[state.kind];
    const languages = languagesOf(example, data);
    view = mapOf(example, state);
    const full = state.scale === "one" ? 1 : view.largest;
    if (built !== `${state.example} ${state.kind}`) {
      built = `${state.example} ${state.kind}`;
      held = NOWHERE;
      texts.show(example, languages);
      arcs.build(view, languages, sides);
      matrix.build(view, languages, sides);
    }
    texts.paint(view, sides, full);
    arcs.paint(view, full);
    matrix.paint(view, full);
    readout.paint(view, languages, sides, full);
    controls.show(state);
    parts.caption.textContent = sides.says;
    parts.most.textContent = figure(full);
    parts.gold.hidden = view.gold.size === 0;
    mark(held);
  }

  function point(place, isFirm) {
    if (isFirm) {
      held = place;
      arcs.reveal(place);
    }
    mark(place ?? held);
  }

  function mark(place) {
    for (const part of drawn) part.mark(place);
  }

  function press(event) {
    const isTyping = event.target.closest?.("select, textarea, input:not([type=radio])");
    if (isTyping || event.metaKey || (event.ctrlKey && !event.altKey)) return;
    if (event.key === "Escape") {
      document.activeElement?.blur();
      point(NOWHERE, true);
    } else if (event.key === "t") switchTheme();
    else if (event.key.startsWith("Arrow") && document.activeElement === document.body) {
      event.preventDefault();
      matrix.focus();
    } else {
      const changes = changeOf(event.key, state, data);
      if (changes) choose(changes);
    }
  }

  document.addEventListener("keydown", press);
  choose(data.opening ?? { kind: "cross", layer: "mean", head: "mean" });
  new ResizeObserver(() => {
    matrix.fit();
    arcs.fit();
    mark(held);
  }).observe(parts.main);
}

function layOut(root, data) {
  const place = (name) => element("div", { class: name });
  const section = (title, ...children) =>
    element("section", { "aria-label": title }, element("h2", {}, title), ...children);
  const parts = {
    controls: element("nav", { class: "controls", "aria-label": "What to look at" }),
    texts: place("reading"),
    arcs: place("arcs"),
    matrix: place("holder"),
    readout: element("aside", { class: "readout", "aria-label": "Weights" }),
    caption: element("p", { class: "caption" }),
    most: element("span", {}),
    gold: element("span", { class: "key" }, sample({ "data-gold": "sure" }), "gold link", sample({ "data-gold": "possible" }), "possible"),
  };
  const legend = element(
    "div",
    { class: "legend" },
    element("span", { class: "key" }, "0", ramp(), parts.most),
    element("span", { class: "key" }, sample({ class: "best" }), "largest of its row"),
    parts.gold,
  );
  parts.main = element(
    "main",
    {},
    parts.texts,
    section("Links", parts.arcs),
    section("Matrix", parts.caption, element("div", { class: "split" }, parts.matrix, parts.readout), legend),
  );
  const about = [data.task, data.model].filter(Boolean).join(" · ");
  const theme = element("button", { type: "button", class: "theme", title: "Light or dark (t)", onclick: switchTheme }, "Light / dark");
  root.replaceChildren(
    element("header", {}, element("div", {}, element("h1", {}, data.title), element("p", {}, about)), theme),
    parts.controls,
    parts.main,
    helpLine(),
  );
  return parts;
}

function ramp() {
  const steps = Array.from({ length: 48 }, (_, at) => {
    const step = element("i");
    weigh(step, at / 47);
    return step;
  });
  return element("span", { class: "ramp", "aria-hidden": "true" }, ...steps);
}

function sample(attributes) {
  return element("i", { "aria-hidden": "true", ...attributes, class: `sample ${attributes.class ?? ""}` });
}

function switchTheme() {
  const page = document.documentElement;
  const isDark = page.dataset.theme
    ? page.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  page.dataset.theme = isDark ? "light" : "dark";
}

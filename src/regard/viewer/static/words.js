// Short texts, whole: both texts, the links between their words, and the matrix with its figures.

import { createArcs } from "./arcs.js";
import { element } from "./dom.js";
import { DECADES, ramp, sample } from "./legend.js";
import { figure } from "./maps.js";
import { bestMark, createMatrix, goldMark } from "./matrix.js";
import { inks } from "./palette.js";
import { createReadout } from "./readout.js";
import { createTexts } from "./texts.js";

const MOST = 64; // tokens on a side

export const words = {
  id: "words",
  title: "Words",
  says: "The texts, the links between their words, and all weights in a table",
  controls: ["example", "kind", "layer", "head", "scale"],
  applies: ({ reader }, example) =>
    reader.kinds(example).length > 0 &&
    reader.kinds(example).every((kind) => {
      const { rows, columns } = reader.axes({ example, kind });
      return Math.max(rows.length, columns.length) <= MOST && reader.holdsRows({ example, kind, ...reader.nearest(example, { kind }) });
    }),
  create,
};

function create(host, context) {
  const { reader, point } = context;
  const parts = layOut(host);
  const texts = createTexts(parts.texts, { point });
  const arcs = createArcs(parts.arcs, { point });
  const matrix = createMatrix(parts.matrix, { point });
  const readout = createReadout(parts.readout);
  const drawn = [texts, arcs, matrix, readout];
  let built = "";
  let map = null;
  let full = 1;
  let scale = "largest";

  async function show(state) {
    const sides = reader.axes(state);
    const languages = context.languages(state.example);
    map = await reader.map(state);
    scale = state.scale;
    full = scale === "one" ? 1 : map.largest;
    if (built !== `${state.example} ${state.kind}`) {
      built = `${state.example} ${state.kind}`;
      texts.show(reader.exampleAt(state.example), languages);
      arcs.build(map, languages, sides);
      matrix.build(map, languages, sides);
    }
    texts.paint(map, sides, full);
    arcs.paint(map, full);
    matrix.paint(map, full, state.scale, context.hits());
    readout.paint(map, languages, sides, full);
    parts.caption.textContent = sides.says;
    parts.least.textContent = scale === "log" ? figure(full / 10 ** DECADES, 2) : "0";
    parts.most.textContent = figure(full);
    parts.gold.hidden = map.gold.size === 0;
  }

  function legendOf() {
    const dot = { shapes: [bestMark([12, 4], inks().ink)], text: "largest of its row" };
    const links = map.gold.size ? ["sure", "possible"].map((strength) => ({ shapes: [goldMark([1, 1, 14, 14], strength, inks().gold)], text: strength === "sure" ? "gold link" : "possible gold link" })) : [];
    return { least: scale === "log" ? figure(full / 10 ** DECADES, 2) : "0", most: figure(full), marks: [dot, ...links] };
  }

  return {
    show,
    mark: (place) => drawn.forEach((part) => part.mark(place)),
    reveal: (place) => {
      arcs.reveal(place);
      matrix.reveal(place);
    },
    fit: () => {
      matrix.fit();
      arcs.fit();
    },
    focus: () => matrix.focus(),
    picture: () => ({ ...matrix.picture(), legend: legendOf() }),
    table: () => ({
      columns: ["row", "token", ...map.columns.map((token) => token.text)],
      rows: map.weights.map((row, at) => [at + 1, map.rows[at].text, ...row.map((weight) => figure(weight))]),
    }),
    destroy: () => host.replaceChildren(),
  };
}

function layOut(host) {
  const place = (name) => element("div", { class: name });
  const section = (title, ...children) =>
    element("section", { "aria-label": title }, element("h2", {}, title), ...children);
  const parts = {
    texts: place("reading"),
    arcs: place("arcs"),
    matrix: place("holder"),
    readout: element("aside", { class: "readout", "aria-label": "Weights" }),
    caption: element("p", { class: "caption" }),
    least: element("span", {}),
    most: element("span", {}),
    gold: element("span", { class: "key" }, sample({ "data-gold": "sure" }), "gold link", sample({ "data-gold": "possible" }), "possible"),
  };
  const legend = element(
    "div",
    { class: "legend" },
    element("span", { class: "key" }, parts.least, ramp(), parts.most),
    element("span", { class: "key" }, sample({ class: "best" }), "largest of its row"),
    parts.gold,
  );
  host.append(
    parts.texts,
    section("Links", parts.arcs),
    section("Matrix", parts.caption, element("div", { class: "split" }, parts.matrix, parts.readout), legend),
  );
  return parts;
}

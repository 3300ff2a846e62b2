// Short texts, whole: both texts, the links between their words, and the matrix with its figures.

import { element, section, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { headingOf } from "../parts/looking.js";
import { chosenOf, figure, meanOver, sideName, sumOver } from "../data/maps.js";
import { bestMark, createArcs, createMatrix, goldMark } from "../parts/matrix.js";
import { DECADES, inks, ramp, sample } from "../page/palette.js";

const MOST_ENTRIES = 8; // tokens listed

/** Figures inside `host`. */
export function createReadout(host) {
  let map = null;
  let languages = null;
  let sides = null;
  let full = 1;

  function paint(next, tongues, axes, deepest) {
    [map, languages, sides, full] = [next, tongues, axes, deepest];
    const lines = Math.min(MOST_ENTRIES, Math.max(map.rows.length, map.columns.length));
    host.style.setProperty("--lines", lines); // room kept, so that nothing jumps under the pointer
  }

  function mark(place) {
    const { rows, columns } = chosenOf(place);
    const parts = [];
    if (rows.length && columns.length) parts.push(...cellParts(rows[0], columns[0]));
    if (rows.length) {
      const weights = Array.from(meanOver(rows.map((row) => map.weights[row])));
      const others = weights.map((weight, at) => [map.columns[at], weight, columns.includes(at)]);
      parts.push(...listParts(rows.map((at) => map.rows[at]), sides.looks, "looks-at", others, sides.seen));
    } else if (columns.length) {
      const others = sumOver(map.weights, columns).map((weight, at) => [map.rows[at], weight, false]);
      parts.push(...listParts(columns.map((at) => map.columns[at]), sides.seen, "looked-at-by", others, sides.looks));
    } else {
      parts.push(...largestParts(), element("p", { class: "hint" }, t("words.point")));
    }
    host.replaceChildren(...parts);
  }

  // Nothing is pointed at: the largest weights of all.
  function largestParts() {
    const all = map.weights.flatMap((weights, row) => weights.map((weight, column) => ({ row, column, weight })));
    const largest = all.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight).slice(0, MOST_ENTRIES);
    const items = largest.map(({ row, column, weight }) =>
      itemOf([tokenLabel(map.rows[row], languages[sides.looks]), " → ", tokenLabel(map.columns[column], languages[sides.seen])], weight),
    );
    return items.length ? [element("h3", {}, t("words.largest")), element("ol", { class: "pairs" }, ...items)] : [];
  }

  function itemOf(named, weight, isChosen = false) {
    const bar = element("i", { "aria-hidden": "true" });
    weigh(bar, full > 0 ? Math.min(1, weight / full) : 0);
    return element("li", { class: isChosen ? "marked" : null }, element("span", { class: "named" }, ...named), bar, element("data", { value: weight }, figure(weight)));
  }

  function cellParts(row, column) {
    const link = map.gold.get(`${row},${column}`);
    const parts = [
      element("p", { class: "weight" }, figure(map.weights[row][column])),
      element(
        "p",
        { class: "pair" },
        tokenLabel(map.rows[row], languages[sides.looks]),
        " → ",
        tokenLabel(map.columns[column], languages[sides.seen]),
      ),
    ];
    if (link) parts.push(element("p", { class: "hint" }, t(`gold.${link}`)));
    return parts;
  }

  function listParts(tokens, side, verb, others, otherSide) {
    const listed = others
      .filter(([, weight]) => weight > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST_ENTRIES);
    const items = listed.map(([other, weight, isChosen]) => itemOf([tokenLabel(other, languages[otherSide])], weight, isChosen));
    const rest = others.filter(([, weight]) => weight > 0).length - listed.length;
    const head = headingOf(tokens, languages[side], verb);
    const list = items.length ? element("ol", {}, ...items) : element("p", { class: "hint" }, t("nothing"));
    return rest > 0 ? [head, list, element("p", { class: "hint" }, t("and-more", { count: rest }))] : [head, list];
  }

  return { paint, mark };
}

/** The texts inside `host`; `point` is told as by the matrix. */
export function createTexts(host, { point }) {
  const source = element("dd", {});
  const output = element("dd", {});
  const score = element("dd", { class: "score" });
  const scored = element("div", {}, element("dt", {}, t("score")), score);
  const names = { source: element("dt", {}), output: element("dt", {}) };
  const lines = {
    source: element("div", {}, names.source, source),
    output: element("div", {}, names.output, output),
  };
  host.append(element("dl", { class: "texts" }, lines.source, lines.output, scored));
  let spans = { source: [], output: [] };
  let map = null;
  let sides = null;
  let full = 1;

  for (const [text, side] of [[source, "source"], [output, "output"]]) {
    text.addEventListener("pointerover", (event) => tell(event, side));
    text.addEventListener("pointerleave", () => point(null, false));
    text.addEventListener("click", (event) => tell(event, side, true));
  }

  function tell(event, side, isFirm = false) {
    const at = Number(event.target.dataset.at ?? -1);
    const { places } = sides; // of a part of a pair
    const axis = places ? (places.rows.includes(at) ? "row" : "column") : side === sides.looks ? "row" : "column";
    const place = places ? places[`${axis}s`].indexOf(at) : at;
    if (place >= 0) point({ row: null, column: null, [axis]: place }, isFirm);
  }

  /** Sets another example. */
  function show(example, languages, task) {
    spans = {
      source: fill(source, example.source, example.source_tokens, languages.source),
      output: fill(output, example.output, example.output_tokens, languages.output),
    };
    for (const side of ["source", "output"]) {
      lines[side].hidden = !example[`${side}_tokens`].length;
      names[side].textContent = sideName(example, side, task);
    }
    scored.hidden = example.score === null || example.score === undefined;
    score.textContent = scored.hidden ? "" : figure(example.score).replace("-", "−");
  }

  function paint(next, axes, deepest) {
    [map, sides, full] = [next, axes, deepest];
  }

  /** Shades the tokens at the other end of a row or column. */
  function mark(place) {
    const { rows, columns } = chosenOf(place);
    const shift = map.kind === "decoder" ? 1 : 0; // its columns begin with the start sign
    const part = (all, places) => (places ? places.map((at) => all[at]) : all);
    const seen = part(sides.seen === "source" ? spans.source : spans.output, sides.places?.columns);
    const looks = part(sides.looks === "source" ? spans.source : spans.output, sides.places?.rows);
    for (const span of [...spans.source, ...spans.output]) {
      span?.classList.remove("marked", "shaded");
    }
    if (rows.length) meanOver(rows.map((row) => map.weights[row])).forEach((weight, at) => shade(seen[at - shift], weight));
    else if (columns.length) sumOver(map.weights, columns).forEach((weight, at) => shade(looks[at], weight));
    for (const row of rows) looks[row]?.classList.add("marked");
    for (const column of columns) seen[column - shift]?.classList.add("marked");
  }

  function shade(span, weight) {
    if (!span || weight < 0.01) return;
    span.classList.add("shaded");
    weigh(span, full > 0 ? Math.min(1, weight / full) : 0);
  }

  return { show, paint, mark };
}

// Offsets count code points, so the text is cut as a list of them. A token that overlaps the one
// before it, or is no text, gets no span.
function fill(host, text, tokens, language) {
  const characters = Array.from(text);
  host.lang = language ?? "";
  host.dir = "auto";
  host.replaceChildren();
  let done = 0;
  const spans = tokens.map((token, at) => {
    if (token.start < done || token.start === token.end) return null;
    host.append(characters.slice(done, token.start).join(""));
    const span = element("span", { "data-at": at }, characters.slice(token.start, token.end).join(""));
    host.append(span);
    done = token.end;
    return span;
  });
  host.append(characters.slice(done).join(""));
  return spans;
}

const MOST = 64; // tokens on a side

export const words = {
  id: "words",
  picks: true,
  controls: ["example", "kind", "layer", "head", "pair", "scale"],
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
    const key = `${state.example} ${state.kind} ${state.pair}`;
    if (built !== key) {
      built = key;
      texts.show(reader.exampleAt(state.example), languages, reader.data.task);
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
    const dot = { shapes: [bestMark([12, 4], inks().ink)], text: t("words.best") };
    const links = map.gold.size ? ["sure", "possible"].map((strength) => ({ shapes: [goldMark([1, 1, 14, 14], strength, inks().gold)], text: t(`gold.${strength}`) })) : [];
    return { least: scale === "log" ? figure(full / 10 ** DECADES, 2) : "0", most: figure(full), marks: [dot, ...links] };
  }

  // The links above the matrix.
  function picture() {
    const [above, below] = [arcs.picture(), matrix.picture()];
    const shapes = [{ group: above.shapes, at: [0, 0] }, { group: below.shapes, at: [0, above.height] }];
    return { width: Math.max(above.width, below.width), height: above.height + below.height, shapes, legend: legendOf() };
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
    picture,
    table: () => ({
      columns: ["row", "token", ...map.columns.map((token) => token.text)],
      rows: map.weights.map((row, at) => [at + 1, map.rows[at].text, ...row.map((weight) => figure(weight))]),
    }),
    destroy: () => host.replaceChildren(),
  };
}

function layOut(host) {
  const place = (name) => element("div", { class: name });
  const parts = {
    texts: place("reading"),
    arcs: place("arcs"),
    matrix: place("holder"),
    readout: element("aside", { class: "readout", "aria-label": t("weights") }),
    caption: element("p", { class: "caption" }),
    least: element("span", {}),
    most: element("span", {}),
    gold: element("span", { class: "key" }, sample({ "data-gold": "sure" }), t("gold.sure"), sample({ "data-gold": "possible" }), t("gold.possible.short")),
  };
  const legend = element(
    "div",
    { class: "legend" },
    element("span", { class: "key" }, parts.least, ramp(), parts.most),
    element("span", { class: "key" }, sample({ class: "best" }), t("words.best")),
    parts.gold,
  );
  host.append(
    parts.texts,
    section(t("words.links"), null, parts.arcs),
    section(t("words.matrix"), null, parts.caption, element("div", { class: "split" }, parts.matrix, parts.readout), legend),
  );
  return parts;
}

// A picture whose parts are tokens, and over it, the attention of a part or of the class token to each.

import { element, shape } from "../page/dom.js";
import { textAt } from "../page/exporting.js";
import { sentences, t } from "../page/language.js";
import { figure, sumOf } from "../data/maps.js";
import { createLegend, cssOf, inkOn, shareOf } from "../page/palette.js";

const SIDE = 320; // of the longer side of a picture, in pixels of the page

/** @type {import("./views.js").ViewType} */
export const image = {
  id: "image",
  controls: ["example", "layer", "head", "scale"],
  applies: ({ reader }, example) => {
    const kind = "encoder";
    if (!reader.exampleAt(example).image || !reader.kinds(example).includes(kind)) return false;
    return reader.holdsRows({ example, kind, ...reader.nearest(example, { kind }) });
  },
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, { reader, point }) {
  const [plain, heat, caption] = [element("div"), element("div"), element("p.caption")];
  const legend = createLegend();
  host.append(caption, element("div.pictures", plain, heat), legend.node);
  /** @type {import("../data/contents.js").Example} */
  let example = null;
  let state = null;
  let weights = [];
  let query = null;
  let drawings = [];

  async function show(next) {
    state = { ...next, kind: "encoder" };
    example = reader.exampleAt(state.example);
    query = null;
    drawings = [drawPicture(example.image), drawHeat(example.image)];
    drawings.forEach(({ boxes }) => boxes.forEach((box, at) => box && listen(box, at)));
    plain.replaceChildren(drawings[0].node);
    heat.replaceChildren(drawings[1].node);
    await showQuery(state.row ?? null);
  }

  function listen(box, at) {
    const pointTo = (isFirm) => point({ row: at, column: null }, isFirm);
    box.addEventListener("pointerenter", () => pointTo(false));
    box.addEventListener("pointerleave", () => point(null, false));
    box.addEventListener("click", () => pointTo(true));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pointTo(true);
    });
    box.addEventListener("focus", () => pointTo(false));
  }

  // The query: the part that is pointed at, else what stands before them all, else everyone.
  async function showQuery(row) {
    const first = example.image.boxes[0] ? null : 0;
    const position = row ?? first;
    if (position === query && weights.length) return;
    query = position;
    const all = example.source_tokens.map((_, at) => at);
    const rows = await reader.rows(state, position === null ? all : [position]);
    if (query !== position) return; // another was pointed at meanwhile
    weights = all.map((at) => rows.reduce((sum, one) => sum + one[at], 0) / rows.length);
    paint(position, row === null);
  }

  function paint(position, isAsItWas) {
    const partWeights = weights.filter((_, at) => example.image.boxes[at]);
    const full = state.scale === "one" ? 1 : Math.max(...partWeights);
    shade(drawings[1], weights, full, state.scale);
    drawings[0].boxes.forEach((box, at) => box?.toggleAttribute("data-query", at === position));
    const who = position === null ? "image.all" : example.image.boxes[position] ? "image.part" : "image.class";
    const rest = 1 - sumOf(partWeights);
    const other = rest > 0.0005 && t("image.rest", { weight: figure(rest) });
    const sentence = t(who, { part: example.source_tokens[position]?.text });
    caption.textContent = sentences(sentence, other, isAsItWas && t("image.point"));
    legend.setEnds("0", figure(full));
  }

  return {
    show,
    mark: (position) => showQuery(position?.row ?? null),
    focus: () => drawings[0].boxes.find(Boolean)?.focus(),
    picture: () => ({
      ...pictureOf(example.image, weights, state.scale === "one" ? 1 : undefined, state.scale),
      legend: { ...legend.ends(), notes: [caption.textContent] },
    }),
    table: () => ({
      columns: ["part", "weight"],
      rows: example.source_tokens.map((token, at) => [token.text, weights[at]]),
    }),
  };
}

/** A picture as a drawing: `{node, boxes}`, an element for each token that is a part of it. */
export function drawPicture(image) {
  const node = frame(image, t("image"));
  image.pixels.forEach((row, y) =>
    row.forEach((pixel, x) => node.append(shape("rect", { x, y, width: 1.02, height: 1.02, fill: colour(pixel) }))),
  );
  return { node, boxes: partsIn(node, image, () => []) };
}

/** The same for `shade`: the colours are its parts', its own pixels dots that grow with their light. */
export function drawHeat(image) {
  const node = frame(image, t("image.heat"));
  const dots = ([top, left, rows, columns]) =>
    dotsOf(image.pixels, top, left, rows, columns).map(([x, y, r]) =>
      shape("circle", { cx: x, cy: y, r, fill: "currentColor" }),
    );
  return { node, boxes: partsIn(node, image, dots) };
}

/** Colours the parts by their weights; `full` is the weight of the deepest colour. */
export function shade({ boxes }, weights, full, scale = "largest") {
  boxes.forEach((box, at) => {
    if (!box) return;
    const share = shareOf(weights[at], full, scale);
    box.querySelector("rect").setAttribute("fill", cssOf(share));
    box.style.color = inkOn(share);
    box.querySelector("title").textContent = figure(weights[at]);
  });
}

function frame({ pixels }, name) {
  const [height, width] = [pixels.length, pixels[0].length];
  const scale = SIDE / Math.max(height, width);
  return shape("svg", {
    class: "picture",
    viewBox: `0 0 ${width} ${height}`,
    width: width * scale,
    height: height * scale,
    role: "group",
    "aria-label": name,
  });
}

function partsIn(node, { boxes }, marks) {
  return boxes.map((box, at) => {
    if (!box) return null;
    const [y, x, height, width] = box;
    const made = shape(
      "g",
      { class: "part", tabindex: "0", "data-at": at },
      shape("title"),
      shape("rect", { x, y, width, height, fill: "transparent" }),
      ...marks(box),
    );
    node.append(made);
    return made;
  });
}

// [x, y, radius] of each pixel of a part that has any light.
function dotsOf(pixels, top, left, rows, columns) {
  const dots = [];
  for (let y = top; y < top + rows; y++)
    for (let x = left; x < left + columns; x++) {
      const light = sumOf(pixels[y][x]) / pixels[y][x].length;
      if (light > 0.05) dots.push([x + 0.5, y + 0.5, 0.3 * Math.sqrt(light)]);
    }
  return dots;
}

// For PNG and SVG: the picture, and next to it its parts with their figures.
function pictureOf({ pixels, boxes }, weights, most, scale) {
  const cell = SIDE / Math.max(pixels.length, pixels[0].length);
  const [height, width] = [pixels.length * cell, pixels[0].length * cell];
  const full = most ?? Math.max(...weights.filter((_, at) => boxes[at]));
  /** @type {import("../page/exporting.js").Shape[]} */
  const shapes = pixels.flatMap((row, y) =>
    row.map((pixel, x) => ({ rect: [x * cell, y * cell, cell, cell], fill: colour(pixel) })),
  );
  boxes.forEach((box, at) => {
    if (!box) return;
    const [top, left, rows, columns] = box.map((side) => side * cell);
    const share = shareOf(weights[at], full, scale);
    const x = width + 24 + left;
    const middle = [x + columns / 2, top + rows / 2 + 4];
    shapes.push({ rect: [x, top, columns, rows], fill: cssOf(share) });
    shapes.push(textAt(figure(weights[at]), middle, 12, inkOn(share), "middle"));
  });
  return { width: 2 * width + 24, height, shapes };
}

function colour(pixel) {
  const [red, green, blue] = pixel.length === 3 ? pixel : [pixel[0], pixel[0], pixel[0]];
  return `rgb(${[red, green, blue].map((value) => Math.round(255 * value)).join(",")})`;
}

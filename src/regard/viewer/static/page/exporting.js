// Exports the view as a file: a picture (PNG or SVG), a table (CSV), or a link.
//
// A view's `picture()` is `{width, height, shapes}` in CSS pixels, drawn in order, each one of
//
//   {rect: [x, y, width, height], fill, stroke?, line?}
//   {text, at: [x, y], size, fill, anchor?: "start" | "middle" | "end", turn?: degrees, bold?}
//   {path: "M…C…", stroke, line, opacity?, dash?}       as the `d` of an SVG path
//   {image: canvas, at: [x, y, width, height]}   pixels stay sharp
//   {group: [shapes], at: [x, y]}                moved there
//
// `framed` puts a title and a legend around it: a picture may have a `legend`: `{least, most, colours?, notes?: [text], marks?}`;
// `colours` gives that of a share of 0 to 1, and a mark is `{shapes, text}`, its shapes in a box of 16 × 16 pixels.

/**
 * @typedef {Record<string, any>} Shape see above
 * @typedef {{least?: string, most?: string, colours?: (share: number) => string, notes?: string[], marks?: any[]}} Legend
 * @typedef {{width: number, height: number, shapes: Shape[], legend?: Legend}} Picture
 */

import { button, element, shape } from "./dom.js";
import { t } from "./language.js";
import { cssOf, inks } from "./palette.js";

const EDGE = 16; // pixels around a framed picture
const NARROWEST = 420;
const RAMP = [110, 10]; // pixels of the colours in a legend
const STEPS = 22;
const TALL = /^[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\u3040-\u30ff\uac00-\ud7af]{1,4}$/u; // set upright

/**
 * The text of a column as shapes: upright where it is short, as Chinese, Japanese and Korean may be, else on
 * its side; it ends `at`, the foot of the column's middle.
 *
 * @param {string} text
 * @param {number[]} at
 * @param {{size: number, fill: string, bold?: boolean}} style
 * @returns {Shape[]}
 */
export function columnText(text, [x, y], { size, fill, bold }) {
  if ([...text].length <= 2) return [textAt(text, [x, y], size, fill, "middle", bold)];
  if (!TALL.test(text)) return [{ text, at: [x + size * 0.35, y], size, fill, bold, turn: -90 }];
  const place = (up) => [x, y - 2 - (size + 1) * up];
  return [...text].reverse().map((character, up) => textAt(character, place(up), size, fill, "middle", bold));
}

/**
 * A text of a picture, whose start, or else "middle" or "end", is at a position.
 *
 * @type {(text: string, at: number[], size: number, fill: string, anchor?: string, bold?: boolean) => Shape}
 */
export const textAt = (text, at, size, fill, anchor, bold) => ({ text, at, size, fill, anchor, bold });

/** A picture with a title and sentences above it, and its legend below. */
export function framed(picture, { title, notes }) {
  const { ink, quiet } = inks();
  const width = Math.max(picture.width, NARROWEST) + 2 * EDGE;
  const shapes = [];
  let top = EDGE;
  const write = (text, size, fill, bold = false) =>
    (top += paragraphInto(shapes, text, [EDGE, top], width - 2 * EDGE, size, fill, bold));
  if (title) write(title, 16, ink, true);
  for (const sentence of notes) write(sentence, 12, quiet);
  top += 10;
  shapes.push({ group: picture.shapes, at: [EDGE, top] });
  top += picture.height + 12;
  if (picture.legend) top += legendInto(shapes, picture.legend, top, width, quiet);
  return { width, height: top + EDGE, shapes };
}

/** Adds the lines of a text to shapes, from a corner down; gives their height. */
export function paragraphInto(shapes, text, [left, top], width, size, fill, bold = false) {
  const lines = wrapped(text, width, size, bold);
  lines.forEach((line, at) =>
    shapes.push(textAt(line, [left, top + size * (1.35 * at + 1)], size, fill, undefined, bold)),
  );
  return size * 1.35 * lines.length;
}

// The legend's shapes from `top` down; gives its height.
function legendInto(shapes, { least, most, colours, notes = [], marks = [] }, top, width, quiet) {
  const text = (words, x) => ({ text: words, at: [x, top + 12], size: 12, fill: quiet });
  let left = EDGE;
  const from = top;
  const room = (wide) => {
    if (left > EDGE && left + wide > width - EDGE) [left, top] = [EDGE, top + 22];
  };
  if (most !== undefined) {
    shapes.push(text(least, left));
    left += textWidth(least, 12) + 8;
    shapes.push(...rampOf(colours ?? cssOf, left, top + 3));
    left += RAMP[0] + 8;
    shapes.push(text(most, left));
    left += textWidth(most, 12) + 24;
  }
  for (const mark of marks) {
    const wide = 22 + textWidth(mark.text, 12);
    room(wide);
    shapes.push({ group: mark.shapes, at: [left, top] }, text(mark.text, left + 22));
    left += wide + 20;
  }
  for (const line of notes.filter(Boolean).flatMap((words) => wrapped(words, width - 2 * EDGE, 12))) {
    room(textWidth(line, 12));
    shapes.push(text(line, left));
    left += textWidth(line, 12) + 20;
  }
  return top - from + 18;
}

// The colours of shares from 0 to 1, a path for each step.
function rampOf(colourOf, left, top) {
  const [width, height] = [RAMP[0] / STEPS, RAMP[1]];
  const step = (at) => `M${left + width * at} ${top}h${width + 0.2}v${height}h${-width - 0.2}z`;
  return Array.from({ length: STEPS }, (_, at) => ({ path: step(at), fill: colourOf(at / (STEPS - 1)) }));
}

let measuring = null;
/** Pixels of a text. */
export function textWidth(text, size, bold = false) {
  measuring ??= element("canvas").getContext("2d");
  measuring.font = `${bold ? "bold " : ""}${size}px ${FONT}`;
  return measuring.measureText(text).width;
}

/** Lines of a text that fit; texts without spaces are broken anywhere, but not before a sign. */
export function wrapped(text, width, size, bold = false) {
  const lines = [""];
  for (const part of text.match(
    /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef][。，；：、）”」]*|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+\s*|\s+/gu,
  ) ?? []) {
    if (lines.at(-1) && textWidth((lines.at(-1) + part).trimEnd(), size, bold) > width) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trimEnd());
}

const SHARPNESS = 2; // pixels of a PNG to one of the screen
export const FONT =
  '"Segoe UI","Helvetica Neue","Noto Sans","Liberation Sans",Arial,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif';

/** Buttons inside `host` that save what `view()` shows, or `picture()` of it, under what `name()` says. */
export function createExport(host, { view, picture, name, say }) {
  const files = {
    png: () => new Promise((done) => pngOf(picture()).toBlob(done, "image/png")),
    svg: () => new Blob([svgOf(picture())], { type: "image/svg+xml" }),
    csv: async () => new Blob(["\ufeff", csvOf(await view().table())], { type: "text/csv" }),
  };
  const [png, svg, csv] = Object.keys(files).map((ending) =>
    button(ending.toUpperCase(), () => save(ending), { title: t(`save.${ending}`) }),
  );
  host.append(element("span.name", t("save")), png, svg, csv);

  async function save(ending) {
    const file = `${name()}.${ending}`;
    const address = URL.createObjectURL(await files[ending]());
    const link = element("a", { href: address, download: file, hidden: true });
    host.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    say(t("save.done", { file }));
  }

  function show(instance) {
    png.hidden = svg.hidden = !instance?.picture;
    csv.hidden = !instance?.table;
    host.hidden = png.hidden && csv.hidden;
  }

  return { show };
}

// A table as text; fields are quoted where they must be.
function csvOf({ columns, rows }) {
  const field = (value) => {
    const text = String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${Array.from(row, field).join(",")}\r\n`).join("");
}

function svgOf({ width, height, shapes }) {
  const drawn = shapes.map(shapeOf);
  const paper = shape("rect", { width: "100%", height: "100%", fill: inks().panel });
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT }, paper, ...drawn);
  return new XMLSerializer().serializeToString(svg);
}

function shapeOf(one) {
  const { fill = "none", stroke, line, opacity, dash } = one;
  const drawn = { fill, stroke, "stroke-width": line, "stroke-dasharray": dash };
  if (one.group) return shape("g", { transform: `translate(${one.at.join(" ")})` }, ...one.group.map(shapeOf));
  if (one.path) return shape("path", { d: one.path, opacity, "stroke-linecap": "round", ...drawn });
  const [x, y, width, height] = one.rect ?? one.at;
  if (one.rect) return shape("rect", { x, y, width, height, ...drawn });
  if (one.image) {
    const href = one.image.toDataURL("image/png");
    const image = shape("image", { x, y, width, height, href, preserveAspectRatio: "none" });
    image.style.imageRendering = "pixelated"; // as an attribute the page's content policy refuses it
    return image;
  }
  const style = { fill, "font-size": one.size, "text-anchor": one.anchor, "font-weight": one.bold ? "bold" : null };
  const transform = one.turn ? `rotate(${one.turn} ${x} ${y})` : null;
  return shape("text", { x, y, ...style, transform }, one.text);
}

function pngOf({ width, height, shapes }) {
  const canvas = element("canvas", { width: Math.ceil(width * SHARPNESS), height: Math.ceil(height * SHARPNESS) });
  const pen = canvas.getContext("2d");
  pen.scale(SHARPNESS, SHARPNESS);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = inks().panel;
  pen.fillRect(0, 0, width, height);
  pen.lineCap = "round";
  for (const one of shapes) drawOn(pen, one);
  return canvas;
}

/** Draws a shape with a canvas's pen. */
export function drawOn(pen, one) {
  pen.save();
  pen.globalAlpha = one.opacity ?? 1;
  pen.fillStyle = one.fill ?? "transparent";
  pen.strokeStyle = one.stroke ?? "transparent";
  pen.lineWidth = one.line ?? 1;
  pen.setLineDash(one.dash ? one.dash.split(" ").map(Number) : []);
  if (one.group) {
    pen.translate(...one.at);
    for (const part of one.group) drawOn(pen, part);
  } else if (one.rect) {
    if (one.fill) pen.fillRect(...one.rect);
    if (one.stroke) pen.strokeRect(...one.rect);
  } else if (one.path) {
    const path = new Path2D(one.path);
    if (one.fill) pen.fill(path);
    pen.stroke(path);
  } else if (one.image) pen.drawImage(one.image, ...one.at);
  else {
    pen.font = `${one.bold ? "bold " : ""}${one.size}px ${FONT}`;
    pen.textAlign = { middle: "center", end: "right" }[one.anchor] ?? "left";
    pen.translate(...one.at);
    if (one.turn) pen.rotate((one.turn * Math.PI) / 180);
    pen.fillText(one.text, 0, 0);
  }
  pen.restore();
}

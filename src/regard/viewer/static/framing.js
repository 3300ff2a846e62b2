// What stands around a picture in a file: its title, what it shows, and what colours and marks mean.
//
// A picture (exporting.js) may have a `legend`: `{least, most, colours?, says?: [text], marks?}`;
// `colours` gives that of a share of 0 to 1, and a mark is `{shapes, text}`, its shapes in a box of 16 × 16 pixels.

import { element } from "./dom.js";
import { FONT } from "./exporting.js";
import { cssOf, inks } from "./palette.js";

const EDGE = 16; // pixels around a framed picture
const NARROWEST = 420;
const RAMP = [110, 10]; // pixels of the colours in a legend
const STEPS = 22;
const TALL = /^[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\u3040-\u30ff\uac00-\ud7af]{1,4}$/u; // set upright

/**
 * The text of a column as shapes: upright where it is Chinese, Japanese or Korean and short, else on
 * its side; it ends `at`, the foot of the column's middle.
 */
export function columnText(text, [x, y], { size, fill, bold }) {
  if (!TALL.test(text)) return [{ text, at: [x + size * 0.35, y], size, fill, bold, turn: -90 }];
  return [...text].reverse().map((character, up) => ({ text: character, at: [x, y - 2 - (size + 1) * up], size, fill, bold, anchor: "middle" }));
}

/** A picture with a title and sentences above it, and its legend below. */
export function framed(picture, { title, says }) {
  const { ink, quiet } = inks();
  const width = Math.max(picture.width, NARROWEST) + 2 * EDGE;
  const shapes = [];
  let top = EDGE;
  const write = (text, size, fill, bold = false) => {
    for (const line of wrapped(text, width - 2 * EDGE, size, bold)) {
      top += size * 1.35;
      shapes.push({ text: line, at: [EDGE, top - size * 0.35], size, fill, bold });
    }
  };
  if (title) write(title, 16, ink, true);
  for (const sentence of says) write(sentence, 12, quiet);
  top += 10;
  shapes.push({ group: picture.shapes, at: [EDGE, top] });
  top += picture.height + 12;
  if (picture.legend) top += legendInto(shapes, picture.legend, top, width, quiet);
  return { width, height: top + EDGE, shapes };
}

// The legend's shapes from `top` down; gives its height.
function legendInto(shapes, { least, most, colours, says = [], marks = [] }, top, width, quiet) {
  const text = (words, x) => ({ text: words, at: [x, top + 12], size: 12, fill: quiet });
  let left = EDGE;
  const from = top;
  const room = (wide) => {
    if (left > EDGE && left + wide > width - EDGE) [left, top] = [EDGE, top + 22];
  };
  if (most !== undefined) {
    shapes.push(text(least, left));
    left += widthOf(least, 12) + 8;
    shapes.push(...rampOf(colours ?? cssOf, left, top + 3));
    left += RAMP[0] + 8;
    shapes.push(text(most, left));
    left += widthOf(most, 12) + 24;
  }
  for (const mark of marks) {
    const wide = 22 + widthOf(mark.text, 12);
    room(wide);
    shapes.push({ group: mark.shapes, at: [left, top] }, text(mark.text, left + 22));
    left += wide + 20;
  }
  for (const words of says.filter(Boolean)) {
    room(widthOf(words, 12));
    shapes.push(text(words, left));
    left += widthOf(words, 12) + 20;
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
function widthOf(text, size, bold = false) {
  measuring ??= element("canvas").getContext("2d");
  measuring.font = `${bold ? "bold " : ""}${size}px ${FONT}`;
  return measuring.measureText(text).width;
}

// Lines that fit; texts without spaces are broken anywhere.
function wrapped(text, width, size, bold) {
  const lines = [""];
  for (const part of text.match(/[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+\s*|\s+/gu) ?? []) {
    if (lines.at(-1) && widthOf((lines.at(-1) + part).trimEnd(), size, bold) > width) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trimEnd());
}


// Shaded tokens as a picture, for views of texts.

import { textWidth } from "../page/exporting.js";
import { inks } from "../page/palette.js";

const SIZE = 14; // pixels of a letter
const LINE = 26; // of a line, without what stands below its tokens
const NOTE = 10; // pixels of a letter below a token

/** A width at which pictures of texts are broken into lines. */
export const WIDTH = 640;

/**
 * Tokens in lines, each over its colour, as `{height, shapes}` from a corner. What stands `before` a token has no
 * colour; a `note` stands below it; a token that `ends` a line is the last one in it.
 *
 * @param {{text: string, before?: string, fill: string | null, ink: string, note?: string, ends?: boolean}[]} tokens
 * @param {number} width
 */
export function shadedTokens(tokens, width) {
  const { ink, quiet } = inks();
  const hasNotes = tokens.some(({ note }) => note);
  const line = LINE + (hasNotes ? NOTE + 4 : 0);
  /** @type {import("../page/exporting.js").Shape[]} */
  const shapes = [];
  let [x, y] = [0, 0];
  for (const { text, before = "", fill, ink: over, note = "", ends = false } of tokens) {
    const gap = before && x > 0 ? textWidth(before.replaceAll(/\s+/g, " "), SIZE) : 0;
    const [own, below] = [textWidth(text, SIZE), textWidth(note, NOTE)];
    const room = Math.max(own, below) + (hasNotes ? 8 : 2);
    if (x > 0 && x + gap + room > width) [x, y] = [0, y + line];
    else if (before.trim()) shapes.push({ text: before.trim(), at: [x, y + 18], size: SIZE, fill: ink });
    if (x > 0) x += gap;
    if (fill) shapes.push({ rect: [x, y + 2, own + 2, LINE - 4], fill });
    shapes.push({ text, at: [x + 1, y + 18], size: SIZE, fill: fill ? over : ink });
    if (note) shapes.push({ text: note, at: [x + 1, y + LINE + NOTE - 1], size: NOTE, fill: quiet });
    x += room;
    if (ends || before.includes("\n")) [x, y] = [0, y + line];
  }
  return { height: y + (x > 0 ? line : 0), shapes };
}

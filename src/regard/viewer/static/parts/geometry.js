// Where the tokens of a line stand, and the curve of a link.

const PADDING = 14; // pixels of a token around its letters
const RIGHT_TO_LEFT = /^(?:ar|fa|he|ur|yi|ps|sd|ug|dv)\b/;
const RIGHT_TO_LEFT_SCRIPT = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;

/** Whether a line of tokens reads from right to left: by its language, else by its letters. */
export function isRightToLeft({ tokens, language }) {
  if (language) return RIGHT_TO_LEFT.test(language);
  const letters = tokens
    .slice(0, 50)
    .map((token) => token.text)
    .join("");
  return RIGHT_TO_LEFT_SCRIPT.test(letters);
}

/** The path of a link from above to below. */
export function curve(x, y, top, foot) {
  const half = (top + foot) / 2;
  return `M${x.toFixed(1)} ${top}C${x.toFixed(1)} ${half} ${y.toFixed(1)} ${half} ${y.toFixed(1)} ${foot}`;
}

/**
 * The path of an arc between two places of one line, above it (`way` −1) or below (1), the higher the farther they are
 * apart, up to `most`; of a place with itself a loop.
 */
export function arc(x, y, base, way, most) {
  const isLoop = Math.abs(x - y) < 1;
  const [from, to] = isLoop ? [x - 3, x + 3] : [x, y];
  const [over, under] = isLoop ? [x - 18, x + 18] : [x, y];
  // The middle of the curve is at three quarters of its handles.
  const height = isLoop ? 20 : most * (1 - Math.exp(-Math.abs(x - y) / most));
  const handle = (base + (way * height) / 0.75).toFixed(1);
  return `M${from.toFixed(1)} ${base}C${over.toFixed(1)} ${handle} ${under.toFixed(1)} ${handle} ${to.toFixed(1)} ${base}`;
}

/** Where every token starts, in pixels, and where the last one ends. */
export function measured(tokens, node, gap) {
  const pen = document.createElement("canvas").getContext("2d");
  const { fontSize, fontFamily } = getComputedStyle(node);
  pen.font = `${fontSize} ${fontFamily}`;
  const widths = new Map();
  const starts = new Float64Array(tokens.length + 1);
  tokens.forEach((token, at) => {
    const { text } = token;
    if (!widths.has(text)) {
      const marks = text.match(/[▁Ġ \u00a0\n\t]/g)?.length ?? 0;
      const letters = text.replaceAll(/[▁Ġ \u00a0\n\t]/g, "") || (marks ? "" : "∅");
      const width = pen.measureText(letters).width + marks * 0.62 * parseFloat(fontSize);
      widths.set(text, Math.ceil(Math.min(width, 24 * parseFloat(fontSize))) + PADDING + gap);
    }
    starts[at + 1] = starts[at] + widths.get(text);
  });
  return starts;
}

/** The first position whose start is beyond. */
export function after(starts, target) {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] > target) high = middle;
    else low = middle + 1;
  }
  return low;
}

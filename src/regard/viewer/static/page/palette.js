// Colours: light and dark, the one scale of weights, its legend, and a pooled map as a small picture.
//
// The scale is a single blue whose lightness falls evenly with the weight (rises, in the dark), in
// OKLCH. It reads the same to people who see no red, no green, no blue or no colour. style.css mixes
// the same colours for elements; this is for canvases and files.

import { element, weigh } from "./dom.js";
import { remembered, t } from "./language.js";

const page = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

const STORAGE_KEY = "regard-theme";

const storedTheme = remembered((storage) => storage.getItem(STORAGE_KEY));
if (storedTheme === "light" || storedTheme === "dark") page.dataset.theme = storedTheme;

/** Whether the page is dark now. */
export function isDark() {
  return page.dataset.theme ? page.dataset.theme === "dark" : system.matches;
}

export function switchTheme() {
  setTheme(isDark() ? "light" : "dark");
  remembered((storage) => storage.setItem(STORAGE_KEY, page.dataset.theme));
}

function setTheme(theme) {
  page.dataset.theme = theme;
  page.dispatchEvent(new Event("themechange"));
}

// A page that has this one in a frame sends the theme it was switched to.
addEventListener("message", ({ data }) => {
  if (data?.theme === "light" || data?.theme === "dark") setTheme(data.theme);
});

/** Calls `changed` whenever the theme is another, until a signal. */
export function watchTheme(changed, signal) {
  page.addEventListener("themechange", changed, { signal });
  system.addEventListener("change", changed, { signal });
}

const STEPS = 256;
const made = new Map();

/** The colour of a share of 0 to 1, as [red, green, blue] of 0 to 255. */
export function colourOf(share) {
  return steps()[Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1))];
}

export function cssOf(share) {
  const [red, green, blue] = colourOf(share);
  return `rgb(${red},${green},${blue})`;
}

/** Black or white, whichever is read on that colour. */
export function inkOn(share) {
  const [red, green, blue] = colourOf(share);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "#14171b" : "#ffffff";
}

// Colours of the page by name, for canvases.
/** @type {() => any} */
export const inks = () =>
  Object.fromEntries(
    ["ink", "quiet", "rule", "panel", "accent", "gold", "edge"].map((name) => [name, colourNamed(name)]),
  );

/** Colours of heads, which people tell apart who see no red, no green or no blue; more heads have dashes too. */
export const COLOURS = 8;
const DASHES = [null, "10 10", "1 11"];
export const headInk = (head) => colourNamed(`head-${head % COLOURS}`);
export const dashOf = (head) => DASHES[Math.floor(head / COLOURS) % DASHES.length];

// light-dark() is nothing a canvas understands: the browser works it out on an element.
function colourNamed(name) {
  if (!made.has("probe")) {
    const probe = element("i", { hidden: true });
    document.body.append(probe);
    made.set("probe", probe);
  }
  const probe = made.get("probe");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

function steps() {
  const name = isDark() ? "dark" : "light";
  if (!made.has(name))
    made.set(
      name,
      Array.from({ length: STEPS }, (_, at) => mixed(name, at / (STEPS - 1))),
    );
  return made.get(name);
}

function mixed(name, share) {
  return name === "dark"
    ? rgbOf(0.25 + 0.59 * share, 0.012 + (0.226 - 0.16 * share) * share)
    : rgbOf(0.965 - 0.6 * share, 0.004 + (0.288 - 0.16 * share) * share);
}

// OKLCH to sRGB at hue 258, after Björn Ottosson (2020), "A perceptual color space for image processing"
function rgbOf(lightness, chroma) {
  const hue = (258 * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((value) => {
    const clamped = Math.min(1, Math.max(0, value));
    return Math.round(255 * (clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055));
  });
}

// The scale of colours as a strip.
function ramp() {
  const steps = Array.from({ length: 48 }, () => element("i"));
  steps.forEach((step, at) => weigh(step, at / 47));
  return element("span.ramp", { "aria-hidden": "true" }, ...steps);
}

/**
 * The colours and what their ends stand for, before other `keys`: `{node, setEnds(least, most), ends()}`; a
 * picture of a view has the same `ends`.
 */
export function createLegend(...keys) {
  const [least, most] = [element("span", "0"), element("span")];
  const node = element("div.legend", element("span.key", least, ramp(), most), ...keys);
  return {
    node,
    setEnds: (from, to) => ([least.textContent, most.textContent] = [from, to]),
    ends: () => ({ least: least.textContent, most: most.textContent }),
  };
}

/** A cell that shows a mark. */
export const sample = (attributes) =>
  element("i", { "aria-hidden": "true", ...attributes, class: `sample ${attributes.class ?? ""}` });

/** How deep the colour of a weight is, 0 to 1, on a scale; `full` is the weight of the deepest. */
export function shareOf(weight, full, scale) {
  if (!(weight > 0) || !(full > 0)) return 0;
  if (scale !== "log") return Math.min(1, weight / full);
  return Math.min(1, Math.max(0.02, 1 + Math.log10(weight / full) / DECADES));
}

/** Powers of ten that a log scale spans. */
export const DECADES = 4;

/** A canvas whose pixels are the buckets of a map; those of zero may be left clear. */
export function pixels({ rows, columns, share }, scale, full, isClear = false) {
  const colours = steps();
  return painted(rows, columns, (row, column) => {
    const value = share(row, column);
    return isClear && value === 0 ? null : colours[Math.round(shareOf(value, full, scale) * (STEPS - 1))];
  });
}

/** A canvas of a pixel a cell, of the `colour(row, column)` as [red, green, blue], or clear where that is null. */
export function painted(rows, columns, colour) {
  const canvas = element("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d", { willReadFrequently: true }); // small and many: not for the graphics card
  const image = pen.createImageData(columns, rows);
  const { data } = image;
  let spot = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, spot += 4) {
      const rgb = colour(row, column);
      if (!rgb) continue;
      for (let part = 0; part < 3; part++) data[spot + part] = rgb[part];
      data[spot + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** Gives a canvas a size in CSS pixels, sharp on any screen; its pen then counts in these. */
export function sized(canvas, width, height) {
  const sharp = devicePixelRatio || 1;
  const [wide, high] = [width, height].map((side) => Math.max(1, Math.round(side * sharp)));
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  return pen;
}

export function largestShare({ rows, columns, share }) {
  let most = 0;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) most = Math.max(most, share(row, column));
  return most;
}

/** The map with at most so many cells along a side: sums over columns, means over rows. */
export function smaller({ rows, columns, share }, side) {
  const [tall, wide] = [rows, columns].map((length) => Math.ceil(length / side));
  const size = [Math.ceil(rows / tall), Math.ceil(columns / wide)];
  const values = new Float32Array(size[0] * size[1]);
  for (let row = 0; row < rows; row++) {
    const height = Math.min(tall, rows - Math.floor(row / tall) * tall);
    const start = Math.floor(row / tall) * size[1];
    for (let column = 0; column < columns; column++)
      values[start + Math.floor(column / wide)] += share(row, column) / height;
  }
  return { rows: size[0], columns: size[1], share: (row, column) => values[row * size[1] + column] };
}

/** The map at a size, on a log scale, so that faint patterns show. */
export function thumbnail(pooled, size) {
  const canvas = pixels(pooled, "log", largestShare(pooled));
  canvas.className = "thumbnail";
  canvas.style.width = `${size}px`;
  canvas.style.height = `${Math.round(Math.max(8, Math.min(size * 2, (size * pooled.rows) / pooled.columns)))}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", t("thumbnail"));
  return canvas;
}

// The one scale of colours: a single blue whose lightness falls evenly with the weight (rises, in
// the dark), in OKLCH. It reads the same to people who see no red, no green, no blue or no colour.
// style.css mixes the same colours for elements; this is for canvases and files.

import { isDark } from "./theme.js";

const STEPS = 256;
const made = new Map();

/** The colour of a share of 0 to 1, as [red, green, blue] of 0 to 255. */
export function colourOf(share) {
  return ramp()[Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1))];
}

/** The same as text. */
export function cssOf(share) {
  const [red, green, blue] = colourOf(share);
  return `rgb(${red},${green},${blue})`;
}

/** Black or white, whichever is read on that colour. */
export function inkOn(share) {
  const [red, green, blue] = colourOf(share);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "#14171b" : "#ffffff";
}

/** Colours of the page by name, for canvases: `ink`, `quiet`, `rule`, `panel`, `accent`, `gold`. */
export function inks() {
  const probe = getComputedStyle(document.documentElement);
  const named = ["ink", "quiet", "rule", "panel", "accent", "gold", "edge", "wash"];
  return Object.fromEntries(named.map((name) => [name, resolved(probe.getPropertyValue(`--${name}`))]));
}

// light-dark() is nothing a canvas understands: the browser works it out on an element.
function resolved(colour) {
  if (!made.has("probe")) {
    const probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
    made.set("probe", probe);
  }
  const probe = made.get("probe");
  probe.style.color = colour;
  return getComputedStyle(probe).color;
}

function ramp() {
  const name = isDark() ? "dark" : "light";
  if (!made.has(name)) made.set(name, Array.from({ length: STEPS }, (_, at) => mixed(name, at / (STEPS - 1))));
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
    const held = Math.min(1, Math.max(0, value));
    return Math.round(255 * (held <= 0.0031308 ? 12.92 * held : 1.055 * held ** (1 / 2.4) - 0.055));
  });
}

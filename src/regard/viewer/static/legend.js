// What colours and marks mean.

import { element, weigh } from "./dom.js";

/** The scale of colours as a strip. */
export function ramp() {
  const steps = Array.from({ length: 48 }, (_, at) => {
    const step = element("i");
    weigh(step, at / 47);
    return step;
  });
  return element("span", { class: "ramp", "aria-hidden": "true" }, ...steps);
}

/** A cell that shows a mark. */
export function sample(attributes) {
  return element("i", { "aria-hidden": "true", ...attributes, class: `sample ${attributes.class ?? ""}` });
}

/** How deep the colour of a weight is, 0 to 1, on a scale; `full` is the weight of the deepest. */
export function shareOf(weight, full, scale) {
  if (!(weight > 0) || !(full > 0)) return 0;
  if (scale !== "log") return Math.min(1, weight / full);
  return Math.min(1, Math.max(0.02, 1 + Math.log10(weight / full) / DECADES));
}

/** Powers of ten that a log scale spans. */
export const DECADES = 4;

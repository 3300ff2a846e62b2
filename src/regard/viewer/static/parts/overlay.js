// The heads of a layer in colours, each switched on and off by a button.

import { button, element, shape } from "../page/dom.js";
import { t } from "../page/language.js";
import { COLOURS, dashOf, headInk } from "../page/palette.js";

/**
 * The heads that a state overlays: all or some of its layer's, or null where one head is shown. In links they are "all",
 * "none", or numbers from 1: "1_4".
 *
 * @param {import("../views/views.js").State} state
 */
export function overlaid({ example, kind, layer, heads }, reader) {
  if (!heads || typeof layer !== "number" || reader.isNamed(example)) return null;
  const offered = reader.heads(example, kind, layer).filter((head) => typeof head === "number");
  if (offered.length < 2) return null;
  const numbers = String(heads).split("_").map(Number);
  return { offered, heads: heads === "all" ? offered : offered.filter((head) => numbers.includes(head + 1)) };
}

/** Where the links of a head stand among those of several: from -1 to 1. */
export const laneOf = (at, count) => (count > 1 ? (2 * at) / (count - 1) - 1 : 0);

/** Some of the heads that are offered, as links have them. */
const namesOf = (heads, offered) =>
  heads.length === offered.length ? "all" : heads.map((head) => head + 1).join("_") || "none";

/**
 * Buttons for heads: `choose({heads})` receives the next choice, `light(head)` the head that is pointed at, or null;
 * `show(overlay)` takes what `overlaid` gives.
 */
export function createOverlay({ choose, light }) {
  const node = element("div.overlay.tools", { role: "group", "aria-label": t("overlay") });

  function show(overlay) {
    node.hidden = !overlay;
    if (!overlay) return node.replaceChildren();
    const { offered, heads } = overlay;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.overlaid;
    const next = (head) => offered.filter((one) => heads.includes(one) !== (one === head));
    const buttons = offered.map((head) => {
      const title = t("head.number", { number: head + 1 });
      return button([swatch(head), String(head + 1)], () => choose({ heads: namesOf(next(head), offered) }), {
        "data-overlaid": head,
        "aria-pressed": String(heads.includes(head)),
        title,
        "aria-label": title,
        onpointerenter: () => light(heads.includes(head) ? head : null),
        onpointerleave: () => light(null),
      });
    });
    const whole = (key) => button(t(key), () => choose({ heads: key }), { "data-overlaid": key });
    node.replaceChildren(...buttons, whole("all"), whole("none"));
    if (focused) /** @type {HTMLElement | null} */ (node.querySelector(`[data-overlaid="${focused}"]`))?.focus();
  }

  return { node, show };
}

/**
 * A switch of colours for the heads of a layer, and the buttons for them: `show(state)` returns what `overlaid` gives,
 * `press()` is a press of the switch, where there are heads for it.
 */
export function createColours({ reader, choose, light }) {
  const { node, show } = createOverlay({ choose, light });
  const onchange = () => choose(colours.checked ? { layer: whole.layer, heads: whole.heads } : { heads: null });
  const colours = element("input", { type: "checkbox", onchange });
  const label = element("label.switch", colours, element("span", t("arcs.heads")));
  let whole = null; // the state in colours

  return {
    node,
    label,
    show: (state) => {
      const layer = state.layer === "mean" ? reader.layers(state.example, state.kind)[0] : state.layer;
      whole = { ...state, heads: "all", layer };
      const overlay = overlaid(state, reader);
      label.hidden = !overlaid(whole, reader);
      colours.checked = overlay !== null;
      show(overlay);
      return overlay;
    },
    press: () => label.hidden || colours.click(),
  };
}

/** The line of a head: its colour and its dashes. */
export function swatch(head) {
  const line = shape("path", { d: "M2 5H22", "stroke-width": 3, "stroke-dasharray": dashOf(head) });
  line.style.stroke = `var(--head-${head % COLOURS})`;
  return shape("svg", { class: "swatch", viewBox: "0 0 24 10", "aria-hidden": "true" }, line);
}

/** The marks of heads in the legend of a picture. */
export const headMarks = (heads) =>
  heads.map((head) => ({
    shapes: [{ path: "M0 8H16", stroke: headInk(head), line: 3, dash: dashOf(head) }],
    text: String(head + 1),
  }));

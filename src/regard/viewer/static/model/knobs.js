// How a language model goes on: greedy or sampled, by temperature, top-k, top-p and seed; and the likeliest next tokens.

import { figure } from "../data/maps.js";
import { button, element, redraw, weigh } from "../page/dom.js";
import { t } from "../page/language.js";

const MOST_SEED = 2 ** 31 - 1;

/** Controls of a continuation; `changed()` follows every change, `goOn(isWhole)` the buttons that write a token or all. */
export function createKnobs({ changed, goOn }) {
  const node = element("div.knobs", { role: "group" });
  const next = element("div.likely");
  /** @type {import("./sampling.js").Sampling} */
  const settings = { temperature: 1, top_k: null, top_p: 1, seed: 0 };
  let isSampled = false;

  function lay() {
    const onchange = () => {
      isSampled = select.selectedIndex === 1;
      lay();
      changed();
      /** @type {HTMLElement} */ (node.querySelector("select")).focus();
    };
    const options = ["greedy", "sampled"].map((name, at) =>
      element("option", { selected: isSampled === Boolean(at) }, t(`typing.${name}`)),
    );
    const select = element("select", { onchange }, ...options);
    node.setAttribute("aria-label", t("typing.continuation"));
    redraw(
      node,
      labelled("typing.continued", select),
      isSampled && slider("temperature", 0.1, 2, 0.1),
      isSampled && number("top_k", 1, t("all")),
      isSampled && slider("top_p", 0.05, 1, 0.05),
      isSampled && number("seed", 0, "0"),
      element(
        "span.tools",
        button(t("typing.one"), () => goOn(false)),
        button(t("typing.whole"), () => goOn(true)),
      ),
    );
  }

  const labelled = (key, ...controls) =>
    element("label", { title: t(`${key}.says`) }, element("span.name", t(key)), ...controls);

  function slider(name, min, max, step) {
    const reading = element("output", String(settings[name]));
    const input = element("input", {
      type: "range",
      ...{ min, max, step, value: settings[name], "data-knob": name },
      oninput: () => {
        settings[name] = Number(input.value);
        reading.textContent = input.value;
        changed();
      },
    });
    return labelled(`typing.${name}`, input, reading);
  }

  // Of top-k no number stands for all tokens.
  function number(name, min, placeholder) {
    const input = element("input", {
      type: "number",
      ...{ min, max: MOST_SEED, step: 1, placeholder, value: settings[name], "data-knob": name },
      oninput: () => {
        const value = Math.trunc(Number(input.value));
        const isFit = input.value !== "" && value >= min && value <= MOST_SEED;
        settings[name] = isFit ? value : name === "seed" ? 0 : null;
        changed();
      },
    });
    return labelled(`typing.${name}`, input);
  }

  /** Lists the next tokens: `[{text, probability, chance}]`, the chance after the knobs. */
  function list(tokens) {
    next.hidden = !tokens.length;
    const items = tokens.map(({ text, probability, chance }) => {
      const bar = element("i", { "aria-hidden": "true" });
      weigh(bar, isSampled ? chance : probability);
      return element(
        "li",
        { class: isSampled && chance === 0 ? "out" : null },
        element("bdi", text.trim() ? text : JSON.stringify(text)),
        bar,
        element("data", { value: probability }, figure(probability, 3)),
        isSampled && element("data.chance", { value: chance }, figure(chance, 3)),
      );
    });
    next.replaceChildren(
      element("span.name", t(isSampled ? "typing.next.sampled" : "typing.next.greedy")),
      element("ol", { class: isSampled ? "sampled" : null }, ...items),
    );
  }

  return { node, next, lay, list, sampling: () => (isSampled ? settings : null) };
}

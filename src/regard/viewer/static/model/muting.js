// Heads to mute or to scale, a button for each; and the answers without and with that, side by side.

import { figure, layerName, signed } from "../data/maps.js";
import { layersIn } from "../data/contents.js";
import { button, element, redraw } from "../page/dom.js";
import { addStrings, listed, t } from "../page/language.js";
import { TYPING } from "./phrases.js";

addStrings(TYPING);

const MOST = 5; // labels and next tokens that are listed

/** The attentions of an example: `[{kind, layer, heads: [0, 1, …]}, …]`. */
export function attentionsOf(example) {
  const layers = layersIn(example).map(({ kind, layer, heads }) => ({
    kind,
    layer,
    heads: heads.filter((head) => head !== "mean"),
  }));
  return layers.filter(({ heads }) => heads.length);
}

/**
 * A panel that opens to a row of buttons for each layer of `attentions`; a pressed one is chosen.
 * `changed()` follows every change. With `scales`, a factor replaces muting.
 *
 * - `chosen`: the keys of the chosen heads, such as "cross 0 3": kind, layer, head.
 * - `edits()`: the same as a server takes them, by layer; null of none.
 */
export function createMuting({ attentions = [], scales = false, changed }) {
  const chosen = new Set();
  const rows = element("div.mutes");
  const node = element("details.muting");
  let offered = attentions;
  let factor = 0;

  function draw() {
    const key = scales ? "typing.scale" : "typing.mute";
    node.hidden = !offered.length;
    const says = element("p.caption", t(`${key}.says`));
    redraw(node, element("summary", t(key)), says, scales && choiceOfFactor(), rows);
    drawRows();
  }

  function drawRows() {
    const layers = offered.map(({ kind, layer, heads }) => {
      const where = listed([t("kind.attention", { kind: t(`kind.${kind}`) }), layerName(layer)]);
      const buttons = heads.map((head) => {
        const key = `${kind} ${layer} ${head}`;
        const title = listed([where, t("head.number", { number: head + 1 })]);
        const isChosen = String(chosen.has(key));
        const attributes = { "aria-pressed": isChosen, "aria-label": title, title, "data-head": key };
        return button(String(head + 1), () => toggle([key]), attributes);
      });
      const keys = buttons.map((one) => one.dataset.head);
      const ofAll = { class: "plain", "data-head": `${kind} ${layer}`, "aria-label": listed([where, t("all")]) };
      return element(
        "div.mute",
        { role: "group", "aria-label": where },
        element("span.name", where),
        element("span.row", ...buttons),
        heads.length > 1 && button(t("all"), () => toggle(keys), ofAll),
      );
    });
    const isWhole = chosen.size === 0;
    const clear = button(t("typing.unmute"), () => toggle([...chosen]), { class: "clear", disabled: isWhole });
    rows.replaceChildren(...layers, element("div.tools", clear));
    node.classList.toggle("scaled", factor !== 0);
  }

  function choiceOfFactor() {
    const reading = element("output", String(factor));
    const range = element("input", {
      type: "range",
      min: 0,
      max: 2,
      step: 0.1,
      value: factor,
      oninput: () => (reading.textContent = range.value),
      onchange: () => {
        factor = Number(range.value);
        drawRows();
        if (chosen.size) changed();
      },
    });
    return element("label.factor", element("span.name", t("typing.factor")), range, reading);
  }

  /** Chooses heads, or lets them go where all of them are chosen. */
  function toggle(keys) {
    const areAll = keys.every((key) => chosen.has(key));
    for (const key of keys) chosen[areAll ? "delete" : "add"](key);
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.head;
    drawRows();
    if (focused) /** @type {HTMLElement} */ (rows.querySelector(`[data-head="${focused}"]`)).focus();
    changed();
  }

  /** Offers the heads of another model; those that it has not are let go of. */
  function offer(next) {
    if (JSON.stringify(next) === JSON.stringify(offered)) return;
    offered = next;
    const keys = next.flatMap(({ kind, layer, heads }) => heads.map((head) => `${kind} ${layer} ${head}`));
    for (const key of chosen) if (!keys.includes(key)) chosen.delete(key);
    draw();
  }

  /** Chooses heads and a factor that a link names. */
  function restore(keys, nextFactor) {
    chosen.clear();
    for (const key of keys) chosen.add(key);
    factor = nextFactor;
    node.open ||= chosen.size > 0;
    draw();
  }

  function edits() {
    const layers = new Map();
    for (const key of chosen) {
      const [kind, layer, head] = key.split(" ");
      const name = `${kind} ${layer}`;
      if (!layers.has(name)) layers.set(name, { kind, layer: Number(layer), heads: [], factor });
      layers.get(name).heads.push(Number(head));
    }
    return layers.size ? [...layers.values()] : null;
  }

  const nameOfAfter = () => t(factor ? "typing.scaled" : "typing.after", { factor: String(factor) });

  return { node, chosen, draw, toggle, offer, restore, edits, factor: () => factor, nameOfAfter };
}

/** One answer under its name: `nodes`, and the shares of `next` tokens or of `labels`. */
export function answerOf(name, nodes, { next, labels, score = null, nextName = "typing.next" }, language) {
  const entries = next?.length ? next : (labels ?? []);
  const likeliest = entries.slice(0, MOST).map(([text, share]) => {
    const name = element("bdi", text.trim() ? text : JSON.stringify(text));
    return element("span", name, " ", element("data", { value: share }, figure(share, 3)));
  });
  const heading = next?.length > 0 && element("span.name", t(nextName));
  return element(
    "div",
    name && element("span.name", name),
    nodes.length && element("p", { lang: language }, ...nodes),
    likeliest.length && element("div.nexts", heading, ...likeliest),
    score !== null && element("p.hint", `${t("score")} ${signed(score)} · ${t("score.says")}`),
  );
}

// What each layer would predict: a row for each position, a column for each layer, the likeliest
// token in each cell.

import { element, section, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { figure, nameOf, stepIn } from "../data/maps.js";
import { entryOf } from "../parts/looking.js";

export const lens = {
  id: "lens",
  needs: () => true,
  controls: ["example"],
  applies: ({ reader }, at) => Boolean(reader.exampleAt(at).lens),
  create,
};

function create(host, { reader, choose, languages }) {
  const aside = element("aside", { class: "readout", "aria-label": t("lens.top"), "aria-live": "polite" });
  const table = element("table", { class: "lens" });
  host.append(section(t("lens"), null, element("p", { class: "caption" }, t("lens.caption")), element("div", { class: "split wide" }, element("div", { class: "frame" }, table), aside)));
  let built = -1;
  let found = null; // {words, layers, positions, most, top(layer, position)}
  let tongue = null;
  let chosen = null; // [position, layer]

  table.addEventListener("click", (event) => pick(event.target.closest("button")));
  table.addEventListener("focusin", (event) => pick(event.target.closest("button")));
  table.addEventListener("keydown", walk);

  async function show(state) {
    const example = reader.exampleAt(state.example);
    if (built !== state.example) {
      built = state.example;
      tongue = languages(state.example)[example.output_tokens.length ? "output" : "source"];
      found = await readingOf(example.lens, reader.open);
      build(example);
    }
    const [position, layer] = [state.at, state.by].map((number) => (number === undefined ? NaN : Number(number) - 1));
    tell(found.holds(position, layer) ? [position, layer] : [found.first + found.positions - 1, found.layers - 1]);
  }

  function build(example) {
    const isSource = !example.output_tokens.length;
    const tokens = isSource ? example.source_tokens : example.output_tokens;
    const { ahead } = example.lens;
    const isRead = ahead > 0 || !isSource; // a token is read before another is predicted
    const before = (at) => (ahead ? tokens[at] : at ? tokens[at - 1] : { text: t("start"), start: 0, end: 0 });
    const head = [...(isRead ? [t("lens.read")] : []), t(isRead ? "lens.next" : "lens.token"), ...Array.from({ length: found.layers }, (_, at) => String(at + 1))];
    const rows = Array.from({ length: found.positions }, (_, row) => {
      const at = found.first + row;
      const next = tokens[at + ahead];
      const cells = Array.from({ length: found.layers }, (_, layer) => {
        const [{ word, chance }] = found.top(layer, at);
        const button = element("button", { type: "button", "data-at": at, "data-by": layer, class: next && found.isSame(word, next.text) ? "shaded hit" : "shaded", "aria-label": t("lens.cell", { place: at + 1, layer: layer + 1, token: nameOf({ text: word }), chance: figure(chance, 3) }) }, tokenLabel({ text: word, start: 0, end: 1 }, tongue), element("small", {}, figure(chance, 2)));
        weigh(button, chance);
        return element("td", {}, button);
      });
      const names = [...(isRead ? [before(at)] : []), next ?? null];
      return element("tr", {}, ...names.map((token) => element("th", { scope: "row" }, token ? tokenLabel(token, tongue) : "?")), ...cells);
    });
    const spans = element("tr", {}, element("td", { colspan: isRead ? 2 : 1 }), element("th", { colspan: found.layers, scope: "colgroup" }, t("keys.layer")));
    table.replaceChildren(
      element("caption", {}, found.first ? t("lens.last", { count: found.positions, all: tokens.length }) : ""),
      element("thead", {}, spans, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows),
    );
    for (const [at, button] of [...table.querySelectorAll("button")].entries()) button.tabIndex = at ? -1 : 0;
  }

  const buttonOf = ([at, by]) => table.querySelector(`button[data-at="${at}"][data-by="${by}"]`);

  function pick(button) {
    if (!button) return;
    const place = [Number(button.dataset.at), Number(button.dataset.by)];
    if (chosen && place.every((number, axis) => number === chosen[axis])) return;
    choose({ at: String(place[0] + 1), by: String(place[1] + 1) });
  }

  function tell(place) {
    if (chosen && buttonOf(chosen)) {
      buttonOf(chosen).tabIndex = -1;
      buttonOf(chosen).removeAttribute("aria-current");
    }
    chosen = place;
    const button = buttonOf(chosen);
    button.tabIndex = 0;
    button.setAttribute("aria-current", "true");
    const items = found.top(chosen[1], chosen[0]).map(({ word, chance }) => entryOf([tokenLabel({ text: word, start: 0, end: 1 }, tongue)], chance, chance));
    aside.replaceChildren(element("h3", {}, t("lens.where", { place: chosen[0] + 1, layer: chosen[1] + 1 })), element("ol", {}, ...items), element("p", { class: "hint" }, t("lens.point")));
  }

  function walk(event) {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("button")]);
    const next = stepIn(rows, event.target, event);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  return {
    show,
    focus: () => chosen && buttonOf(chosen).focus(),
    table: () => ({
      columns: ["place", "layer", "rank", "token", "probability"],
      rows: Array.from({ length: found.positions }, (_, row) => found.first + row).flatMap((at) =>
        Array.from({ length: found.layers }, (_, layer) => found.top(layer, at).map(({ word, chance }, rank) => [at + 1, layer + 1, rank + 1, word, chance])).flat(),
      ),
    }),
  };
}

async function readingOf({ words, tokens, probabilities, first = 0 }, open) {
  const [ids, chances] = await Promise.all([open(tokens), open(probabilities)]);
  const [layers, positions, most] = ids.shape;
  const top = (layer, at) => {
    const start = (layer * positions + at - first) * most;
    return Array.from({ length: most }, (_, rank) => ({ word: words[ids.get(start + rank)], chance: chances.get(start + rank) }));
  };
  const bare = (text) => text.replaceAll(/[▁Ġ\s]/g, "");
  return {
    layers, positions, first, top,
    holds: (at, layer) => at >= first && at < first + positions && layer >= 0 && layer < layers,
    isSame: (word, text) => bare(word) !== "" && bare(word) === bare(text),
  };
}

// What each layer would predict: a row for each position, a column for each layer, the likeliest
// token in each cell.

import { element, section, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { figure, nameOf, stepIn } from "../data/maps.js";
import { entryOf } from "../parts/attention.js";
import { textAt, textWidth } from "../page/exporting.js";
import { cssOf, inkOn, inks } from "../page/palette.js";

/** @type {import("./views.js").ViewType} */
export const lens = {
  id: "lens",
  needs: () => true,
  controls: ["example"],
  applies: ({ reader }, at) => Boolean(reader.exampleAt(at).lens),
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, { reader, choose, languages }) {
  const aside = element("aside.readout", { "aria-label": t("lens.top"), "aria-live": "polite" });
  const table = element("table.lens");
  host.append(
    section(
      t("lens"),
      element("p.caption", t("lens.caption")),
      element("div.split.wide", element("div.frame", table), aside),
    ),
  );
  let built = -1;
  let predictions = null; // {words, layers, positions, most, top(layer, position)}
  let language = null;
  let chosen = null; // [position, layer]

  const buttonUnder = (event) => /** @type {HTMLElement} */ (event.target).closest("button");
  table.addEventListener("click", (event) => pick(buttonUnder(event)));
  table.addEventListener("focusin", (event) => pick(buttonUnder(event)));
  table.addEventListener("keydown", walk);

  async function show(state) {
    const example = reader.exampleAt(state.example);
    if (built !== state.example) {
      built = state.example;
      language = languages(state.example)[example.output_tokens.length ? "output" : "source"];
      predictions = await readLens(example.lens, reader.open);
      build(example);
    }
    const [position, layer] = [state.at, state.by].map((number) => (number === undefined ? NaN : Number(number) - 1));
    select(
      predictions.holds(position, layer)
        ? [position, layer]
        : [predictions.first + predictions.positions - 1, predictions.layers - 1],
    );
  }

  function build(example) {
    const isSource = !example.output_tokens.length;
    const tokens = isSource ? example.source_tokens : example.output_tokens;
    const { ahead } = example.lens;
    const isRead = ahead > 0 || !isSource; // a token is read before another is predicted
    const before = (at) => (ahead ? tokens[at] : at ? tokens[at - 1] : { text: t("start"), start: 0, end: 0 });
    const { layers, positions, first } = predictions;
    const numbers = Array.from({ length: layers }, (_, at) => String(at + 1));
    const head = [isRead && t("lens.read"), t(isRead ? "lens.next" : "part.token"), ...numbers].filter(Boolean);
    const rows = Array.from({ length: positions }, (_, row) => {
      const at = first + row;
      const next = tokens[at + ahead];
      const named = (token) => element("th", { scope: "row" }, token ? tokenLabel(token, language) : "?");
      const cells = numbers.map((_, layer) => element("td", cellOf(at, layer, next)));
      return element("tr", isRead && named(before(at)), named(next), ...cells);
    });
    const spans = element(
      "tr",
      element("td", { colspan: isRead ? 2 : 1 }),
      element("th", { colspan: layers, scope: "colgroup" }, t("keys.layer")),
    );
    table.replaceChildren(
      element("caption", first > 0 && t("lens.last", { count: positions, all: tokens.length })),
      element("thead", spans, element("tr", ...head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", ...rows),
    );
    for (const [at, cell] of [...table.querySelectorAll("button")].entries()) cell.tabIndex = at ? -1 : 0;
  }

  function cellOf(at, layer, next) {
    const [{ word, chance }] = predictions.top(layer, at);
    const says = { position: at + 1, layer: layer + 1, token: nameOf({ text: word }), chance: figure(chance, 3) };
    const cell = element(
      next && predictions.isSame(word, next.text) ? "button.shaded.hit" : "button.shaded",
      { type: "button", "data-at": at, "data-by": layer, "aria-label": t("lens.cell", says) },
      tokenLabel({ text: word, start: 0, end: 1 }, language),
      element("small", figure(chance, 2)),
    );
    weigh(cell, chance);
    return cell;
  }

  /** @type {(cell: number[]) => HTMLButtonElement} */
  const buttonOf = ([at, by]) => table.querySelector(`button[data-at="${at}"][data-by="${by}"]`);

  function pick(button) {
    if (!button) return;
    const cell = [Number(button.dataset.at), Number(button.dataset.by)];
    if (chosen && cell.every((number, axis) => number === chosen[axis])) return;
    choose({ at: String(cell[0] + 1), by: String(cell[1] + 1) });
  }

  function select(cell) {
    if (chosen && buttonOf(chosen)) {
      buttonOf(chosen).tabIndex = -1;
      buttonOf(chosen).removeAttribute("aria-current");
    }
    chosen = cell;
    const button = buttonOf(chosen);
    button.tabIndex = 0;
    button.setAttribute("aria-current", "true");
    const items = predictions
      .top(chosen[1], chosen[0])
      .map(({ word, chance }) => entryOf([tokenLabel({ text: word, start: 0, end: 1 }, language)], chance, chance));
    aside.replaceChildren(
      element("h3", t("lens.where", { position: chosen[0] + 1, layer: chosen[1] + 1 })),
      element("ol", ...items),
      element("p.hint", t("lens.point")),
    );
  }

  function walk(event) {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("button")]);
    const next = stepIn(rows, event.target, event);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  // The cells of the table, each over the colour of its chance; of an underlined one a line.
  function picture() {
    const { ink, quiet, gold } = inks();
    const [wide, high] = [92, 26];
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells]);
    const names = rows.map((row) =>
      row.filter(({ tagName }) => tagName === "TH").map(({ textContent }) => textContent),
    );
    const left = 16 + Math.max(...names.map((texts) => textWidth(texts.join("  "), 13)));
    /** @type {import("../page/exporting.js").Shape[]} */
    const shapes = Array.from({ length: predictions.layers }, (_, layer) =>
      textAt(String(layer + 1), [left + wide * (layer + 0.5), 14], 11, quiet, "middle"),
    );
    rows.forEach((row, at) => {
      const top = 22 + high * at;
      shapes.push(textAt(names[at].join("  "), [left - 8, top + 17], 13, ink, "end"));
      row
        .flatMap((cell) => [...cell.querySelectorAll("button")])
        .forEach((button, layer) => {
          const [{ word, chance }] = predictions.top(layer, predictions.first + at);
          const [x, fill] = [left + wide * layer, inkOn(chance)];
          shapes.push({ rect: [x + 1, top + 1, wide - 2, high - 2], fill: cssOf(chance) });
          if (button.classList.contains("hit")) shapes.push({ rect: [x + 4, top + high - 5, wide - 8, 2], fill: gold });
          shapes.push(textAt(shortened(nameOf({ text: word }), wide - 38), [x + 6, top + 17], 12, fill));
          shapes.push(textAt(figure(chance, 2), [x + wide - 6, top + 17], 10, fill, "end"));
        });
    });
    return {
      width: left + wide * predictions.layers + 8,
      height: 30 + high * rows.length,
      shapes,
      legend: { least: "0", most: "1", notes: [t("lens.caption")] },
    };
  }

  return {
    show,
    picture,
    focus: () => chosen && buttonOf(chosen).focus(),
    table: () => ({
      columns: ["position", "layer", "rank", "token", "probability"],
      rows: Array.from({ length: predictions.positions }, (_, row) => predictions.first + row).flatMap((at) =>
        Array.from({ length: predictions.layers }, (_, layer) =>
          predictions.top(layer, at).map(({ word, chance }, rank) => [at + 1, layer + 1, rank + 1, word, chance]),
        ).flat(),
      ),
    }),
  };
}

function shortened(text, room) {
  const signs = [...text];
  while (signs.length > 1 && textWidth(`${signs.join("")}…`, 12) > room) signs.pop();
  return signs.length === [...text].length ? text : `${signs.join("")}…`;
}

async function readLens({ words, tokens, probabilities, first = 0 }, open) {
  const [ids, chances] = await Promise.all([open(tokens), open(probabilities)]);
  const [layers, positions, most] = ids.shape;
  const top = (layer, at) => {
    const start = (layer * positions + at - first) * most;
    return Array.from({ length: most }, (_, rank) => ({
      word: words[ids.get(start + rank)],
      chance: chances.get(start + rank),
    }));
  };
  const bare = (text) => text.replaceAll(/[▁Ġ\s]/g, "");
  return {
    layers,
    positions,
    first,
    top,
    holds: (at, layer) => at >= first && at < first + positions && layer >= 0 && layer < layers,
    isSame: (word, text) => bare(word) !== "" && bare(word) === bare(text),
  };
}

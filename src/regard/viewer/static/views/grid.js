// All heads at once: layers down, heads across, coloured by one number each.

import { element, radios, section, weigh } from "../page/dom.js";
import { columnText } from "../page/exporting.js";
import { named, t } from "../page/language.js";
import { figure, stepIn } from "../data/maps.js";
import { createLegend, cssOf, inkOn, inks, largestShare, pixels, smaller, thumbnail } from "../page/palette.js";

const SHARES = [
  "confidence",
  "first",
  "previous",
  "next",
  "same",
  "duplicate",
  "induction",
  "diagonal",
  "punctuation",
  "alignment_error",
];
const MEASURES = ["entropy", "distance", ...SHARES];
const MAP = "map"; // instead of a measure: the heads' maps themselves
const LAYERS = "layers"; // the order of maps that is no measure
const WITH_FIGURES = 27; // pixels of a cell that has room for its number
const SMALL = 32; // buckets along a side of a map in a cell

/** @type {import("./views.js").ViewType} */
export const grid = {
  id: "grid",
  controls: ["example"],
  applies: ({ reader }, example) => reader.headCount(example) > 1,
  create,
};

/**
 * @param {HTMLElement} host
 * @param {import("./views.js").Context} context
 * @returns {import("./views.js").Instance}
 */
function create(host, { reader, choose, say }) {
  const strip = element("div", { class: "strip", role: "radiogroup", "aria-label": t("grid.measure") });
  const sorting = element("select", { id: "order", onchange: () => choose({ order: sorting.value }) });
  const orders = element("label", { class: "switch", for: "order" }, t("grid.order"), sorting);
  const caption = element("p", { class: "caption" });
  const tables = element("div", { class: "grids" });
  const aside = element("aside", { class: "readout head", "aria-label": t("group.head") });
  const nameOfKind = (kind) => reader.kindName(state.example, kind);
  const legend = createLegend();
  host.append(
    section(t("grid"), strip, orders, caption, element("div", { class: "split" }, tables, aside), legend.node),
  );
  let state = null;
  let built = "";
  let measure = "entropy";
  let names = [];
  let kinds = []; // {kind, measured, cells}
  let turn = 0;
  let painting = 0;
  let order = LAYERS;
  let laid = ""; // what the tables were made for

  async function show(next) {
    state = next;
    if (built !== String(state.example)) await build();
    measure = [...names, MAP].includes(state.measure) ? state.measure : names[0];
    const wanted = measure === MAP && names.includes(state.order) ? state.order : LAYERS;
    host.classList.toggle("maps", measure === MAP);
    if (wanted !== order || laid !== measure) lay(wanted);
    await paint();
    if (!aside.querySelector("h3")) await previewSharpest();
  }

  // Until one is pointed at: the head whose rows are spread the least.
  async function previewSharpest() {
    const all = heads();
    const spread = ({ measures: { entropy } }) => (isNumber(entropy) ? entropy : Infinity);
    const sharpest = all.reduce((best, one) => (spread(one) < spread(best) ? one : best), all[0]);
    if (!sharpest) return;
    await preview(sharpest);
    aside.append(element("p", { class: "hint" }, t("grid.point")));
  }

  async function build() {
    built = String(state.example);
    kinds = [];
    for (const kind of reader.kinds(state.example))
      kinds.push({ kind, measured: await reader.measures(state.example, kind) });
    const given = new Set(kinds.flatMap(({ measured }) => measured.flatMap((one) => Object.keys(one.measures))));
    names = [...MEASURES.filter((name) => given.has(name)), ...[...given].filter((name) => !MEASURES.includes(name))];
    strip.replaceChildren(
      ...radios(
        "measure",
        [...names, MAP].map((name) => [name, titleOf(name)]),
        measure,
        (name) => choose({ measure: name }),
      ),
    );
    sorting.replaceChildren(...[LAYERS, ...names].map((name) => element("option", { value: name }, titleOf(name))));
    laid = "";
    aside.replaceChildren();
  }

  function lay(wanted) {
    order = wanted;
    laid = measure;
    orders.hidden = measure !== MAP;
    tables.replaceChildren(...kinds.map(tableOf));
  }

  // Rows of the table: a layer's heads, or as many of those with the most.
  function rowsOf({ measured }, heads) {
    if (order === LAYERS) {
      const layers = [...new Set(measured.map(({ layer }) => layer))];
      const at = (layer, head) => measured.find((one) => one.layer === layer && one.head === head);
      return layers.map((layer) => [String(layer + 1), heads.map((head) => at(layer, head))]);
    }
    const value = ({ measures }) => (isNumber(measures[order]) ? measures[order] : -Infinity);
    const sorted = measured.toSorted((one, other) => value(other) - value(one));
    const starts = sorted.flatMap((_, at) => (at % heads.length ? [] : [at]));
    return starts.map((at) => ["", sorted.slice(at, at + heads.length)]);
  }

  function tableOf(group) {
    const heads = [...new Set(group.measured.map(({ head }) => head))];
    const reserved = host.clientWidth > 900 ? 490 : 130; // the preview, and the layers' numbers
    const room = Math.min(760, host.clientWidth - reserved);
    const size = Math.max(15, Math.min(measure === MAP ? 64 : 48, Math.floor(room / heads.length) - 3));
    group.cells = new Map();
    const row = ([name, cells]) =>
      element(
        "tr",
        {},
        name ? element("th", { scope: "row" }, name) : element("td", {}),
        ...cells.map((one) => (one ? element("td", { role: "gridcell" }, cellOf(group, one)) : element("td", {}))),
      );
    const corner = element("td", { class: "corner" }, t(order === LAYERS ? "grid.corner" : "grid.sorted"));
    const titles =
      order === LAYERS
        ? heads.map((head) =>
            element(
              "th",
              { scope: "col", class: reader.isNamed(state.example) ? "named" : null },
              element("span", {}, reader.headOption(state.example, head)),
            ),
          )
        : [];
    const table = element(
      "table",
      {
        class: "heads",
        role: "grid",
        "data-kind": group.kind,
        "aria-label": t("grid.table", { kind: nameOfKind(group.kind) }),
        onkeydown: walk,
      },
      element("thead", {}, element("tr", {}, corner, ...titles)),
      element("tbody", {}, ...rowsOf(group, heads).map(row)),
    );
    table.style.setProperty("--cell", `${size}px`);
    table.classList.toggle("figures", size >= WITH_FIGURES);
    return element(
      "div",
      {},
      kinds.length > 1 ? element("h3", {}, nameOfKind(group.kind)) : "",
      element("div", { class: "frame" }, table),
    );
  }

  function cellOf(group, one) {
    const { layer, head } = one;
    const view = { ...one, kind: group.kind };
    const cell = element("button", {
      type: "button",
      class: "cell",
      tabindex: group.cells.size ? "-1" : "0",
      "data-layer": layer,
      "data-head": head,
      onclick: () => openHead(view),
      onpointerenter: () => preview(view),
      onfocus: () => preview(view),
    });
    group.cells.set(`${layer} ${head}`, cell);
    return cell;
  }

  function openHead({ kind, layer, head }) {
    choose({ kind, layer, head, view: "head", row: null, column: null });
  }

  // Every head with its cell, where it is in words, and the figure of the chosen measure.
  const heads = () =>
    kinds.flatMap(({ kind, measured, cells }) =>
      measured.map((one) => ({
        ...one,
        kind,
        cell: cells.get(`${one.layer} ${one.head}`),
        value: one.measures[measure],
        where: reader.fullName({ example: state.example, kind, layer: one.layer, head: one.head }),
      })),
    );

  // The colours say how the heads of all kinds compare, from the least value to the largest.
  function paint() {
    for (const input of strip.querySelectorAll("input")) input.checked = input.value === measure;
    sorting.value = order;
    const isMap = measure === MAP;
    legend.node.hidden = isMap;
    painting += 1;
    if (isMap) return paintMaps(painting);
    const [low, high] = rangeOf(heads(), measure);
    legend.setEnds(figure(low, 3), `${figure(high, 3)} ${unitOf(measure)}`);
    caption.textContent = MEASURES.includes(measure) ? t(`grid.${measure}`) : "";
    for (const { where, cell, value, measures } of heads()) {
      const text = isNumber(value) ? figure(value, 3) : t("none");
      weigh(cell, isNumber(value) && high > low ? (value - low) / (high - low) : 0);
      cell.classList.toggle("missing", !isNumber(value));
      cell.textContent = isNumber(value) ? short(value) : "–";
      cell.setAttribute("aria-label", t("grid.cell", { where, measure: titleOf(measure), value: text }));
      cell.title = `${where}\n${describe(measures)}`;
    }
  }

  // Each head's map in its cell, on a scale of its own; those of a later choice stop these.
  async function paintMaps(mine) {
    caption.textContent = t("grid.map");
    const { example } = state;
    const all = heads();
    const maps = await Promise.all(all.map(({ kind, layer, head }) => reader.pooled({ example, kind, layer, head })));
    if (mine !== painting) return;
    all.forEach(({ where, layer, head, measures, cell }, at) => {
      const small = maps[at] && smaller(maps[at], SMALL);
      cell.classList.toggle("missing", !small);
      cell.replaceChildren(small ? pixels(small, "log", largestShare(small)) : "–");
      if (order !== LAYERS) cell.append(element("span", {}, `${layer + 1}·${reader.headOption(example, head)}`));
      cell.setAttribute(
        "aria-label",
        t("grid.cell", { where, measure: titleOf(MAP), value: describe(measures).replaceAll("\n", ", ") }),
      );
      cell.title = `${where}\n${describe(measures)}`;
    });
  }

  async function preview({ kind, layer, head, measures }) {
    const mine = ++turn;
    const view = { example: state.example, kind, layer, head };
    const pooled = await reader.pooled(view);
    if (mine !== turn) return;
    const list = Object.entries(measures).map(([name, value]) =>
      element(
        "div",
        {},
        element("dt", {}, titleOf(name)),
        element("dd", {}, isNumber(value) ? `${figure(value, 3)} ${unitOf(name)}` : t("none")),
      ),
    );
    const { axisNames } = reader.axes({ example: state.example, kind });
    aside.replaceChildren(
      element("h3", {}, reader.fullName(view, " · ")),
      pooled ? thumbnail(pooled, 200) : element("p", { class: "hint" }, t("grid.no-map")),
      pooled ? element("p", { class: "hint" }, t("grid.axes", axisNames)) : "",
      element("dl", { class: "measures" }, ...list),
      storedNote(view),
    );
  }

  // Of long texts: whether arcs can be drawn of the head.
  function storedNote(view) {
    const stored = reader.storedCount(view);
    if (stored === Infinity || reader.canFetch) return "";
    return element(
      "p",
      { class: "hint" },
      t(`grid.stored.${stored === 0 ? "none" : stored === 1 ? "one" : "many"}`, { count: stored }),
    );
  }

  function walk(event) {
    const rows = [...tables.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("button")]);
    const next = stepIn(rows, event.target, event);
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    say(next.getAttribute("aria-label"));
  }

  function picture() {
    const { ink, quiet } = inks();
    const size = 40;
    const shapes = [];
    let [top, width] = [8, 0];
    const every = heads();
    for (const { kind, measured, cells: kindCells } of kinds) {
      const layers = [...new Set(measured.map(({ layer }) => layer))];
      const across = [...new Set(measured.map(({ head }) => head))];
      shapes.push({
        text: t("grid.drawn", { kind: nameOfKind(kind), measure: titleOf(measure) }),
        at: [8, top + 16],
        size: 14,
        fill: ink,
        bold: true,
      });
      const names = across.map((head) => reader.headOption(state.example, head));
      top += reader.isNamed(state.example) ? 6 * Math.max(...names.map((name) => name.length)) : 0;
      names.forEach((text, at) => {
        const [x, y] = [40 + size * (at + 0.5), top + 40];
        shapes.push(
          ...(reader.isNamed(state.example)
            ? columnText(text, [x, y], { size: 11, fill: quiet })
            : [{ text, at: [x, y], size: 11, fill: quiet, anchor: "middle" }]),
        );
      });
      layers.forEach((layer, at) =>
        shapes.push({
          text: String(layer + 1),
          at: [32, top + 48 + size * (at + 0.6)],
          size: 11,
          fill: quiet,
          anchor: "end",
        }),
      );
      const [low, high] = rangeOf(every, measure);
      for (const { layer, head, measures } of measured) {
        const value = measures[measure];
        const map = measure === MAP && kindCells.get(`${layer} ${head}`)?.querySelector("canvas");
        if (map)
          shapes.push({
            image: map,
            at: [41 + size * across.indexOf(head), top + 49 + size * layers.indexOf(layer), size - 2, size - 2],
          });
        if (!isNumber(value)) continue;
        const share = high > low ? (value - low) / (high - low) : 0;
        const [x, y] = [40 + size * across.indexOf(head), top + 48 + size * layers.indexOf(layer)];
        shapes.push({ rect: [x + 1, y + 1, size - 2, size - 2], fill: cssOf(share) });
        shapes.push({
          text: short(value),
          at: [x + size / 2, y + size / 2 + 4],
          size: 11,
          fill: inkOn(share),
          anchor: "middle",
        });
      }
      width = Math.max(width, 48 + size * across.length);
      top += 64 + size * layers.length;
    }
    return {
      width: Math.max(width, 280),
      height: top,
      shapes,
      legend: { ...(measure === MAP ? {} : legend.ends()), notes: [caption.textContent] },
    };
  }

  return {
    show,
    focus: () => [...tables.querySelectorAll("button")].find((button) => button.tabIndex === 0)?.focus(),
    fit: paint,
    picture,
    table: () => ({
      columns: ["kind", "layer", "head", ...names],
      rows: kinds.flatMap(({ kind, measured }) =>
        measured.map(({ layer, head, measures }) => [
          kind,
          layer + 1,
          head === "mean" ? head : head + 1,
          ...names.map((name) => measures[name]),
        ]),
      ),
    }),
  };
}

function describe(measures) {
  return Object.entries(measures)
    .map(([name, value]) =>
      t("token.weight", { token: titleOf(name), weight: isNumber(value) ? figure(value, 3) : t("none") }),
    )
    .join("\n");
}

// From nothing where values come near it, else from the least of them, so that they differ in colour;
// shares of less than a hundredth are all small.
function rangeOf(heads, measure) {
  const values = heads.map(({ value }) => value).filter(isNumber);
  if (!values.length) return [0, 1];
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), SHARES.includes(measure) ? 0.01 : 0);
  return [low > high / 2 ? low : 0, high];
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function short(value) {
  return Math.abs(value) >= 100
    ? String(Math.round(value))
    : Math.abs(value) >= 10
      ? value.toFixed(1)
      : value.toFixed(2).replace(/^0\./, ".");
}

const titleOf = (name) => named("measure", name);
const unitOf = (name) => (["entropy", "distance"].includes(name) ? t(`unit.${name}`) : "");

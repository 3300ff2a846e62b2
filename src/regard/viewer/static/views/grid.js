// All heads at once: layers down, heads across, coloured by one number each.

import { button, element, namedValues, radios, redraw, sectionWith, weigh } from "../page/dom.js";
import { columnText, textAt } from "../page/exporting.js";
import { named, t } from "../page/language.js";
import { figure, stepIn } from "../data/maps.js";
import { createLegend, cssOf, inkOn, inks, largestShare, pixels, smaller, thumbnail } from "../page/palette.js";

const SHARES = "confidence,first,previous,next,same,duplicate,induction,diagonal,punctuation,alignment_error".split(
  ",",
);
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

/** @type {import("./views.js").ViewType["create"]} */
function create(host, { reader, choose, say }) {
  const strip = element("div.strip", { role: "radiogroup", "aria-label": t("grid.measure") });
  const sorting = element("select", { id: "order", onchange: () => choose({ order: sorting.value }) });
  const orders = element("label.switch", { for: "order" }, t("grid.order"), sorting);
  const caption = element("p.caption");
  const tables = element("div.grids");
  const aside = element("aside.readout.head", { "aria-label": t("group.head") });
  const nameOfKind = (kind) => reader.kindName(state.example, kind);
  const legend = createLegend();
  host.append(sectionWith(strip, t("grid"), orders, caption, element("div.split", tables, aside), legend.node));
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
    aside.append(element("p.hint", t("grid.point")));
  }

  async function build() {
    built = String(state.example);
    kinds = [];
    for (const kind of reader.kinds(state.example))
      kinds.push({ kind, measured: await reader.measures(state.example, kind) });
    const given = new Set(kinds.flatMap(({ measured }) => measured.flatMap((one) => Object.keys(one.measures))));
    names = [...MEASURES.filter((name) => given.has(name)), ...[...given].filter((name) => !MEASURES.includes(name))];
    const options = [...names, MAP].map((name) => [name, titleOf(name)]);
    strip.replaceChildren(...radios("measure", options, measure, (name) => choose({ measure: name })));
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
        name ? element("th", { scope: "row" }, name) : element("td"),
        ...cells.map((one) => (one ? element("td", { role: "gridcell" }, cellOf(group, one)) : element("td"))),
      );
    const isByLayer = order === LAYERS;
    const title = reader.isNamed(state.example) ? "th.named" : "th";
    const titles = heads.map((head) =>
      element(title, { scope: "col" }, element("span", reader.headOption(state.example, head))),
    );
    const corner = element("td.corner", t(isByLayer ? "grid.corner" : "grid.sorted"));
    const table = element(
      "table.heads",
      {
        role: "grid",
        "data-kind": group.kind,
        "aria-label": t("grid.table", { kind: nameOfKind(group.kind) }),
        onkeydown: walk,
      },
      element("thead", element("tr", corner, ...(isByLayer ? titles : []))),
      element("tbody", ...rowsOf(group, heads).map(row)),
    );
    table.style.setProperty("--cell", `${size}px`);
    table.classList.toggle("figures", size >= WITH_FIGURES);
    const name = kinds.length > 1 && element("h3", nameOfKind(group.kind));
    return element("div", name, element("div.frame", table));
  }

  function cellOf(group, one) {
    const { layer, head } = one;
    const { kind } = group;
    const view = { ...one, kind };
    const cell = button("", () => choose({ kind, layer, head, view: "head", row: null, column: null }), {
      class: "cell",
      tabindex: group.cells.size ? "-1" : "0",
      "data-layer": layer,
      "data-head": head,
      onpointerenter: () => preview(view),
      onfocus: () => preview(view),
    });
    group.cells.set(`${layer} ${head}`, cell);
    return cell;
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
      redraw(
        cell,
        small ? pixels(small, "log", largestShare(small)) : "–",
        order !== LAYERS && element("span", `${layer + 1}·${reader.headOption(example, head)}`),
      );
      const value = describe(measures).replaceAll("\n", ", ");
      cell.setAttribute("aria-label", t("grid.cell", { where, measure: titleOf(MAP), value }));
      cell.title = `${where}\n${describe(measures)}`;
    });
  }

  async function preview({ kind, layer, head, measures }) {
    const mine = ++turn;
    const view = { example: state.example, kind, layer, head };
    const pooled = await reader.pooled(view);
    if (mine !== turn) return;
    const values = Object.entries(measures).map(([name, value]) => [
      titleOf(name),
      isNumber(value) ? `${figure(value, 3)} ${unitOf(name)}` : t("none"),
    ]);
    const { axisNames } = reader.axes({ example: state.example, kind });
    redraw(
      aside,
      element("h3", reader.fullName(view, " · ")),
      pooled ? thumbnail(pooled, 200) : element("p.hint", t("grid.no-map")),
      pooled && element("p.hint", t("grid.axes", axisNames)),
      namedValues("dl.measures", values),
      storedNote(view),
    );
  }

  // Of long texts: whether arcs can be drawn of the head.
  function storedNote(view) {
    const count = reader.storedCount(view);
    if (count === Infinity || reader.canFetch) return "";
    return element("p.hint", t(`grid.stored.${["none", "one"][count] ?? "many"}`, { count }));
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
    const [low, high] = rangeOf(heads(), measure);
    for (const { kind, measured, cells } of kinds) {
      const layers = [...new Set(measured.map(({ layer }) => layer))];
      const across = [...new Set(measured.map(({ head }) => head))];
      const title = t("token.weight", { token: nameOfKind(kind), weight: titleOf(measure) });
      shapes.push(textAt(title, [8, top + 16], 14, ink, "start", true));
      const names = across.map((head) => reader.headOption(state.example, head));
      const isNamed = reader.isNamed(state.example);
      top += isNamed ? 6 * Math.max(...names.map((name) => name.length)) : 0;
      names.forEach((text, at) => {
        const place = [40 + size * (at + 0.5), top + 40];
        const style = { size: 11, fill: quiet };
        shapes.push(...(isNamed ? columnText(text, place, style) : [textAt(text, place, 11, quiet, "middle")]));
      });
      layers.forEach((layer, at) =>
        shapes.push(textAt(String(layer + 1), [32, top + 48 + size * (at + 0.6)], 11, quiet, "end")),
      );
      for (const { layer, head, measures } of measured) {
        const [x, y] = [40 + size * across.indexOf(head), top + 48 + size * layers.indexOf(layer)];
        const box = [x + 1, y + 1, size - 2, size - 2];
        const image = measure === MAP && cells.get(`${layer} ${head}`)?.querySelector("canvas");
        if (image) shapes.push({ image, at: box });
        const value = measures[measure];
        if (!isNumber(value)) continue;
        const share = high > low ? (value - low) / (high - low) : 0;
        const middle = [x + size / 2, y + size / 2 + 4];
        shapes.push({ rect: box, fill: cssOf(share) }, textAt(short(value), middle, 11, inkOn(share), "middle"));
      }
      width = Math.max(width, 48 + size * across.length);
      top += 64 + size * layers.length;
    }
    const ends = measure === MAP ? {} : legend.ends();
    return { width: Math.max(width, 280), height: top, shapes, legend: { ...ends, notes: [caption.textContent] } };
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
  const line = ([name, value]) =>
    t("token.weight", { token: titleOf(name), weight: isNumber(value) ? figure(value, 3) : t("none") });
  return Object.entries(measures).map(line).join("\n");
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

const isNumber = Number.isFinite;

function short(value) {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2).replace(/^0\./, ".");
}

const titleOf = (name) => named("measure", name);
const unitOf = (name) => (["entropy", "distance"].includes(name) ? t(`unit.${name}`) : "");

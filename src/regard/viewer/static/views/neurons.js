// One pair of tokens in one head: the query, the key and their products, dimension by dimension.

import { bestOf, figure, mostOf, nameOf, signed, sumOf } from "../data/maps.js";
import { button, element, headOf, rowOf, section, shape, tokenLabel } from "../page/dom.js";
import { textAt } from "../page/exporting.js";
import { t } from "../page/language.js";
import { inks } from "../page/palette.js";
import { createLines } from "../parts/lines.js";
import { offersOf } from "../parts/attention.js";

const LISTED = 12; // dimensions, of the largest products
const HIGH = 44; // pixels of a strip in a file
const PARTS = ["query", "key", "product"];

/** @type {import("./views.js").ViewType} */
export const neurons = {
  id: "neurons",
  needs: () => true,
  reads: "vectors",
  controls: ["example", "kind", "layer", "head"],
  applies: ({ reader }, example) => reader.vectorHeads(example).length > 0,
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, context) {
  const { reader, point, choose } = context;
  const container = element("div");
  const hint = element("p.hint", { hidden: true });
  const sums = element("dl.sums");
  const strips = element("div.strips", { onpointermove: over, onpointerleave: () => light(null) });
  const list = element("tbody");
  const more = button("", () => showList(!isWhole), { class: "plain" });
  const columns = ["dimension", ...PARTS].map((name) => t(`neurons.${name}`));
  const table = element("table.dimensions", headOf(columns), list);
  const figures = element("div.neurons", sums, strips, table, more);
  host.append(section(t("neurons"), element("p.caption", t("neurons.caption")), container, hint, figures));
  const lines = createLines(container, {
    point: (where, isFirm) =>
      point(where && { row: where.row ?? pair.row, column: where.column ?? pair.column }, isFirm),
  });
  let built = "";
  /** @type {import("./views.js").State} */
  let view = null;
  /** @type {import("../data/contents.js").Axes} */
  let axes = null;
  let vectors = null;
  let pair = { row: 0, column: 0 };
  let made = null; // of the pair: {query, key, product, order}
  let isWhole = false; // whether all dimensions are listed
  let turn = 0;

  async function show(state) {
    view = state;
    axes = reader.axes(view);
    vectors = await reader.vectors(view);
    const key = `${state.example} ${state.kind}`;
    if (built !== key) {
      built = key;
      lines.build(axes, "neurons.keys", "neurons.queries");
    }
    lines.find(context.hits());
    hint.hidden = Boolean(vectors);
    figures.hidden = !vectors;
    if (vectors) return;
    // Queries and keys were stored of some heads, or of all but their mean.
    const offers = offersOf(reader, view.example, reader.vectorHeads(view.example, view.kind), choose);
    hint.replaceChildren(t("neurons.missing"), ...offers);
  }

  /** Shows the pair that is pointed at; of a token alone with its largest key. */
  async function mark({ row = null, column = null }) {
    if (!vectors) return lines.draw([]);
    const mine = ++turn;
    const at = row ?? axes.rows.length - 1;
    const [weights] = (await reader.rows(view, [at])) ?? [];
    if (mine !== turn) return null;
    const most = Math.max(0, bestOf(weights ?? []));
    pair = { row: at, column: column ?? most };
    lines.draw([{ ...pair, share: 1 }]);
    lines.mark({ rows: [pair.row], columns: [pair.column] });
    const [query, key] = [vectors.query(pair.row), vectors.key(pair.column)];
    const product = query.map((value, dimension) => value * key[dimension]);
    const order = Array.from(product.keys()).sort((a, b) => Math.abs(product[b]) - Math.abs(product[a]));
    made = { query, key, product, order };
    showSums(weights?.[pair.column]);
    strips.replaceChildren(...PARTS.flatMap((name) => [element("h3", ...titleOf(name)), stripOf(made[name])]));
    showList();
    return null;
  }

  // What becomes of the products: their sum, the scale, a bound, a bias, the score, the weight.
  function showSums(weight) {
    const total = sumOf(made.product);
    const { softcap } = vectors;
    const bias = vectors.bias(pair.row, pair.column);
    const scaled = total * vectors.scale;
    const score = (softcap ? softcap * Math.tanh(scaled / softcap) : scaled) + (bias ?? 0);
    const terms = Object.entries({ sum: total, scale: vectors.scale, softcap, bias, score, weight });
    sums.replaceChildren(
      ...terms
        .filter(([, value]) => typeof value === "number")
        .map(([name, value]) =>
          element("div", { "data-of": name }, element("dt", t(`neurons.${name}`)), element("dd", signed(value))),
        ),
    );
    if (weight === 0 && view.kind === "decoder" && pair.column > pair.row)
      sums.append(element("p.hint", t("neurons.hidden")));
  }

  function titleOf(name) {
    const labels = {
      query: tokenLabel(axes.rows[pair.row], axes.languages.rows),
      key: tokenLabel(axes.columns[pair.column], axes.languages.columns),
    };
    return [
      t(`neurons.${name}`),
      " ",
      labels[name] ?? "",
      element("small", ` ${t("neurons.range", { most: figure(largest(made[name]), 3) })}`),
    ];
  }

  // Bars above the middle are positive, below negative.
  function stripOf(values) {
    const full = largest(values) || 1;
    const bars = Array.from(values, (value, at) =>
      shape("rect", {
        x: at + 0.08,
        y: 1 - Math.max(0, value / full),
        width: 0.84,
        height: Math.abs(value / full),
        class: value < 0 ? "minus" : null,
      }),
    );
    return shape(
      "svg",
      { viewBox: `0 0 ${values.length} 2`, preserveAspectRatio: "none", "aria-hidden": "true" },
      shape("rect", { class: "here", y: 0, width: 1, height: 2 }),
      ...bars,
    );
  }

  function showList(all = isWhole) {
    isWhole = all;
    const { order } = made;
    list.replaceChildren(...order.slice(0, isWhole ? order.length : LISTED).map(lineOf));
    more.hidden = order.length <= LISTED;
    more.textContent = t(isWhole ? "neurons.less" : "neurons.all", { count: order.length });
  }

  function lineOf(dimension) {
    const cells = PARTS.map((name) => signed(made[name][dimension]));
    const [onpointerenter, onpointerleave] = [() => light(dimension), () => light(null)];
    return rowOf(String(dimension + 1), cells, { "data-dimension": dimension, onpointerenter, onpointerleave });
  }

  function over(event) {
    const strip = event.target.closest("svg");
    if (strip)
      light(Math.floor(((event.clientX - strip.getBoundingClientRect().left) / strip.clientWidth) * made.query.length));
  }

  function light(dimension) {
    for (const here of strips.querySelectorAll(".here")) {
      here.setAttribute("x", dimension ?? 0);
      here.classList.toggle("lit", dimension !== null);
    }
    for (const row of list.rows) row.classList.toggle("lit", Number(row.dataset.dimension) === dimension);
  }

  function picture() {
    const { ink, quiet, accent, gold } = inks();
    const wide = Math.max(320, 8 * made.query.length);
    const shapes = PARTS.flatMap((name, at) => {
      const values = made[name];
      const [full, top, step] = [largest(values) || 1, at * (HIGH * 2 + 34), wide / values.length];
      const token = { query: axes.rows[pair.row], key: axes.columns[pair.column] }[name];
      const bars = Array.from(values, (value, d) => ({
        rect: [d * step, top + 24 + HIGH * (1 - Math.max(0, value / full)), step * 0.84, HIGH * Math.abs(value / full)],
        fill: value < 0 ? gold : accent,
      }));
      return [textAt(`${t(`neurons.${name}`)} ${token ? nameOf(token) : ""}`, [0, top + 16], 13, ink), ...bars];
    });
    const terms = [...sums.querySelectorAll("div")].map(({ children }) => [...children].map((one) => one.textContent));
    const height = 3 * (HIGH * 2 + 34);
    const line = textAt(terms.map((words) => words.join(" ")).join("   "), [0, height + 14], 12, quiet);
    return { width: wide, height: height + 24, shapes: [...shapes, line] };
  }

  return {
    show,
    mark,
    picture,
    reveal: (where) => lines.reveal({ row: where.row, column: where.row === null ? where.column : null }),
    fit: () => lines.fit(),
    focus: () => lines.focus(),
    table: () => ({
      columns: ["dimension", ...PARTS],
      rows: Array.from(made?.query ?? [], (value, at) => [at + 1, value, made.key[at], made.product[at]]),
    }),
    destroy: lines.destroy,
  };
}

const largest = (values) => mostOf(values.map(Math.abs));

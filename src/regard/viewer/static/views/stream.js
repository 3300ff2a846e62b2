// What a prediction and a score are made of: what wrote to the residual stream, part by part.

import { choice, element, redraw, section, shadeBy, tokenLabel, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { figure, mostOf, nameOf, signed } from "../data/maps.js";
import { textWidth } from "../page/exporting.js";
import { inks } from "../page/palette.js";
import { chosenAt, circuitSection, neuronSection } from "../parts/circuits.js";
import { gapCss, gapInk } from "./charts.js";

const LISTED = 12; // parts or pairs, the largest
const DIGITS = 2;

/** @type {import("./views.js").ViewType} */
export const stream = {
  id: "stream",
  needs: () => true,
  controls: ["example"],
  applies: ({ reader }, at) => {
    const { stream, circuits = [], feed_forward: neurons = [] } = reader.exampleAt(at);
    const { logits = [], scores = [] } = stream ?? {};
    return logits.length + scores.length + circuits.length + neurons.length > 0;
  },
  create,
};

/**
 * Signed numbers with names: `columns`, and `rows` of a name and its values, null where there is none.
 *
 * @typedef {{title: string, columns: string[], rows: [string, (number | null)[]][]}} Grid
 */

/**
 * @param {HTMLElement} host
 * @param {import("./views.js").Context} context
 * @returns {import("./views.js").Instance}
 */
function create(host, { reader, choose, takesApart, takeApart }) {
  /** @type {Grid[]} */
  let grids = [];
  let listed = []; // lines of a CSV file
  /** @type {import("./views.js").State} */
  let view = null;

  async function show(state) {
    view = state;
    const { stream, circuits = [], feed_forward: neurons = [] } = reader.exampleAt(state.example);
    const { parts = [], logits = [], scores = [] } = stream ?? {};
    [grids, listed] = [[], []];
    redraw(
      host,
      ...(logits.length ? [logitSection(parts, logits)] : []),
      ...(scores.length ? [scoreSection(scores)] : []),
      ...(takesApart(state.example) ? [requestSection()] : []),
      ...(circuits.length ? [circuitsOf(circuits)] : []),
      ...(neurons.length ? [neuronsOf(neurons)] : []),
    );
  }

  function logitSection(parts, logits) {
    const example = reader.exampleAt(view.example);
    const nameOfOutput = ({ output, target }) =>
      nameOf(typeof output === "number" ? example.output_tokens[output] : { text: target });
    const key = ({ output = null }, at) => String(output ?? `at-${at}`);
    const at = Math.max(
      0,
      logits.findIndex((one, position) => key(one, position) === view.why),
    );
    const chosen = logits[at];
    const other = chosen.against ? t("trust.against", { token: nameOf({ text: chosen.against }) }) : "";
    const title = t("stream.logit", { token: nameOfOutput(chosen), other });
    const values = parts.map((name, position) => ({ part: partOf(name), value: chosen.values[position] }));
    const layered = values.filter(({ part }) => part.layer !== null);
    const columns = columnsOf(layered);
    const layers = [...new Set(layered.map(({ part }) => part.layer))];
    /** @type {Grid} */
    const grid = {
      title,
      columns: columns.map(({ name }) => name),
      rows: layers.map((layer) => [
        t("layer.number", { number: layer + 1 }),
        columns.map(
          ({ kind, head }) =>
            layered.find(({ part }) => part.layer === layer && part.kind === kind && part.head === head)?.value ?? null,
        ),
      ]),
    };
    /** @type {Grid} */
    const beside = {
      title: "",
      columns: values.filter(({ part }) => part.layer === null).map(({ part }) => part.text),
      rows: [["", values.filter(({ part }) => part.layer === null).map(({ value }) => value)]],
    };
    const full = mostOf(values.map(({ value }) => Math.abs(value)));
    grids.push(...(beside.columns.length ? [beside] : []), ...(layers.length ? [grid] : []));
    for (const { part, value } of values) listed.push(["logit", nameOfOutput(chosen), part.text, "", value]);
    return section(
      title,
      null,
      element("p", { class: "caption" }, t("stream.logit.caption")),
      ...(logits.length > 1
        ? [
            choice(
              "stream",
              "why",
              t("trust.outputs"),
              logits.map((one, n) => [key(one, n), nameOfOutput(one)]),
              key(chosen, at),
              choose,
            ),
          ]
        : []),
      element(
        "div",
        { class: "split wide" },
        element("div", { class: "frame" }, ...grids.map((one) => tableOf(one, full))),
        largestOf(
          t("stream.largest"),
          values.map(({ part, value }) => ({ text: part.text, value })),
          t(chosen.against ? "stream.difference" : "stream.sum.logit"),
          chosen.total,
        ),
      ),
    );
  }

  function scoreSection(scores) {
    const at = chosenAt(scores, view.cell, view);
    const chosen = scores[at];
    const axes = reader.axes({ ...view, kind: chosen.kind, layer: chosen.layer, head: chosen.head, pair: "" });
    const tokens = [axes.rows[chosen.query], axes.columns[chosen.key]];
    const labels = [tokenLabel(tokens[0], axes.languages.rows), tokenLabel(tokens[1], axes.languages.columns)];
    /** @type {Grid} */
    const grid = {
      title: t("stream.score"),
      columns: chosen.columns.map((name) => partOf(name).text),
      rows: chosen.rows.map((name, row) => [partOf(name).text, chosen.values[row]]),
    };
    grids.push(grid);
    const pairs = chosen.pairs.map(([query, key, value]) => ({
      text: [partOf(query).text, partOf(key).text].join(" × "),
      value,
    }));
    for (const [query, key, value] of chosen.pairs)
      listed.push(["score", cellName(chosen), partOf(query).text, partOf(key).text, value]);
    const full = mostOf(chosen.values.flat().map(Math.abs));
    return section(
      t("stream.score"),
      null,
      element("p", { class: "caption" }, t("stream.score.caption")),
      choice(
        "stream",
        "cell",
        t("stream.cells"),
        scores.map((one, n) => [String(n), cellName(one)]),
        String(at),
        choose,
      ),
      element(
        "p",
        { class: "made" },
        element("strong", {}, reader.fullName({ ...view, ...pick(chosen) })),
        " ",
        labels[0],
        " → ",
        labels[1],
        " ",
        element(
          "small",
          { class: "count" },
          t("stream.numbers", { score: signed(chosen.score, 4), weight: figure(chosen.weight, 3) }),
        ),
      ),
      element(
        "div",
        { class: "split wide" },
        element("div", { class: "frame" }, tableOf(grid, full, [t("stream.query"), t("stream.key")])),
        largestOf(t("stream.pairs"), pairs, t("stream.sum.score"), chosen.score, chosen.bias),
      ),
      ...(takesApart(view.example) ? [] : [element("p", { class: "caption" }, t("stream.more"))]),
    );
  }

  function circuitsOf(circuits) {
    const made = circuitSection({ circuits, view, choose }, { nameOfHead, tableOf });
    grids.push(made.grid);
    listed.push(...made.lines);
    return made.node;
  }

  function neuronsOf(neurons) {
    const made = neuronSection({ neurons, view, choose });
    listed.push(...made.lines);
    return made.node;
  }

  // A head, a query and a key, whose score a server takes apart.
  function requestSection() {
    const { example } = view;
    const heads = reader
      .kinds(example)
      .flatMap((kind) =>
        reader
          .layers(example, kind)
          .filter((layer) => typeof layer === "number")
          .flatMap((layer) => reader.heads(example, kind, layer).map((head) => ({ kind, layer, head }))),
      )
      .filter(({ head }) => typeof head === "number");
    const options = (names) => names.map((name, at) => new Option(name, String(at)));
    const [query, key] = [0, 1].map(() => element("select", {}));
    const select = element("select", { onchange: offer }, ...options(heads.map(nameOfHead)));
    const now = heads.findIndex((one) => ["kind", "layer", "head"].every((name) => one[name] === view[name]));
    select.value = String(Math.max(0, now));
    const labelled = (name, node) => element("label", {}, element("span", { class: "name" }, t(name)), " ", node);
    const status = element("span", { class: "hint", role: "status" });
    const button = element("button", { type: "button", onclick: request }, t("stream.request"));

    function offer() {
      const axes = reader.axes({ ...view, ...heads[Number(select.value)], pair: "" });
      for (const [node, tokens] of /** @type {const} */ ([
        [query, axes.rows],
        [key, axes.columns],
      ]))
        node.replaceChildren(...options(tokens.map((token, at) => `${at} ${nameOf(token)}`)));
      query.value = String(axes.rows.length - 1);
    }

    async function request() {
      const { kind, layer, head } = heads[Number(select.value)];
      button.disabled = true;
      status.textContent = t("explaining");
      try {
        await takeApart(example, { kind, layer, head, query: Number(query.value), key: Number(key.value) });
      } catch (error) {
        status.textContent = error.message;
        button.disabled = false;
      }
    }

    offer();
    return element(
      "p",
      { class: "ways" },
      labelled("stream.request.head", select),
      labelled("stream.query", query),
      labelled("stream.key", key),
      button,
      status,
    );
  }

  const nameOfHead = ({ kind, layer, head }) => {
    const kinds = reader.kinds(view.example).length > 1 ? [reader.kindName(view.example, kind)] : [];
    return [...kinds, `${layer + 1}.${head + 1}`].join(" ");
  };

  const pick = ({ kind, layer, head }) => ({ kind, layer, head });

  // A score as it is offered: its head, and the two tokens.
  function cellName(one) {
    const axes = reader.axes({ ...view, ...pick(one), pair: "" });
    return [nameOfHead(one), [nameOf(axes.rows[one.query]), nameOf(axes.columns[one.key])].join(" → ")].join(" ");
  }

  function picture() {
    const { ink, quiet } = inks();
    const shapes = [];
    let [top, width] = [0, 0];
    for (const { title, columns, rows } of grids) {
      const values = rows.flatMap(([, cells]) => cells.map((value) => Math.abs(value ?? 0)));
      const [full, high] = [mostOf(values) || 1, 22];
      const left = 8 + mostOf(rows.map(([name]) => textWidth(name, 12)));
      const wide = Math.max(54, ...columns.map((name) => textWidth(name, 11) + 8));
      if (title) shapes.push({ text: title, at: [0, top + 14], size: 13, fill: ink, bold: true });
      top += title ? 22 : 0;
      columns.forEach((name, at) => {
        shapes.push({ text: name, at: [left + wide * (at + 0.5), top + 12], size: 11, fill: quiet, anchor: "middle" });
      });
      top += 18;
      for (const [name, cells] of rows) {
        shapes.push({ text: name, at: [left - 8, top + 15], size: 12, fill: ink, anchor: "end" });
        cells.forEach((value, at) => {
          if (value === null) return;
          const share = value / full;
          const [x, middle] = [left + wide * at, left + wide * (at + 0.5)];
          if (value) shapes.push({ rect: [x + 1, top + 1, wide - 2, high - 2], fill: gapCss(share) });
          shapes.push({
            text: signed(value, DIGITS),
            at: [middle, top + 15],
            size: 11,
            fill: value ? gapInk(share) : ink,
            anchor: "middle",
          });
        });
        top += high;
      }
      width = Math.max(width, left + wide * columns.length);
      top += 12;
    }
    return { width, height: top, shapes };
  }

  return {
    show,
    picture,
    table: () => ({ columns: ["sum", "of", "part", "part of the key", "value"], rows: listed }),
  };
}

const FORM = /^layer (\d+) (cross )?(?:(heads)|head (\d+)|(feed-forward))$/;

// A part by its name in the document, "layer 0 head 2", counted from 0; its text counts from 1.
function partOf(name) {
  const match = name.match(FORM);
  if (!match) return { kind: name, layer: null, head: null, text: t(`part.${name}`) };
  const [layer, head] = [Number(match[1]), match[4] === undefined ? null : Number(match[4])];
  const cross = match[2] ? "cross-" : "";
  const kind = match[5] ? "feed-forward" : `${cross}${match[3] ? "heads" : "head"}`;
  return { kind, layer, head, text: t(`part.${kind}`, { layer: layer + 1, head: (head ?? 0) + 1 }) };
}

// The columns of a table by layer: each head, each head of cross-attention, the feed-forward part.
function columnsOf(layered) {
  const kinds = ["head", "cross-head", "feed-forward"];
  return kinds.flatMap((kind) => {
    const heads = [...new Set(layered.filter(({ part }) => part.kind === kind).map(({ part }) => part.head))];
    return heads
      .sort((a, b) => a - b)
      .map((head) => ({ kind, head, name: t(`stream.${kind}`, { head: (head ?? 0) + 1 }) }));
  });
}

function tableOf({ columns, rows }, full, corner = null) {
  const cell = (value) => {
    const node = element("td", {}, value === null ? "" : signed(value, DIGITS));
    if (value) shadeBy(node, full ? value / full : 0);
    return node;
  };
  const head = element(
    "tr",
    {},
    corner ? element("td", { class: "corner" }, `${corner[0]} ↓ ${corner[1]} →`) : element("td", {}),
    ...columns.map((name) => element("th", { scope: "col" }, name)),
  );
  const lines = rows.map(([name, cells]) =>
    element("tr", {}, name ? element("th", { scope: "row" }, name) : element("td", {}), ...cells.map(cell)),
  );
  return element("table", { class: "parts" }, element("thead", {}, head), element("tbody", {}, ...lines));
}

// The largest values, what is left of the sum, and the sum.
function largestOf(title, values, name, total, bias = 0) {
  const sorted = values.toSorted((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, LISTED);
  const full = mostOf(sorted.map(({ value }) => Math.abs(value))) || 1;
  const entry = ({ text, value }) => {
    const bar = element("i", { "aria-hidden": "true", class: value < 0 ? "negative" : null });
    weigh(bar, Math.min(1, Math.abs(value) / full));
    return element("li", {}, element("span", {}, text), bar, element("data", { value }, signed(value, 3)));
  };
  const left = total - bias - sorted.reduce((sum, { value }) => sum + value, 0);
  const plain = (text, value) =>
    element("div", {}, element("dt", {}, text), element("dd", {}, element("data", { value }, signed(value, 4))));
  return element(
    "aside",
    { class: "readout", "aria-label": title },
    element("h3", {}, title),
    element("ol", {}, ...sorted.map(entry)),
    element(
      "dl",
      { class: "totals" },
      ...(values.length > LISTED ? [plain(t("stream.others"), left)] : []),
      ...(bias ? [plain(t("stream.bias"), bias)] : []),
      plain(name, total),
    ),
  );
}

// What a prediction and a score are made of: what wrote to the residual stream, part by part.

import { button, choice, element, namedValues, redraw, section, shadeBy, weigh } from "../page/dom.js";
import { t } from "../page/language.js";
import { figure, isOfHead, mostOf, nameOf, signed } from "../data/maps.js";
import { textAt, textWidth } from "../page/exporting.js";
import { inks } from "../page/palette.js";
import { pairOf } from "../parts/attention.js";
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

/** @type {import("./views.js").ViewType["create"]} */
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
      logits.length && logitSection(parts, logits),
      scores.length && scoreSection(scores),
      takesApart(state.example) && requestSection(),
      circuits.length && circuitsOf(circuits),
      neurons.length && neuronsOf(neurons),
    );
  }

  function logitSection(parts, logits) {
    const example = reader.exampleAt(view.example);
    const nameOfOutput = ({ output, target }) =>
      nameOf(typeof output === "number" ? example.output_tokens[output] : { text: target });
    const key = ({ output = null }, at) => String(output ?? `at-${at}`);
    const named = logits.map((one, position) => [key(one, position), nameOfOutput(one)]);
    const at = Math.max(
      0,
      named.findIndex(([one]) => one === view.why),
    );
    const chosen = logits[at];
    const other = chosen.against ? t("trust.against", { token: nameOf({ text: chosen.against }) }) : "";
    const title = t("stream.logit", { token: named[at][1], other });
    const values = parts.map((name, position) => ({ ...partOf(name), value: chosen.values[position] }));
    const [layered, beside] = [true, false].map((isOf) => values.filter(({ layer }) => (layer !== null) === isOf));
    const columns = columnsOf(layered);
    const layers = [...new Set(layered.map(({ layer }) => layer))];
    const numberAt = (layer, { kind, head }) =>
      layered.find((one) => one.layer === layer && one.kind === kind && one.head === head)?.value ?? null;
    if (beside.length)
      grids.push({
        title: "",
        columns: beside.map(({ text }) => text),
        rows: [["", beside.map(({ value }) => value)]],
      });
    if (layers.length)
      grids.push({
        title,
        columns: columns.map(({ name }) => name),
        rows: layers.map((layer) => [
          t("layer.number", { number: layer + 1 }),
          columns.map((column) => numberAt(layer, column)),
        ]),
      });
    const full = mostOf(values.map(({ value }) => Math.abs(value)));
    for (const { text, value } of values) listed.push(["logit", named[at][1], text, "", value]);
    const sum = t(chosen.against ? "stream.difference" : "stream.sum.logit");
    return section(
      title,
      element("p.caption", t("stream.logit.caption")),
      logits.length > 1 && choice("stream", "why", t("trust.outputs"), named, named[at][0], choose),
      element(
        "div.split.wide",
        element("div.frame", ...grids.map((one) => tableOf(one, full))),
        largestOf(t("stream.largest"), values, sum, chosen.total),
      ),
    );
  }

  function scoreSection(scores) {
    const at = chosenAt(scores, view.cell, view);
    const chosen = scores[at];
    const axes = reader.axes({ ...view, ...pick(chosen), pair: "" });
    /** @type {Grid} */
    const grid = {
      title: t("stream.score"),
      columns: chosen.columns.map((name) => partOf(name).text),
      rows: chosen.rows.map((name, row) => [partOf(name).text, chosen.values[row]]),
    };
    grids.push(grid);
    const pairs = chosen.pairs.map(([query, key, value]) => [partOf(query).text, partOf(key).text, value]);
    for (const pair of pairs) listed.push(["score", cellName(chosen), ...pair]);
    const largest = pairs.map(([query, key, value]) => ({ text: `${query} × ${key}`, value }));
    const full = mostOf(chosen.values.flat().map(Math.abs));
    const cells = scores.map((one, n) => [String(n), cellName(one)]);
    const numbers = t("stream.numbers", { score: signed(chosen.score, 4), weight: figure(chosen.weight, 3) });
    return section(
      t("stream.score"),
      element("p.caption", t("stream.score.caption")),
      choice("stream", "cell", t("stream.cells"), cells, String(at), choose),
      element(
        "p.made",
        element("strong", reader.fullName({ ...view, ...pick(chosen) })),
        " ",
        ...pairOf(axes, chosen.query, chosen.key),
        " ",
        element("small.count", numbers),
      ),
      element(
        "div.split.wide",
        element("div.frame", tableOf(grid, full, [t("neurons.query"), t("neurons.key")])),
        largestOf(t("stream.pairs"), largest, t("stream.sum.score"), chosen.score, chosen.bias),
      ),
      !takesApart(view.example) && element("p.caption", t("stream.more")),
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
    const heads = reader.kinds(example).flatMap((kind) =>
      reader
        .layers(example, kind)
        .flatMap((layer) => reader.heads(example, kind, layer).map((head) => ({ kind, layer, head })))
        .filter(({ layer, head }) => typeof layer === "number" && typeof head === "number"),
    );
    const options = (names) => names.map((name, at) => new Option(name, String(at)));
    const [query, key] = [0, 1].map(() => element("select"));
    const select = element("select", { onchange: offer }, ...options(heads.map(nameOfHead)));
    select.value = String(
      Math.max(
        0,
        heads.findIndex((one) => isOfHead(one, view)),
      ),
    );
    const labelled = (name, node) => element("label", element("span.name", t(name)), " ", node);
    const status = element("span.hint", { role: "status" });
    const send = button(t("stream.request"), request);

    function offer() {
      const axes = reader.axes({ ...view, ...heads[Number(select.value)], pair: "" });
      const fill = (node, tokens) =>
        node.replaceChildren(...options(tokens.map((token, at) => `${at} ${nameOf(token)}`)));
      fill(query, axes.rows);
      fill(key, axes.columns);
      query.value = String(axes.rows.length - 1);
    }

    async function request() {
      const { kind, layer, head } = heads[Number(select.value)];
      send.disabled = true;
      status.textContent = t("explaining");
      try {
        await takeApart(example, { kind, layer, head, query: Number(query.value), key: Number(key.value) });
      } catch (error) {
        status.textContent = error.message;
        send.disabled = false;
      }
    }

    offer();
    return element(
      "p.ways",
      labelled("stream.request.head", select),
      labelled("neurons.query", query),
      labelled("neurons.key", key),
      send,
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
    return `${nameOfHead(one)} ${nameOf(axes.rows[one.query])} → ${nameOf(axes.columns[one.key])}`;
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
      if (title) shapes.push(textAt(title, [0, top + 14], 13, ink, "start", true));
      top += title ? 22 : 0;
      columns.forEach((name, at) =>
        shapes.push(textAt(name, [left + wide * (at + 0.5), top + 12], 11, quiet, "middle")),
      );
      top += 18;
      for (const [name, cells] of rows) {
        shapes.push(textAt(name, [left - 8, top + 15], 12, ink, "end"));
        cells.forEach((value, at) => {
          if (value === null) return;
          const [share, x] = [value / full, left + wide * at];
          const over = value ? gapInk(share) : ink;
          if (value) shapes.push({ rect: [x + 1, top + 1, wide - 2, high - 2], fill: gapCss(share) });
          shapes.push(textAt(signed(value, DIGITS), [x + wide / 2, top + 15], 11, over, "middle"));
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
  return ["head", "cross-head", "feed-forward"].flatMap((kind) => {
    const heads = new Set(layered.filter((one) => one.kind === kind).map(({ head }) => head));
    const ordered = [...heads].sort((a, b) => a - b);
    return ordered.map((head) => ({ kind, head, name: t(`stream.${kind}`, { head: (head ?? 0) + 1 }) }));
  });
}

function tableOf({ columns, rows }, full, corner = null) {
  const cell = (value) => {
    const node = element("td", value === null ? "" : signed(value, DIGITS));
    if (value) shadeBy(node, full ? value / full : 0);
    return node;
  };
  const head = element(
    "tr",
    corner ? element("td.corner", `${corner[0]} ↓ ${corner[1]} →`) : element("td"),
    ...columns.map((name) => element("th", { scope: "col" }, name)),
  );
  const lines = rows.map(([name, cells]) =>
    element("tr", name ? element("th", { scope: "row" }, name) : element("td"), ...cells.map(cell)),
  );
  return element("table.parts", element("thead", head), element("tbody", ...lines));
}

// The largest values, what is left of the sum, and the sum.
function largestOf(title, values, name, total, bias = 0) {
  const sorted = values.toSorted((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, LISTED);
  const full = mostOf(sorted.map(({ value }) => Math.abs(value))) || 1;
  const entries = sorted.map(({ text, value }) => {
    const bar = element("i", { "aria-hidden": "true", class: value < 0 ? "negative" : null });
    weigh(bar, Math.min(1, Math.abs(value) / full));
    return element("li", element("span", text), bar, element("data", { value }, signed(value, 3)));
  });
  const left = total - bias - sorted.reduce((sum, { value }) => sum + value, 0);
  const sums = [[name, total]];
  if (bias) sums.unshift([t("stream.bias"), bias]);
  if (values.length > LISTED) sums.unshift([t("stream.others"), left]);
  return element(
    "aside.readout",
    { "aria-label": title },
    element("h3", title),
    element("ol", ...entries),
    namedValues(
      "dl.totals",
      sums.map(([text, value]) => [text, element("data", { value }, signed(value, 4))]),
    ),
  );
}

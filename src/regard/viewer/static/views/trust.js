// Why the model answered so: what each token contributed, by the attention and by other methods,
// and what changes of the attention do to the output.

import { choice, element, headOf, redraw, rowOf, section, shadeBy, tokenLabel } from "../page/dom.js";
import { phrase, sentences, t } from "../page/language.js";
import { largestOf, mostOf, nameOf, signed } from "../data/maps.js";
import { differing } from "../parts/differing.js";
import { createProse } from "../parts/prose.js";
import { WIDTH, shadedTokens } from "../parts/shading.js";
import { paragraphInto } from "../page/exporting.js";
import { inks } from "../page/palette.js";
import { gapCss, gapInk } from "./charts.js";

const MOST = 128; // tokens of a text that is shown whole, with every number
const LISTED = 24; // of a longer one
const SHORT = 2; // digits of a number that stands below a token

/** @type {import("./views.js").ViewType} */
export const trust = {
  id: "trust",
  needs: () => true,
  controls: ["example"],
  applies: ({ reader }, at) => {
    const { importances, changes } = reader.exampleAt(at);
    return Boolean(importances?.length || changes?.length);
  },
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, { reader, choose, languages }) {
  /** @type {import("../data/contents.js").Example} */
  let example = null;
  let proses = [];
  let rows = []; // contributions on the page: {method, tokens: [token, value], full}

  async function show(state) {
    letGo();
    example = reader.exampleAt(state.example);
    const tongues = languages(state.example);
    const { importances = [], changes = [] } = example;
    redraw(
      host,
      importances.length && importanceSection(importances, tongues, state),
      changes.length && changeSection(tongues),
    );
  }

  function importanceSection(importances, tongues, state) {
    const isSource = example.source_tokens.length > 0;
    const [tokens, language] = isSource
      ? [example.source_tokens, tongues.source]
      : [example.output_tokens, tongues.output];
    const outputs = [...new Set(importances.map((one) => one.output ?? null))];
    const output = outputs.find((at) => String(at) === state.why) ?? outputs[0];
    const offered = importances.filter((one) => (one.output ?? null) === output);
    const attention = offered.find(({ method }) => method === "attention");
    const others = offered.filter((one) => one !== attention);
    const chosen = others.find(({ method }) => method === state.method) ?? others[0] ?? attention;
    const nameOfOutput = (at) => [String(at), nameOf(example.output_tokens[at])];
    const methods = others.map(({ method }) => [method, phrase(method)]);
    rows = [];
    const lines = [...new Set([attention, chosen])].filter(Boolean).map(({ method, values, start }) => {
      const cell = element("div", { role: "cell", lang: language, dir: "auto" });
      contributions(cell, method, tokens, values, language, isSource);
      if (typeof start === "number")
        cell.append(" ", element("small.count", t("trust.start", { value: signed(start, 3) })));
      return element("div.measure", { role: "row" }, element("span", { role: "rowheader" }, phrase(method)), cell);
    });
    return section(
      headingOf(chosen, isSource),
      outputs.length > 1 &&
        choice("trust", "why", t("trust.outputs"), outputs.map(nameOfOutput), String(output), choose, tongues.output),
      others.length > 1 && choice("trust", "method", t("trust.method"), methods, chosen.method, choose),
      element("div.evidence", { role: "table", "aria-label": t("trust.mattered") }, ...lines),
      facts(chosen, attention),
      element(
        "p.caption",
        sentences(t("trust.depth"), t("trust.papers"), others.length < 4 && chosen.target && t("trust.more")),
      ),
    );
  }

  // Short texts token by token, with their numbers; of long ones the whole text, and the largest.
  function contributions(cell, method, tokens, values, language, isSource) {
    const sizes = values.map(Math.abs);
    const full = mostOf(sizes);
    const isLong = tokens.length > MOST;
    const shareOf = (at) => (full > 0 ? values[at] / full : 0);
    if (isLong) {
      const prose = createProse(cell, { point: () => {}, label: phrase(method) });
      prose.show(tokens, isSource ? example.source : example.output, language);
      prose.shade(shareOf);
      proses.push(prose);
    }
    const positions = isLong ? largestOf(sizes, LISTED).map(({ at }) => at) : [...tokens.keys()];
    rows.push({ method, full, tokens: positions.map((at) => ({ token: tokens[at], value: values[at] })) });
    const line = element("p.contributions");
    for (const at of positions) {
      const label = tokenLabel(tokens[at], language);
      label.title = t("trust.token", { token: nameOf(tokens[at]), position: at + 1, value: signed(values[at], 3) });
      shadeBy(label, shareOf(at));
      const number = isLong && element("small.count", String(at + 1));
      const value = element("data", { value: values[at] }, signed(values[at], SHORT));
      line.append(element("span.contribution", label, number, value), element("wbr"));
    }
    cell.append(line);
  }

  function facts(chosen, attention) {
    const { correlation, total, change } = chosen;
    const line = (name, value, note) => [element("dt", name), element("dd", element("data", value), " ", note)];
    const list = element("dl.facts");
    if (chosen !== attention) {
      const isAvailable = typeof correlation === "number";
      const word = !isAvailable ? "none" : correlation >= 0.5 ? "high" : correlation > -0.5 ? "low" : "reversed";
      const value = isAvailable ? signed(correlation, 2) : "–";
      list.append(...line(t("trust.correlation"), value, t(`trust.correlation.${word}`)));
    }
    if (typeof change === "number" && typeof total === "number") {
      const note = t("trust.completeness.says", { change: signed(change, 4), gap: signed(total - change, 2) });
      list.append(...line(t("trust.completeness"), signed(total, 4), note));
    }
    return list;
  }

  function headingOf({ output, target, against, position }, isSource) {
    const written = typeof output === "number" ? example.output_tokens[output] : null;
    const name = written ? nameOf(written) : target ? nameOf({ text: target }) : "";
    if (!name) return t("trust.mattered");
    if (!target) return t("trust.mattered.for", { token: name });
    const other = against ? t("trust.against", { token: nameOf({ text: against }) }) : "";
    const where =
      written || typeof position !== "number"
        ? ""
        : isSource
          ? t("trust.position", { position: position + 1 })
          : t("trust.next");
    return t("trust.why", { token: name, where, other });
  }

  function changeSection(tongues) {
    const lines = changesOf(example).map((change, at) => {
      const output = at ? differing(example.output, change.output, tongues.output).other : [change.output];
      const score = typeof change.score === "number" ? signed(change.score, 4) : "–";
      return rowOf(phrase(change.edit), [element("div", { lang: tongues.output, dir: "auto" }, ...output), score]);
    });
    const head = headOf(["trust.change", "side.output", "score"].map((key) => t(key)));
    return section(
      t("trust.changed"),
      element("p.caption", sentences(t("trust.marked"), t("flow.score.says", { says: t("score.says") }))),
      element("table.changes", head, element("tbody", ...lines)),
    );
  }

  function letGo() {
    for (const prose of proses) prose.destroy();
    proses = [];
  }

  // What mattered, a part for each method, and the outputs of the changes.
  function picture() {
    const { ink, quiet } = inks();
    const shapes = [];
    let top = 0;
    for (const { method, full, tokens } of rows) {
      top += paragraphInto(shapes, phrase(method), [0, top], WIDTH, 12, quiet, true);
      const drawn = shadedTokens(
        tokens.map(({ token, value }) => ({
          text: nameOf(token),
          fill: value && full ? gapCss(value / full) : null,
          ink: gapInk(value / full),
          note: signed(value, SHORT),
        })),
        WIDTH,
      );
      shapes.push({ group: drawn.shapes, at: [0, top] });
      top += drawn.height + 6;
    }
    for (const { edit, output, score } of changesOf(example)) {
      const line = `${phrase(edit)}: ${output}${typeof score === "number" ? ` (${signed(score, 4)})` : ""}`;
      top += paragraphInto(shapes, line, [0, top], WIDTH, 13, ink);
    }
    return { width: WIDTH, height: top + 4, shapes, legend: { notes: rows.length ? [t("trust.depth")] : [] } };
  }

  return {
    show,
    picture,
    table: () => ({
      columns: ["measure", "output", "target", "against", "correlation", "position", "token", "value"],
      rows: (example.importances ?? []).flatMap(({ method, output, target, against, correlation, values }) => {
        const tokens = example.source_tokens.length ? example.source_tokens : example.output_tokens;
        return values.map((value, at) => [
          method,
          typeof output === "number" ? output + 1 : "",
          target ?? "",
          against ?? "",
          correlation ?? "",
          at + 1,
          tokens[at].text,
          value,
        ]);
      }),
    }),
    destroy: letGo,
  };
}

// The output as it is, and after each change.
/** @param {import("../data/contents.js").Example} example */
const changesOf = ({ output, score, changes }) =>
  changes?.length ? [{ edit: t("trust.as-is"), output, score }, ...changes] : [];

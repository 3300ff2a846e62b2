// How far to trust the picture: other measures of what mattered, and what edits do to the output.

import { element, tokenLabel, weigh } from "../page/dom.js";
import { phrase, t } from "../page/language.js";
import { figure, largestOf, nameOf } from "../data/maps.js";

const MOST = 400; // tokens of a text that is shown whole
const LISTED = 12; // of a longer one

export const trust = {
  id: "trust",
  controls: ["example"],
  applies: ({ reader }, at) => {
    const { importances, changes } = reader.exampleAt(at);
    return Boolean(importances?.length || changes?.length);
  },
  create,
};

function create(host, { reader, languages }) {
  let example = null;

  async function show(state) {
    example = reader.exampleAt(state.example);
    const tongues = languages(state.example);
    const { importances = [], changes = [] } = example;
    host.replaceChildren(
      ...(importances.length ? [importanceSection(importances, tongues)] : []),
      ...(changes.length ? [changeSection(changes, tongues)] : []),
    );
  }

  function importanceSection(importances, tongues) {
    const isSource = example.source_tokens.length > 0;
    const [tokens, language] = isSource ? [example.source_tokens, tongues.source] : [example.output_tokens, tongues.output];
    const explained = example.output_tokens[importances[0].output];
    const rows = importances.map((importance) => {
      const { method, correlation, values } = importance;
      return element(
        "div",
        { class: "measure", role: "row" },
        element("span", { role: "rowheader" }, phrase(method)),
        element("data", { role: "cell", value: correlation, title: t("trust.correlation.title") }, hasNumber(correlation) ? figure(correlation, 2) : "–"),
        element("p", { role: "cell", lang: language, dir: "auto" }, ...shaded(tokens, values, language)),
      );
    });
    return element(
      "section",
      { "aria-label": t("trust.mattered") },
      element("h2", {}, explained ? t("trust.mattered.for", { token: nameOf(explained) }) : t("trust.mattered")),
      element("p", { class: "caption" }, t("trust.depth")),
      element("div", { class: "evidence", role: "table" }, element("div", { class: "measure name", role: "row" }, ...["measure", "correlation", "tokens"].map((name) => element("span", { role: "columnheader" }, t(`trust.${name}`)))), ...rows),
    );
  }

  function changeSection(changes, tongues) {
    const rows = [{ edit: t("trust.as-is"), output: example.output, score: example.score }, ...changes].map((change, at) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, phrase(change.edit)),
        element("td", { lang: tongues.output, dir: "auto" }, ...(at ? differing(change.output, example.output) : [change.output])),
        element("td", { class: "score" }, hasNumber(change.score) ? figure(change.score).replace("-", "−") : "–"),
      ),
    );
    return element(
      "section",
      { "aria-label": t("trust.changes") },
      element("h2", {}, t("trust.changed")),
      element("p", { class: "caption" }, t("trust.marked")),
      element("table", { class: "changes" }, element("thead", {}, element("tr", {}, ...["trust.change", "trust.output", "score"].map((key) => element("th", { scope: "col" }, t(key))))), element("tbody", {}, ...rows)),
    );
  }

  return {
    show,
    table: () => ({
      columns: ["measure", "correlation", "place", "token", "value"],
      rows: (example.importances ?? []).flatMap(({ method, correlation, values }) => {
        const tokens = example.source_tokens.length ? example.source_tokens : example.output_tokens;
        return values.map((value, at) => [method, correlation, at + 1, tokens[at].text, value]);
      }),
    }),
    destroy: () => host.replaceChildren(),
  };
}

// The whole text, or the tokens that mattered most.
function shaded(tokens, values, language) {
  const sizes = values.map(Math.abs);
  const full = sizes.reduce((most, size) => Math.max(most, size), 0);
  const places = tokens.length <= MOST ? tokens.map((_, at) => at) : largestOf(sizes, LISTED).map(({ column }) => column);
  return places.flatMap((at) => {
    const label = tokenLabel(tokens[at], language);
    label.classList.add("shaded");
    label.title = t("trust.token", { token: nameOf(tokens[at]), place: at + 1, value: figure(values[at], 3).replace("-", "−") });
    weigh(label, full > 0 ? sizes[at] / full : 0);
    return [label, element("wbr")];
  });
}

// Words, or characters where a script has no spaces, that the other text does not have.
function differing(text, other) {
  const parts = (one) => one.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+|\s+/gu) ?? [];
  const known = new Set(parts(other));
  return parts(text).map((part) => (known.has(part) || !part.trim() ? part : element("mark", {}, part)));
}

function hasNumber(value) {
  return typeof value === "number";
}

// What a model said of a text: its label and how sure it was, a tag above each word, and the text
// shaded by what was looked at or how unexpected it was.

import { element, section, weigh } from "../page/dom.js";
import { drawHeat, drawPicture, shade } from "./image.js";
import { phrase, t } from "../page/language.js";
import { figure, mostOf } from "../data/maps.js";
import { createLegend } from "../page/palette.js";
import { createProse } from "../parts/prose.js";

const MOST = 12; // labels that have a bar
const NO_TAG = /^(?:|O)$/;
const PART = /^[BIES]-(.+)$/;
const HUES = 6; // colours of kinds of tags

export const answer = {
  id: "answer",
  controls: ["example"],
  applies: ({ reader }, at) => Boolean(reader.exampleAt(at).answer),
  create,
};

function create(host, { reader, point, languages }) {
  let prose = null;
  let said = null;
  let tokens = [];

  async function show(state) {
    prose?.destroy();
    prose = null;
    const example = reader.exampleAt(state.example);
    const tongues = languages(state.example);
    said = example.answer;
    const isSource = said.side ? said.side === "source" : example.source_tokens.length > 0;
    tokens = isSource ? example.source_tokens : example.output_tokens;
    const [text, language] = isSource ? [example.source, tongues.source] : [example.output, tongues.output];
    host.replaceChildren(...(said.labels.length ? [labels()] : []), ...(said.tags.length ? [tagged(language)] : []));
    if (said.side) host.append(section(t("answer.beside"), null, element("p", { class: "said-of", lang: isSource ? tongues.output : tongues.source, dir: "auto" }, isSource ? example.output : example.source)));
    if (example.image) pictured(example.image);
    else if (said.values.length) shaded(text, language);
    else if (!said.tags.length) host.append(section(t("text"), null, element("p", { class: "said-of", lang: language, dir: "auto" }, text)));
  }

  function labels() {
    const rest = said.labels.length - MOST;
    const bars = said.labels.slice(0, MOST).map(([label, share]) => {
      const bar = element("span", { class: "share" });
      weigh(bar, share);
      return element("div", { class: "label", role: "row" }, element("bdi", { role: "rowheader" }, label), bar, element("data", { role: "cell", value: share }, figure(share, 4)));
    });
    return section(t("answer.label"), null, element("div", { class: "labels", role: "table" }, ...bars), ...(rest > 0 ? [element("p", { class: "caption" }, t("answer.more", { count: rest }))] : []));
  }

  // A sentence's words under their tags; of one entity, one colour.
  function tagged(language) {
    const kinds = [...new Set(said.tags.filter((tag) => !NO_TAG.test(tag)).map(kindOf))];
    const words = tokens.map((token, at) => {
      const tag = said.tags[at];
      const isTagged = !NO_TAG.test(tag);
      const word = element("ruby", { class: isTagged ? "tagged" : null, "data-at": at }, element("span", { lang: language }, token.text), element("rt", {}, isTagged ? tag : ""));
      if (isTagged) word.style.setProperty("--hue", String(kinds.indexOf(kindOf(tag)) % HUES));
      return [word, element("wbr")];
    });
    return section(t("answer.tags"), null, element("p", { class: "tags", dir: "auto" }, ...words.flat()));
  }

  // The picture, and beside it its parts by their values.
  function pictured(image) {
    const [plain, seen] = [drawPicture(image), drawHeat(image)];
    const drawn = element("div", { class: "pictures" }, plain.node, ...(said.values.length ? [seen.node] : []));
    if (!said.values.length) return host.append(section(t("image"), null, drawn));
    const full = Math.max(...said.values.filter((_, at) => image.boxes[at]));
    shade(seen, said.values, full);
    host.append(section(t("image"), null, element("p", { class: "caption" }, t("answer.depth", { measure: phrase(said.measure) })), drawn, scaleTo(full)));
  }

  function scaleTo(full) {
    const legend = createLegend();
    legend.tell("0", figure(full, 3));
    return legend.node;
  }

  function shaded(text, language) {
    const full = mostOf(said.values);
    const place = element("div", { class: "running" });
    host.append(section(t("text"), null, element("p", { class: "caption" }, t("answer.depth", { measure: phrase(said.measure) })), place, scaleTo(full)));
    prose = createProse(place, { point: (at, isFirm) => tell(at, isFirm), label: t("text") });
    prose.show(tokens, text, language);
    prose.shade((at) => (full > 0 ? Math.max(0, said.values[at]) / full : 0));
    for (const span of place.querySelectorAll("[data-at]")) span.title = figure(said.values[Number(span.dataset.at)], 3);
  }

  function tell(at, isFirm) {
    point(at === null ? null : { row: null, column: at }, isFirm);
  }

  return {
    show,
    mark: (place) => prose?.mark(place?.column === null || place?.column === undefined ? [] : [place.column]),
    focus: () => prose?.focus(),
    table: () => ({
      columns: ["place", "token", "tag", "value"],
      rows: tokens.map((token, at) => [at + 1, token.text, said.tags[at] ?? "", said.values[at] ?? ""]),
    }),
    destroy: () => prose?.destroy(),
  };
}

const kindOf = (tag) => PART.exec(tag)?.[1] ?? tag;

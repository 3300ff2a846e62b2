// A model's answer to a text: its label and how sure it was, a tag above each word, and the text
// shaded by attention or how unexpected it was.

import { element, redraw, section, weigh } from "../page/dom.js";
import { drawHeat, drawPicture, shade } from "./image.js";
import { phrase, t } from "../page/language.js";
import { figure, mostOf } from "../data/maps.js";
import { createLegend } from "../page/palette.js";
import { createProse } from "../parts/prose.js";

const MOST = 12; // labels that have a bar
const NO_TAG = /^(?:|O)$/;
const PART = /^[BIES]-(.+)$/;
const HUES = 6; // colours of kinds of tags

/** @type {import("./views.js").ViewType} */
export const answer = {
  id: "answer",
  controls: ["example"],
  applies: ({ reader }, at) => Boolean(reader.exampleAt(at).answer),
  create,
};

/** @type {import("./views.js").ViewType["create"]} */
function create(host, { reader, point, languages }) {
  let prose = null;
  let reply = null;
  let tokens = [];

  async function show(state) {
    prose?.destroy();
    prose = null;
    const { source_tokens, output_tokens, ...example } = reader.exampleAt(state.example);
    const tongues = languages(state.example);
    reply = example.answer;
    const isSource = reply.side ? reply.side === "source" : source_tokens.length > 0;
    tokens = isSource ? source_tokens : output_tokens;
    const [side, other] = isSource ? ["source", "output"] : ["output", "source"];
    const whole = (title, one) =>
      section(t(title), element("p.whole-text", { lang: tongues[one], dir: "auto" }, example[one]));
    const isPlain = !example.image && !reply.values.length && !reply.tags.length;
    redraw(
      host,
      reply.labels.length && labels(),
      reply.tags.length && tagged(tongues[side]),
      reply.side && whole("answer.other", other),
      example.image && pictured(example.image),
      isPlain && whole("text", side),
    );
    if (!example.image && reply.values.length) shaded(example[side], tongues[side]);
  }

  function labels() {
    const rest = reply.labels.length - MOST;
    const bars = reply.labels.slice(0, MOST).map(([label, share]) => {
      const bar = element("span.share");
      weigh(bar, share);
      const value = element("data", { role: "cell", value: share }, figure(share, 4));
      return element("div.label", { role: "row" }, element("bdi", { role: "rowheader" }, label), bar, value);
    });
    return section(
      t("answer.label"),
      element("div.labels", { role: "table" }, ...bars),
      rest > 0 && element("p.caption", t("answer.more", { count: rest })),
    );
  }

  // A sentence's words under their tags; of one entity, one colour.
  function tagged(language) {
    const kinds = [...new Set(reply.tags.filter((tag) => !NO_TAG.test(tag)).map(kindOf))];
    const words = tokens.map((token, at) => {
      const tag = reply.tags[at];
      const isTagged = !NO_TAG.test(tag);
      const word = element(
        "ruby",
        { class: isTagged ? "tagged" : null, "data-at": at },
        element("span", { lang: language }, token.text),
        element("rt", isTagged ? tag : ""),
      );
      if (isTagged) word.style.setProperty("--hue", String(kinds.indexOf(kindOf(tag)) % HUES));
      return [word, element("wbr")];
    });
    return section(t("answer.tags"), element("p.tags", { dir: "auto" }, ...words.flat()));
  }

  // The picture, and next to it its parts by their values.
  function pictured(image) {
    const [plain, heat] = [drawPicture(image), drawHeat(image)];
    if (!reply.values.length) return section(t("image"), element("div.pictures", plain.node));
    const full = Math.max(...reply.values.filter((_, at) => image.boxes[at]));
    shade(heat, reply.values, full);
    return section(t("image"), caption(), element("div.pictures", plain.node, heat.node), scaleTo(full));
  }

  const caption = () => element("p.caption", t("answer.depth", { measure: phrase(reply.measure) }));

  function scaleTo(full) {
    const legend = createLegend();
    legend.setEnds("0", figure(full, 3));
    return legend.node;
  }

  function shaded(text, language) {
    const full = mostOf(reply.values);
    const container = element("div.running");
    host.append(section(t("text"), caption(), container, scaleTo(full)));
    prose = createProse(container, { point: (at, isFirm) => pointTo(at, isFirm), label: t("text") });
    prose.show(tokens, text, language);
    prose.shade((at) => (full > 0 ? Math.max(0, reply.values[at]) / full : 0));
    for (const span of container.querySelectorAll("span"))
      span.title = figure(reply.values[Number(span.dataset.at)], 3);
  }

  function pointTo(at, isFirm) {
    point(at === null ? null : { row: null, column: at }, isFirm);
  }

  return {
    show,
    mark: (position) =>
      prose?.mark(position?.column === null || position?.column === undefined ? [] : [position.column]),
    focus: () => prose?.focus(),
    table: () => ({
      columns: ["position", "token", "tag", "value"],
      rows: tokens.map((token, at) => [at + 1, token.text, reply.tags[at] ?? "", reply.values[at] ?? ""]),
    }),
    destroy: () => prose?.destroy(),
  };
}

const kindOf = (tag) => PART.exec(tag)?.[1] ?? tag;

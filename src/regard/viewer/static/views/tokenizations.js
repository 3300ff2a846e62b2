// How two models cut one text into tokens, where they cut it differently.

import { nameOf } from "../data/maps.js";
import { element, tokenLabel } from "../page/dom.js";
import { t } from "../page/language.js";

const MOST = 200; // tokens of a line

/** Both ways of each text that is the same in two examples, as nodes; none where these are the same. */
export function tokenizations(one, other, languages) {
  return ["source", "output"].flatMap((side) => {
    const [first, second] = [one, other].map((example) => example[`${side}_tokens`]);
    const [starts, others] = [first, second].map((tokens) => new Set(tokens.map(spanKey)));
    const isSame = first.length === second.length && first.every((token) => others.has(spanKey(token)));
    if (one === other || !one[side] || one[side] !== other[side] || isSame) return [];
    const lines = [lineOf("A", first, others, languages[side]), lineOf("B", second, starts, languages[side])];
    return [
      element("h3", t("compare.tokens.title")),
      element("p.caption", t("compare.tokens.says")),
      element("dl.texts.versions.cut", ...lines),
    ];
  });
}

const spanKey = ({ start, end }) => `${start} ${end}`;

function lineOf(name, tokens, otherSpans, language) {
  const pieces = tokens.slice(0, MOST).map((token) => {
    const isUnique = !otherSpans.has(spanKey(token));
    return element(isUnique ? "mark.piece" : "span.piece", { title: nameOf(token) }, tokenLabel(token, language));
  });
  const rest = tokens.length - MOST;
  const count = t(rest > 0 ? "and-more" : "compare.tokens.count", { count: rest > 0 ? rest : tokens.length });
  return element("div", element("dt", name), element("dd", { dir: "auto" }, ...pieces, element("small", count)));
}

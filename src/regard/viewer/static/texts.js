// Both texts as running text, shaded by what is looked at: what long sentences are read in.

import { element, weigh } from "./dom.js";
import { figure } from "./maps.js";

/** The texts inside `host`; `point` is told as by the matrix. */
export function createTexts(host, { point }) {
  const source = element("dd", {});
  const output = element("dd", {});
  const score = element("dd", { class: "score" });
  const scored = element("div", {}, element("dt", {}, "score"), score);
  const names = { source: element("dt", {}), output: element("dt", {}) };
  const lines = {
    source: element("div", {}, names.source, source),
    output: element("div", {}, names.output, output),
  };
  host.append(element("dl", { class: "texts" }, lines.source, lines.output, scored));
  let spans = { source: [], output: [] };
  let map = null;
  let sides = null;
  let full = 1;

  for (const [text, side] of [[source, "source"], [output, "output"]]) {
    text.addEventListener("pointerover", (event) => tell(event, side));
    text.addEventListener("pointerleave", () => point(null, false));
    text.addEventListener("click", (event) => tell(event, side, true));
  }

  function tell(event, side, isFirm = false) {
    const at = event.target.dataset.at;
    if (at === undefined) return;
    const axis = side === sides.looks ? "row" : "column";
    point({ row: null, column: null, [axis]: Number(at) }, isFirm);
  }

  /** Sets another example. */
  function show(example, languages) {
    spans = {
      source: fill(source, example.source, example.source_tokens, languages.source),
      output: fill(output, example.output, example.output_tokens, languages.output),
    };
    // A model that only reads, or only writes, has one text.
    const isOne = !example.source_tokens.length || !example.output_tokens.length;
    const called = example.answer?.side ? { source: "looked at", output: "looking" } : { source: "source", output: "output" };
    for (const side of ["source", "output"]) {
      lines[side].hidden = !example[`${side}_tokens`].length;
      names[side].textContent = isOne ? "text" : called[side];
    }
    scored.hidden = example.score === null || example.score === undefined;
    score.textContent = scored.hidden ? "" : figure(example.score).replace("-", "−");
  }

  function paint(next, axes, deepest) {
    [map, sides, full] = [next, axes, deepest];
  }

  /** Shades the tokens at the other end of a row or column. */
  function mark({ row, column }) {
    const shift = map.kind === "decoder" ? 1 : 0; // its columns begin with the start sign
    const seen = sides.seen === "source" ? spans.source : spans.output;
    const looks = sides.looks === "source" ? spans.source : spans.output;
    for (const span of [...spans.source, ...spans.output]) {
      span?.classList.remove("marked", "shaded");
    }
    if (row !== null) {
      map.weights[row].forEach((weight, at) => shade(seen[at - shift], weight));
      looks[row]?.classList.add("marked");
    }
    if (column !== null) {
      if (row === null) map.weights.forEach((weights, at) => shade(looks[at], weights[column]));
      seen[column - shift]?.classList.add("marked");
    }
  }

  function shade(span, weight) {
    if (!span || weight < 0.01) return;
    span.classList.add("shaded");
    weigh(span, full > 0 ? Math.min(1, weight / full) : 0);
  }

  return { show, paint, mark };
}

// Offsets count code points, so the text is cut as a list of them. A token that overlaps the one
// before it, or is no text, gets no span.
function fill(host, text, tokens, language) {
  const characters = Array.from(text);
  host.lang = language ?? "";
  host.dir = "auto";
  host.replaceChildren();
  let done = 0;
  const spans = tokens.map((token, at) => {
    if (token.start < done || token.start === token.end) return null;
    host.append(characters.slice(done, token.start).join(""));
    const span = element("span", { "data-at": at }, characters.slice(token.start, token.end).join(""));
    host.append(span);
    done = token.end;
    return span;
  });
  host.append(characters.slice(done).join(""));
  return spans;
}

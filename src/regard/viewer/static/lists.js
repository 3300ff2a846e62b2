// Lists of what a token looks at, or is looked at by: bars, figures, and a way there.

import { element, weigh } from "./dom.js";
import { figure, nameOf } from "./maps.js";
import { shareOf } from "./legend.js";
import { tokenLabel } from "./tokens.js";

/**
 * The nodes of one list: a heading and the entries `[{at, weight}]`, or why there are none.
 *
 * `token` and its `language` stand in the heading before `verb`; `tokens` and `other` are those of
 * the entries; `go(at)` is called when one is chosen; `note` stands below.
 */
export function listOf({ token, language, verb, entries, tokens, other, full, scale, go, note }) {
  const head = element("h3", {}, tokenLabel(token, language), element("small", {}, ` ${verb}`));
  if (!entries) return [head, element("p", { class: "hint" }, note ?? "This was not kept.")];
  if (!entries.length) return [head, element("p", { class: "hint" }, "nothing that was kept")];
  const isLong = tokens.length > 60; // words occur again: say which one
  const items = entries.map(({ at, weight }) => {
    const bar = element("i", { "aria-hidden": "true" });
    weigh(bar, shareOf(weight, full, scale));
    const name = element("button", { type: "button", class: "plain", title: `Go to token ${at + 1}`, onclick: () => go(at) }, tokenLabel(tokens[at], other));
    if (isLong) name.append(element("small", {}, ` ${(at + 1).toLocaleString("en")}`));
    return element(
      "li",
      {},
      name,
      bar,
      element("data", { value: weight, "aria-label": `${nameOf(tokens[at])}: ${figure(weight)}` }, figure(weight, 3)),
    );
  });
  return [head, element("ol", { class: isLong ? "numbered" : null }, ...items), ...(note ? [element("p", { class: "hint" }, note)] : [])];
}

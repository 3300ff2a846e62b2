// Searching tokens: which there are, and going from one to the next.

import { element } from "./dom.js";
import { nameOf } from "./maps.js";

/** A search box; `go(place)` is told where to, `choose({find})` what was typed. */
export function createFinding(host, { choose, go }) {
  const input = element("input", {
    type: "search", id: "find", placeholder: "Search a token", "aria-label": "Search a token",
    autocomplete: "off", spellcheck: "false", oninput: () => choose({ find: input.value }), onkeydown: pressed,
  });
  const count = element("output", { class: "count", for: "find" });
  const previous = element("button", { type: "button", title: "Previous (p)", "aria-label": "Previous", onclick: () => step(-1) }, "‹");
  const next = element("button", { type: "button", title: "Next (n)", "aria-label": "Next", onclick: () => step(1) }, "›");
  host.append(input, previous, next, count);
  let places = [];
  let at = -1;

  function pressed(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && input.value) {
      input.value = "";
      choose({ find: "" });
      event.stopPropagation();
    }
  }

  /** Goes to the next place, or the one before. */
  function step(by) {
    if (!places.length) return;
    at = at < 0 && by < 0 ? places.length - 1 : (at + by + places.length) % places.length;
    tell();
    go(places[at]);
  }

  function tell() {
    const isAsked = input.value.trim() !== "";
    count.textContent = !isAsked ? "" : !places.length ? "none" : at < 0 ? `${places.length} found` : `${at + 1} of ${places.length}`;
    previous.hidden = next.hidden = !places.length;
  }

  /** Shows a search and its hits. */
  function show(find, hits) {
    if (input.value !== find) input.value = find;
    const found = [...hits.rows.map((row) => ({ row, column: null })), ...hits.columns.map((column) => ({ row: null, column }))];
    if (JSON.stringify(found) !== JSON.stringify(places)) [places, at] = [found, -1];
    tell();
  }

  return { show, step, focus: () => input.focus() };
}

/** Places of the tokens that hold the text, whatever the case and the width of its letters. */
export function hitsOf(tokens, find) {
  const wanted = plain(find.trim());
  if (!wanted) return [];
  return tokens.flatMap((token, at) => (plain(nameOf(token)).includes(wanted) ? [at] : []));
}

function plain(text) {
  return text.normalize("NFKC").toLocaleLowerCase();
}

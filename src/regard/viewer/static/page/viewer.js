// The shell: one state, the view that draws it, and what all views share.

import { readAddress, writeAddress } from "./address.js";
import { changeOf, createControls, createFinding, createHelp, helpLine, hitsOf, meaning } from "./controls.js";
import { button, element, languagesOf, redraw } from "./dom.js";
import { createExport, framed } from "./exporting.js";
import { listed, phrase, switchLanguage, t, watchLanguage } from "./language.js";
import { switchTheme, watchTheme } from "./palette.js";
import { chosenOf, figure, isOfHead, layerName } from "../data/maps.js";
import { createReader } from "../data/reader.js";
import { VIEWS } from "../views/views.js";

const VERSION = 3;
const NOWHERE = { row: null, column: null, picked: null }; // picked: several tokens of a side
const HANDFUL = 6; // heads; more are met on the grid

/**
 * Shows a document inside `root`. The result lets go of the page again: `destroy()`.
 *
 * A `source` gives what the document does not hold: exact `rows` (see live.js), and by `explain(at)` a
 * promise of an example with what the views that need it show, where `explains(at)`.
 */
export function show(root, data, { source = null } = {}) {
  check(data);
  let page = createPage(root, data, source, readAddress());
  const unwatch = watchLanguage(() => {
    const { lang, ...state } = page.state();
    const wasFocused = document.activeElement?.matches(".language");
    page.destroy();
    page = createPage(root, data, source, state);
    if (wasFocused) root.querySelector(".language").focus();
  });
  const destroy = () => {
    unwatch();
    page.destroy();
  };
  return { destroy, choose: (changes) => page.choose(changes) };
}

// The page in the language of now, opened at the `requested` state.
function createPage(root, data, source, requested) {
  const reader = createReader(data, source);
  const parts = layOut(root, data);
  const first = data.examples.findIndex((_, at) => !reader.isEmpty(at));
  const canExplain = (at) => Boolean(source?.explains?.(at));
  const views = (at) =>
    data.examples[at] ? VIEWS.filter((view) => view.applies(context, at) || (view.needs?.({}) && canExplain(at))) : [];
  /** @type {import("../views/views.js").State} */
  let state = /** @type {any} */ ({});
  let opened = ""; // the view in which a head was last seen; "head" asks for it
  /** @type {{id: string, instance: import("../views/views.js").Instance | null} | null} */
  let current = null; // the view on the page, and its example
  let drawing = null; // the drawing under way
  let isStale = false;
  let pointed = null; // in passing
  /** @type {{isPicking?: boolean, isMove?: boolean, picked?: string}} */
  let gesture = {}; // the key or the press that is under way
  let hits = { rows: [], columns: [], key: "" };

  /** @type {import("../views/views.js").Context} */
  const context = {
    reader,
    canExplain,
    takesApart: (at) => Boolean(source?.sums && data.examples[at]?.stream),
    takeApart,
    choose,
    point,
    say: (text) => (parts.status.textContent = text),
    hits: () => hits,
    languages: (at) => languagesOf(reader.exampleAt(at), data),
  };
  if (!views(Math.max(first, 0)).length) {
    parts.host.replaceChildren(element("p.hint", t("empty")));
    return { destroy: () => root.replaceChildren(), state: () => requested, choose: () => {} };
  }
  const controls = createControls(parts.controls, reader, { choose });
  const finding = createFinding(parts.finding, { choose, go: (position) => point(position, true, true) });
  const help = createHelp();
  const saving = createExport(parts.saving, {
    view: () => current?.instance,
    picture,
    name: () => nameOf(state, data),
    say: context.say,
  });
  root.append(help.dialog, helpLine(help.open));
  parts.helping.addEventListener("click", help.open);

  function picture() {
    const { controls: named } = VIEWS.find((view) => view.id === state.view);
    return framed(current.instance.picture(), {
      title: phrase(data.title),
      notes: [
        describeState(state, named, reader),
        named.includes("layer") && reader.axes(state).description,
        phrase(data.model),
      ].filter(Boolean),
    });
  }

  /**
   * Changes the state; a change of view, or of the example, is a step that Back returns from. Where
   * no layer or head is `requested`, one is taken of which the view has something to show.
   */
  function choose(changes, requested = changes) {
    const wish = { ...state, ...changes };
    if (!data.examples[wish.example]) wish.example = Math.max(first, 0);
    const offered = views(wish.example);
    const one =
      offered.find((candidate) => candidate.id === opened) ??
      offered.find((candidate) => candidate.id !== "grid" && candidate.id !== "answer");
    const view = (wish.view === "head" ? one : offered.find((candidate) => candidate.id === wish.view)) ?? offered[0];
    if (view?.controls.includes("head")) opened = view.id;
    const isStep = Boolean(current) && (view.id !== state.view || wish.example !== state.example);
    const { isEmpty, nearest } = reader;
    const before = state;
    if (!view?.controls.includes("pair")) wish.pair = "";
    pointed = null;
    state = { ...wish, ...(isEmpty(wish.example) ? {} : nearest(wish.example, wish)), view: view?.id };
    const isElsewhere = !current || isStep || state.kind !== before.kind;
    const nearestRead = { links: reader.nearestStored, vectors: reader.nearestVectors }[view?.reads];
    if (nearestRead && isElsewhere && !("layer" in requested || "head" in requested)) state = nearestRead(state);
    if (before.kind && (state.kind !== before.kind || state.pair !== before.pair)) Object.assign(state, NOWHERE); // other tokens
    if (!isEmpty(state.example)) Object.assign(state, within(reader.axes(state), state));
    writeAddress(state, isStep);
    draw();
  }

  // One drawing at a time: a state chosen meanwhile is drawn after it, the ones between are not.
  function draw() {
    isStale = true;
    parts.host.setAttribute("aria-busy", "true");
    drawing ??= drawLatest().finally(() => {
      drawing = null;
      parts.host.removeAttribute("aria-busy");
    });
    return drawing;
  }

  async function drawLatest() {
    while (isStale) {
      isStale = false;
      const wanted = state;
      const view = views(wanted.example).find((candidate) => candidate.id === wanted.view);
      search(wanted);
      tabs(wanted);
      controls.show(wanted, view.controls);
      remark(wanted, view.controls);
      finding.show(wanted.find ?? "", hits);
      parts.finding.hidden = reader.isEmpty(wanted.example);
      try {
        if (view.needs?.(wanted) && canExplain(wanted.example)) {
          await explain(wanted.example);
          continue;
        }
        if (current?.id !== view.id) {
          leave();
          parts.host.dataset.view = view.id;
          current = { id: view.id, instance: null };
          current.instance = view.create(parts.host, context);
        }
        await current.instance.show(wanted);
        if (!current) return; // the page was let go of meanwhile
        current.instance.mark?.(pinned());
        saving.show(current.instance);
      } catch (error) {
        const isRefusal = "status" in error; // the sentence of a server
        leave(
          element(
            "p.failure",
            { role: "alert" },
            isRefusal ? error.message : t("failed.view", { error: error.message }),
          ),
        );
        saving.show(null);
        if (!isRefusal) throw error;
      }
    }
  }

  /**
   * Names the head with the sharpest links in a sentence where it is shown; else a button leads there.
   *
   * @param {import("../views/views.js").State} wanted
   * @param {string[]} named
   */
  function remark({ example, kind, layer, head, heads }, named) {
    const best = named.includes("head") && !reader.isEmpty(example) ? reader.sharpest(example, kind) : null;
    parts.remark.hidden = !best;
    if (!best) return;
    const where = reader.viewName(example, best.layer, best.head);
    const link = (label, changes) => button(label, () => choose({ ...changes, heads: null }), { class: "plain" });
    const role = best.role ? t(`sharpest.${best.role}`) : "";
    const isHere = best.layer === layer && best.head === head && !(heads && named.includes("heads"));
    redraw(
      parts.remark,
      isHere && `${t("sharpest", { where, count: best.count, value: figure(best.value, 2), role })} `,
      isHere
        ? link(t("sharpest.mean"), { layer: "mean", head: "mean" })
        : link(t("sharpest.open", { where }), { layer: best.layer, head: best.head }),
    );
  }

  function leave(...nodes) {
    current?.instance?.destroy?.();
    current = null;
    parts.host.replaceChildren(...nodes);
  }

  // One more score of an example, taken apart; it is the one that is shown then.
  async function takeApart(at, wanted) {
    const example = data.examples[at];
    const more = await source.sums(at, wanted);
    const isOther = (one) => !(isOfHead(one, wanted) && one.query === wanted.query && one.key === wanted.key);
    const found = more.stream.scores.filter((one) => !isOther(one));
    const scores = [...found, ...(example.stream?.scores ?? []).filter(isOther)];
    const circuits = (more.circuits ?? []).toSorted(
      (a, b) => Number(b.kind === wanted.kind) - Number(a.kind === wanted.kind),
    );
    const isNew = (one) => !circuits.some((other) => isOfHead(one, other));
    data.examples[at] = {
      ...example,
      stream: { ...more.stream, ...example.stream, scores },
      circuits: [...circuits, ...(example.circuits ?? []).filter(isNew)],
    };
    if (root.contains(parts.host)) choose({ cell: "0", circuit: "0" });
  }

  async function explain(at) {
    leave(element("p.hint", { role: "status" }, t("explaining")));
    data.examples[at] = await source.explain(at);
    if (root.contains(parts.host)) choose({}, {}); // there may be no such view now
  }

  /** @param {import("../views/views.js").State} state */
  function search({ example, kind, pair, find = "" }) {
    const key = `${example} ${kind} ${pair} ${find}`;
    if (hits.key === key) return;
    if (!find || reader.isEmpty(example)) hits = { rows: [], columns: [], key };
    else {
      const { rows, columns } = reader.axes({ example, kind, pair });
      const rowHits = hitsOf(rows, find);
      hits = { rows: rowHits, columns: rows === columns ? rowHits : hitsOf(columns, find), key };
    }
  }

  const pinned = () => ({ row: state.row ?? null, column: state.column ?? null, ...pickedOf(state.picked) });

  function point(position, isFirm, isFar = false) {
    const canPick = VIEWS.find((view) => view.id === state.view)?.picks && !isFar;
    pointed = position;
    if (isFirm && canPick && gesture.isPicking) pick(position);
    else if (isFirm && !(canPick && state.picked && gesture.isMove)) {
      state = { ...state, ...NOWHERE, row: position.row, column: position.column };
      writeAddress(state, false);
      if (isFar) current?.instance?.reveal?.(position);
    }
    current?.instance?.mark?.(pointed ?? pinned());
  }

  // With Shift a token joins those that are chosen, or leaves them; arrows alone then move past others.
  function pick(position) {
    const axis = position.row === null ? "column" : "row";
    const name = `${axis} ${position[axis]}`;
    pointed = null;
    if (gesture.picked === name) return; // a press brings focus and a click
    gesture.picked = name;
    const before = chosenOf(pinned())[`${axis}s`];
    const next = !before.includes(position[axis])
      ? [...before, position[axis]]
      : gesture.isMove
        ? before
        : before.filter((at) => at !== position[axis]);
    const isOne = next.length < 2;
    state = {
      ...state,
      ...NOWHERE,
      ...(isOne ? { [axis]: next[0] ?? null } : { picked: `${axis}s_${next.map((at) => at + 1).join("_")}` }),
    };
    getSelection()?.removeAllRanges();
    writeAddress(state, false);
    context.say(isOne ? "" : t("picked", { count: next.length }));
  }

  /** @param {any} event */
  const begin = ({ key = "", shiftKey }) =>
    (gesture = { isPicking: shiftKey && key !== "Tab", isMove: /^(?:Arrow|Home|End|Page|Tab)/.test(key) });

  function tabs(wanted) {
    const offered = views(wanted.example);
    parts.tabs.hidden = offered.length < 2;
    parts.tabs.replaceChildren(
      ...offered.map(({ id }, at) =>
        button(t(id), () => choose({ view: id }), {
          role: "tab",
          "aria-selected": String(id === wanted.view),
          "data-view": id,
          title: t("view.tab", { says: t(`${id}.says`), key: at + 1 }),
        }),
      ),
    );
    // On a narrow screen the tabs are a row that scrolls.
    /** @type {HTMLElement | null} */
    const chosen = parts.tabs.querySelector('[aria-selected="true"]');
    const row = parts.tabs.parentElement;
    if (chosen && row.scrollWidth > row.clientWidth) row.scrollLeft = chosen.offsetLeft - row.offsetLeft - 40;
  }

  function press(event) {
    const isTyping = event.target.closest?.("select, textarea, input:not([type=radio]), dialog");
    if (isTyping || event.defaultPrevented || event.metaKey || (event.ctrlKey && !event.altKey)) return;
    const { key } = event;
    const offered = views(state.example);
    if (key === "Escape") {
      /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
      point(NOWHERE, true);
    } else if (key === "t") switchTheme();
    else if (key === "?") help.open();
    else if (key === "/") finding.focus();
    else if (key === "n" || key === "p") finding.step(key === "n" ? 1 : -1);
    else if (key === "g" && offered.some((view) => view.id === "grid")) choose({ view: "grid" });
    else if (/^[1-9]$/.test(key) && offered[key - 1]) choose({ view: offered[key - 1].id });
    else if (current?.instance?.press?.(event)) event.preventDefault();
    else if (key.startsWith("Arrow") && (document.activeElement ?? document.body) === document.body)
      current?.instance?.focus?.();
    else {
      const changes = reader.isEmpty(state.example) ? null : changeOf(key, state, reader);
      if (!changes) return;
      choose(changes);
    }
    event.preventDefault();
  }

  const restore = () => choose({ ...NOWHERE, ...readAddress() });
  const fit = () => {
    current?.instance?.fit?.();
    current?.instance?.mark?.(pointed ?? pinned());
  };
  // What is pointed at may change the height, which is no reason to draw again.
  let width = 0;
  const sized = new ResizeObserver(([{ contentRect }]) => {
    if (!drawing && contentRect.width !== width) fit();
    ({ width } = contentRect);
  });
  const gone = new AbortController();
  const { signal } = gone;
  watchTheme(fit, signal);
  document.addEventListener("keydown", press, { signal });
  for (const name of ["keydown", "pointerdown"]) document.addEventListener(name, begin, { capture: true, signal });
  addEventListener("popstate", restore, { signal });
  choose(
    { ...openingOf(data, reader, Math.max(first, 0), views, requested), ...requested },
    { ...data.opening, ...requested },
  );
  sized.observe(parts.host);

  function destroy() {
    sized.disconnect();
    gone.abort();
    leave();
    root.replaceChildren();
  }

  return { destroy, choose, state: () => state };
}

// A document that is none is named; its members Python has checked.
function check(data) {
  if (typeof data !== "object" || data === null) throw new Error(t("check.object"));
  if (data.format !== "regard.attention" || !(data.version >= 1 && data.version <= VERSION)) {
    throw new Error(t("check.version", { most: VERSION, format: data.format, version: data.version }));
  }
}

// As the document asks; else the head with the sharpest links, unless the link names one; where that is not known the
// mean, or the grid of many heads.
function openingOf(data, reader, first, views, requested) {
  const example = data.examples[requested.example] ? requested.example : first;
  const offered = views(example).map((view) => view.id);
  const isNamed = "layer" in requested || "head" in requested;
  const sharpest = isNamed || reader.isEmpty(example) ? null : reader.sharpest(example, requested.kind);
  const mean = { kind: "cross", layer: "mean", head: "mean" };
  const scale = offered.includes("words") ? "largest" : "log"; // long rows are mostly faint
  const isShort = offered.includes("words") && reader.kinds(example).includes("cross");
  const plain = offered.find((id) => id !== "grid" && id !== "answer");
  if (offered.includes(data.tab)) return { example, scale: "largest", ...mean, ...data.opening, view: data.tab };
  if (data.opening) return { example, view: plain, scale, ...data.opening };
  const head = sharpest ? { kind: sharpest.kind, layer: sharpest.layer, head: sharpest.head } : mean;
  if (offered.includes("answer")) return { example, view: "answer", scale, ...head };
  if (sharpest) return { example, view: plain, scale, ...head };
  const view = reader.headCount(example) > HANDFUL && !isShort && !reader.isNamed(example) ? "grid" : plain;
  return { example, view, scale, ...mean };
}

// Describes the state in words.
/** @param {import("../views/views.js").State} state */
function describeState({ example, kind, layer, head, heads }, named, reader) {
  if (!named.includes("layer")) return "";
  const name = reader.kindName(example, kind);
  const isPlain = reader.exampleAt(example).sides === "queries and keys";
  return listed([
    isPlain ? name : t("kind.attention", { kind: name }),
    heads && named.includes("heads") ? layerName(layer) : reader.viewName(example, layer, head),
  ]);
}

/**
 * Drops positions that the text does not have: a link may be of another text.
 *
 * @param {Record<"rows" | "columns", any[]>} axes
 * @param {import("../views/views.js").State} state
 */
function within({ rows, columns }, { row, column, picked }) {
  const several = Object.entries(pickedOf(picked))[0];
  const isThere = several?.[1].every((at) => (several[0] === "rows" ? rows : columns)[at]);
  return { row: rows[row] ? row : null, column: columns[column] ? column : null, picked: isThere ? picked : null };
}

// Several tokens of a side as the link has them, "rows_2_5", counted from 1.
function pickedOf(picked) {
  const [axis, ...numbers] = String(picked ?? "").split("_");
  return ["rows", "columns"].includes(axis) ? { [axis]: numbers.map((number) => Number(number) - 1) } : {};
}

/**
 * @param {import("../views/views.js").State} state
 * @param {import("../data/contents.js").Document} data
 */
function nameOf({ view, kind, layer, head }, data) {
  const numbers = Object.entries({ layer, head }).map(
    ([name, at]) => `${name}-${typeof at === "number" ? at + 1 : at}`,
  );
  const letters = data.title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
  const title = letters.replaceAll(/^-|-$/g, "");
  return [title || "attention", view, kind, ...(view === "grid" ? [] : numbers)].filter(Boolean).join("-");
}

function layOut(root, data) {
  const parts = {
    tabs: element("div.tabs", { role: "tablist", "aria-label": t("views") }),
    controls: element("div.choices"),
    remark: element("p.hint.remark"),
    finding: element("div.finding", { role: "search" }),
    saving: element("div.saving"),
    helping: button("?", null, {
      class: "round",
      title: t("view.tab", { says: t("keys"), key: "?" }),
      "aria-label": t("keys"),
    }),
    host: element("main.view"),
    status: element("p.status", { role: "status" }),
  };
  const about = [data.task, data.model].filter(Boolean).map(phrase).join(" · ");
  root.replaceChildren(
    headerOf(phrase(data.title || "Attention"), about, parts.helping),
    element(
      "nav.controls",
      { "aria-label": t("controls") },
      element("div.bar", parts.tabs, parts.finding, parts.saving),
      parts.controls,
      parts.remark,
    ),
    parts.host,
    element("aside", { "aria-label": t("meaning.title") }, meaning()),
    parts.status,
  );
  return parts;
}

/** The header of a page: its title, a line about it, and buttons for language and theme before others. */
export function headerOf(title, about, ...buttons) {
  const switches = [
    button(t("language.other"), switchLanguage, { class: "language", title: t("language.title") }),
    button(t("theme"), switchTheme, { class: "theme", title: t("theme.title") }),
  ];
  return element(
    "header",
    element("div", element("h1", title), element("p", about)),
    element("div.buttons", ...switches, ...buttons),
  );
}

/** Shows it inside the element `#regard`. */
export function open(source) {
  const root = document.getElementById("regard");
  try {
    show(root, JSON.parse(document.getElementById("regard-data").textContent), { source });
  } catch (error) {
    root.append(element("p.failure", { role: "alert" }, t("failed.page", { error: error.message })));
    throw error;
  }
}

// The entry of a page that carries a model: one types a sentence, and translation and attention appear.

import { button, element } from "../page/dom.js";
import { phrase, t, watchLanguage } from "../page/language.js";
import { readAddress } from "../page/address.js";
import { headerOf, show } from "../page/viewer.js";
import { differing } from "../parts/differing.js";
import { createKnobs } from "./knobs.js";
import { answerOf, createMuting } from "./muting.js";
import { createTranslator } from "./translator.js";

const SHOWN = 24; // characters of a sentence that is too long
const PAUSE = 120; // milliseconds of rest before what was typed is translated

/** Fills `root` with the page of a packed model; `data` is a document without examples. */
function createPage(root, data, packed) {
  const translator = createTranslator(packed);
  const isTranslator = ["transformer", "recurrent"].includes(packed.kind);
  const host = element("div");
  const panel = element("div.typing");
  const muting = createMuting({
    attentions: packed.attentions.map((one) => ({
      ...one,
      heads: Array.from({ length: one.heads }, (_, head) => head),
    })),
    changed: translate,
  });
  const { chosen: muted, toggle: mute } = muting;
  const knobs = packed.kind === "decoder" ? createKnobs({ changed: translate, goOn }) : null;
  let text = packed.texts[0] ?? "";
  let typed = text; // without what the model wrote to it
  let drawn = []; // the tokens that it wrote
  let beam = packed.search.beam_size;
  let viewer = null; // the viewer of the last translation
  let waiting = 0;
  let parts = null;
  let viewBefore = null; // the view to go back to once no head is muted
  root.replaceChildren(panel, host);

  const title = isTranslator ? "typing.title" : "typing.title.text";

  function layOut() {
    document.title = t(title);
    parts = {
      input: element("textarea", {
        id: "typed",
        rows: 2,
        lang: data.source_language,
        spellcheck: "false",
        autocomplete: "off",
        autocapitalize: "off",
        oninput: ({ isComposing }) => isComposing || soon(),
        oncompositionend: soon,
      }),
      output: element("div.written", { "aria-live": "polite" }),
      note: element("p.hint.note", { role: "status" }),
    };
    parts.input.value = text;
    const [source, target] = [data.source_language, data.output_language].map((tag) => nameOfLanguage(tag));
    const about = [source && target ? `${source} → ${target}` : "", phrase(data.model)];
    panel.replaceChildren(
      headerOf(t(title), about.filter(Boolean).join(" · ")),
      element(
        "section",
        { "aria-label": t(title) },
        element("label.name", { for: "typed" }, source ?? t(isTranslator ? "side.source" : "side.text")),
        parts.input,
        tries(),
        parts.output,
        parts.note,
        knobs?.next,
        knobs?.node,
        muting.node,
      ),
    );
    muting.draw();
    knobs?.lay();
    if (isTranslator) muting.node.append(choiceOfBeam());
  }

  function tries() {
    const attributes = { class: "try", lang: data.source_language };
    const buttons = packed.texts.map((one) => button(one, () => write(one), attributes));
    return element(
      "div.tools.tries",
      { hidden: buttons.length < 2 },
      element("span.name", t("typing.try")),
      ...buttons,
    );
  }

  function choiceOfBeam() {
    const sizes = [...new Set([1, 4, packed.search.beam_size])].sort((one, other) => one - other);
    const label = (size) => (size === 1 ? t("typing.greedy") : t("typing.beam", { size }));
    const onchange = (event) => {
      beam = sizes[event.target.selectedIndex];
      translate();
    };
    const options = sizes.map((size) => element("option", { selected: size === beam }, label(size)));
    const select = element("select", { onchange }, ...options);
    return element("label.beam", element("span.name", t("typing.search")), select);
  }

  const OUTPUTS = { decoder: "typing.continuation", classifier: "side.label" };
  const nameOfOutput = () =>
    packed.kind in OUTPUTS ? t(OUTPUTS[packed.kind]) : (nameOfLanguage(data.output_language) ?? t("side.output"));

  function soon() {
    forget();
    clearTimeout(waiting);
    waiting = setTimeout(translate, PAUSE);
  }

  function write(next) {
    parts.input.value = next;
    forget();
    translate();
  }

  const forget = () => ([typed, drawn] = [parts.input.value, []]);

  // Adds the next token to the text, or all of the line that the model goes on to write.
  function goOn(isWhole) {
    if (!fits()) return;
    const most = isWhole ? packed.most_tokens : 1;
    const { tokens, example } = translator.translate(typed, { ...continuing(), muted: [...muted], most });
    const last = tokens.indexOf(packed.search.end);
    const line = last < 0 ? tokens : tokens.slice(0, last);
    drawn.push(...line);
    parts.input.value = line.length ? translator.translate(typed, { drawn, most: 1 }).example.output : example.output;
    translate();
    if (last >= 0 || !tokens.length) parts.note.textContent = t("typing.ended");
  }

  const continuing = () => ({ sampling: knobs?.sampling() ?? null, drawn });

  function fits() {
    const { plain, pieces, longest } = translator.read(typed);
    return plain && pieces.length + drawn.length <= longest;
  }

  function translate() {
    clearTimeout(waiting);
    text = parts.input.value;
    const { plain, unknown } = translator.read(typed);
    const texts = isTranslator ? translator.split(typed, data.source_language) : [typed];
    const long = texts
      .map((one) => translator.read(one))
      .find(({ pieces, longest }) => pieces.length + drawn.length > longest);
    parts.note.textContent = long
      ? t(isTranslator ? "typing.long.sentence" : "typing.long", {
          count: long.pieces.length + drawn.length,
          longest: long.longest,
          text: [...long.plain].slice(0, SHOWN).join(""),
        })
      : [
          unknown.length ? t("typing.unknown", { signs: unknown.join(" ") }) : "",
          plain ? "" : t("typing.empty"),
          texts.length > 1 ? t("typing.sentences", { count: texts.length }) : "",
        ]
          .filter(Boolean)
          .join(" ");
    if (!plain || long) return draw([]);
    const answersOf = (options) => texts.map((one) => translator.translate(one, options));
    const options = { beam, ...continuing() };
    const before = answersOf(options);
    draw(muted.size ? [before, answersOf({ ...options, muted: [...muted] })] : [before]);
  }

  /** Draws the answers to all sentences; `results` are those of the whole model, and those without the muted heads. */
  function draw(results) {
    const gap = isUnspaced(data.output_language) ? "" : " ";
    const outputs = results.map((answers) => answers.map(({ output }) => output).join(gap));
    const [before, after] = outputs;
    const changed = after && isTranslator ? differing(before, after, data.output_language).other : [after ?? ""];
    parts.output.replaceChildren(
      ...results.map(([first, ...others], at) => {
        const name = results.length === 1 ? nameOfOutput() : t(at ? "typing.after" : "typing.before");
        const score = after !== undefined && !others.length ? first.score : null;
        const nodes = at && after ? changed : [outputs[at] || "∅"];
        return answerOf(name, nodes, { ...first, next: null, score }, data.output_language);
      }),
    );
    knobs?.list(results.at(-1)?.[0].next ?? []);
    viewer?.destroy();
    const labels = results.length > 1 ? [t("typing.before"), t("typing.after")] : [null];
    const examples = results.flatMap((answers, at) =>
      answers.map(({ example }) => ({ ...example, label: labels[at] })),
    );
    viewer = examples.length ? show(host, { ...data, examples }) : null;
    if (!viewer) host.replaceChildren();
    if (results.length > 1 && !viewBefore) {
      viewBefore = readAddress().view;
      viewer.choose({ view: "compare", example: 0 });
    } else if (results.length < 2 && viewBefore && viewer) {
      viewer.choose({ view: viewBefore });
      viewBefore = null;
    }
  }

  layOut();
  translate();
  watchLanguage(() => {
    const { selectionStart } = parts.input;
    layOut();
    parts.input.setSelectionRange(selectionStart, selectionStart);
    translate();
  });
  return { ...translator, write, mute };
}

const isUnspaced = (tag) => /^(?:zh|ja|th)\b/.test(tag ?? "");

function nameOfLanguage(tag) {
  if (!tag) return null;
  return new Intl.DisplayNames([document.documentElement.lang], { type: "language" }).of(tag);
}

const [data, packed] = ["regard-data", "regard-model"].map((id) => JSON.parse(document.getElementById(id).textContent));
/** For tests and the curious: `regardLive.translate(text)`. */
Object.assign(window, { regardLive: createPage(document.getElementById("regard"), data, packed) });

// The page of a server: a text is typed, and what the model looked at is shown by the viewer.

import { switchLanguage, t, watchLanguage } from "../viewer/page/language.js";
import { readAddress, show } from "../viewer/page/viewer.js";
import { answerOf, attentionsOf, createMuting } from "../viewer/model/muting.js";
import { differing } from "../viewer/parts/differing.js";
import { ask, keepToken } from "./asking.js";

const KEPT = 6; // texts looked at before that stay to be compared with
const FIRST = { zh: "我爱中国", en: "A man is reading a book." };

const at = (id) => document.getElementById(id);
const [form, text, target, run, beam, token] = ["ask", "text", "target", "run", "beam", "token"].map(at);
const [told, failure, root, button] = [at("told"), at("failure"), at("regard"), form.querySelector("button")];
let runs = [];
let shown = null; // the viewer on this page
let looked = []; // {example, question, model}, the newest first
let answered = null; // {replies, question} of the last text
let viewBefore; // the view to go back to once no head is changed
let asking = null; // what is under way
const muting = createMuting({ scales: true, changed: () => text.value.trim() && look() });
at("changes").append(muting.node);

/** What is asked, as the server takes it; what is left out is the run's own. */
function asked() {
  const wide = beam.value && isTranslator() ? { beam_size: Number(beam.value) } : {};
  const given = target.value.trim() && isTranslator() ? { target: target.value } : {};
  const edits = muting.edits();
  return { text: text.value, run: run.value, ...given, ...wide, ...(edits ? { edits } : {}) };
}

const taskOf = (name) => runs.find((one) => one.name === name)?.task ?? "translation";

/** Whether the chosen run translates; others say labels, tags, or how unexpected a text is. */
const isTranslator = () => taskOf(run.value) === "translation";

async function look() {
  asking?.abort();
  const own = (asking = new AbortController());
  const question = asked();
  say(t("serve.looking"));
  button.setAttribute("aria-busy", "true");
  try {
    const found = await ask("/attention", question, { signal: own.signal });
    remember(question);
    draw(found, question);
    const unknown = [...new Set(found.replies[0].unknown)];
    say(unknown.length ? t("typing.unknown", { signs: unknown.join(" ") }) : "");
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  } finally {
    if (asking === own) button.removeAttribute("aria-busy");
  }
}

// The newest text first; those before it can be chosen, and compared with. Of a text whose heads were
// changed there are two examples, without and with that.
function draw(data, question) {
  const { edits, ...plain } = question;
  const isEdited = (at) => Boolean(edits) && at % 2 === 1;
  const placeOf = (at) => (edits && !isEdited(at) ? at / 2 : at); // among the examples of its own question
  const fresh = data.examples.map((example, at) => ({ example, question: isEdited(at) ? question : plain, place: placeOf(at), isExplained: false, model: data.model }));
  const same = ({ question: { edits, ...one } }) => JSON.stringify(one) === JSON.stringify(plain);
  looked = [...fresh, ...looked.filter((one) => !same(one))].slice(0, Math.max(KEPT, fresh.length));
  const isSame = Boolean(answered) && same(answered);
  const wasEdited = isSame && Boolean(answered.question.edits);
  const { view } = readAddress();
  answered = { replies: data.replies, question };
  drawReplies();
  muting.offer(attentionsOf(data.examples[0]));
  const isFirst = !shown;
  at("start")?.remove(); // the viewer has a heading of its own
  shown?.destroy();
  if (!isFirst && !isSame) history.replaceState(null, "", location.pathname + location.search); // a state of the last text
  shown = show(root, { ...data, examples: looked.map(({ example }) => example) }, { source: looked.some(hasRows) ? source : { ...source, rows: null } });
  if (edits && !wasEdited && !(isFirst && view)) {
    viewBefore = view;
    shown.choose({ view: "compare", example: 0 });
  } else if (!edits && wasEdited) shown.choose({ view: viewBefore ?? "head", example: 0 });
}

// Where heads were changed, both answers; and what only this page says of a language model's.
function drawReplies() {
  if (!answered) return;
  const { replies, question } = answered;
  const { source_language, target_language } = runs.find(({ name }) => name === question.run);
  const language = target_language ?? source_language;
  const sides = question.edits ? [0, 1].map((side) => replies.filter((_, at) => at % 2 === side)) : [replies];
  const texts = sides.map((side) => side.map((one) => one.text).join(" "));
  const isMasked = taskOf(question.run) === "masked_language_modelling";
  const names = question.edits ? [t("typing.before"), muting.nameOfAfter()] : [isMasked ? "" : t("typing.continuation")];
  const isSaid = replies.some(({ next_tokens: next }) => next.length) || (question.edits && texts.some(Boolean));
  const nodesOf = (at) => (texts[at] ? (at ? differing(...texts, language).other : [texts[0]]) : texts.some(Boolean) ? ["∅"] : []);
  const nextName = isMasked ? "typing.masked" : "typing.next";
  const columns = sides.map(([{ labels, next_tokens: next }], at) => answerOf(names[at], nodesOf(at), { labels, next, nextName }, language));
  at("replies").replaceChildren(...(isSaid ? columns : []));
}

// Whether the server has exact rows of a text: of a run that writes, which has a beam.
const runOf = ({ question }) => runs.find(({ name }) => name === question.run);
const hasRows = (one) => runOf(one).beam_size !== null;

/** What the viewer asks for besides the document: see `show` in ../viewer/page/viewer.js. */
const source = {
  async rows(place, kind, layer, head, queries) {
    const { example, question } = looked[place];
    if (!hasRows(looked[place])) return null;
    const found = await ask("/attention/rows", { ...question, text: example.source, kind, layer, head, queries });
    return found.weights.map((row) => Float32Array.from(row));
  },
  explains: (at) => Boolean(looked[at] && runOf(looked[at]).explains) && !looked[at].isExplained,
  async explain(at) {
    const one = looked[at];
    const { examples } = await ask("/attribution", one.question);
    one.example = { ...examples[one.place], label: one.example.label };
    one.isExplained = true;
    return one.example;
  },
};

// The text is in the page's address, so that a link shows it again; and the heads that were changed.
function remember({ text: typed, edits, ...others }) {
  const first = runs[0]?.name === others.run ? { run: undefined } : {};
  const heads = edits && { heads: [...muting.chosen].map((key) => key.replaceAll(" ", ".")).join(), factor: muting.factor() };
  const known = Object.entries({ text: typed, ...others, ...first, ...heads }).filter(([, value]) => value !== undefined);
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(known)}${location.hash}`);
}

function say(sentence) {
  told.textContent = sentence;
  failure.hidden = true;
}

function complain(error) {
  told.textContent = "";
  failure.textContent = error.message;
  failure.hidden = false;
  if (!shown) muting.restore([], 0); // a link may name heads of another model
  if (error.status === 401) {
    token.parentElement.hidden = false;
    token.focus();
  } else if (error.status) text.focus();
}

async function open() {
  const found = await ask("/runs");
  runs = found.runs;
  run.replaceChildren(...runs.map(({ name }) => new Option(name)));
  run.parentElement.hidden = runs.length < 2;
  const linked = new URLSearchParams(location.search);
  if (runs.some(({ name }) => name === linked.get("run"))) run.value = linked.get("run");
  text.value ||= linked.get("text") ?? "";
  target.value ||= linked.get("target") ?? "";
  beam.value ||= linked.get("beam_size") ?? "";
  choose();
  if (linked.get("heads")) muting.restore(linked.get("heads").replaceAll(".", " ").split(","), Number(linked.get("factor") ?? 0));
  say("");
  if (text.value) look();
  else invite();
}

const invite = () => say(t(isTranslator() ? "serve.type.translation" : "serve.type.other"));

// What the form says; refusals of the server stay as they are.
function name() {
  document.title = t("serve.title");
  for (const node of document.querySelectorAll("[data-says]")) node.textContent = t(node.dataset.says);
  for (const node of document.querySelectorAll("[data-labelled]")) node.setAttribute("aria-label", t(node.dataset.labelled));
  target.placeholder = t("serve.own");
  if (told.textContent && runs.length && !shown) invite();
  muting.draw();
  drawReplies();
}

function choose() {
  muting.offer([]);
  const { source_language: language, beam_size: width } = runs.find(({ name }) => name === run.value) ?? {};
  text.lang = language ?? "";
  text.placeholder = FIRST[language] ?? "";
  beam.placeholder = width ?? "";
  for (const field of [target, beam]) field.parentElement.hidden = !isTranslator();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (token.value.trim()) keepToken(token.value.trim());
  if (runs.length) look();
  else open().catch(complain);
});
for (const field of [text, target]) {
  field.addEventListener("keydown", (event) => {
    // Enter while a word is being composed chooses its characters.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
}
run.addEventListener("change", choose);
at("language").addEventListener("click", switchLanguage);
watchLanguage(name);
name();
open().catch(complain);

// The page of a server: a text is typed, and the viewer shows the model's attention.

import { addStrings, switchLanguage, t, watchLanguage } from "/viewer/page/language.js";
import { readAddress } from "/viewer/page/address.js";
import { show } from "/viewer/page/viewer.js";
import { answerOf, attentionsOf, createMuting } from "/viewer/model/muting.js";
import { differing } from "/viewer/parts/differing.js";
import { hasToken, request, storeToken } from "./requests.js";
import { SERVED } from "./strings.js";

addStrings(SERVED);

const MAX_RECENT = 6; // earlier texts that stay for comparison
const FIRST = { zh: "我爱中国", en: "A man is reading a book." };

/** @type {(id: string) => any} the elements of inspector.html */
const at = (id) => document.getElementById(id);
const [form, text, target, run, beam, token] = ["ask", "text", "target", "run", "beam", "token"].map(at);
const [status, failure, root, button] = [at("status"), at("failure"), at("regard"), form.querySelector("button")];
let runs = [];
let viewer = null; // the viewer on this page
let recent = []; // {example, question, model}, the newest first
let lastReply = null; // {replies, question} of the last text
let viewBefore; // the view to go back to once no head is changed
let pending = null; // what is under way
const muting = createMuting({ scales: true, changed: () => text.value.trim() && explainText() });
at("changes").append(muting.node);

/** Reads the request of the form; settings that are left out are the run's. */
function readForm() {
  const wide = beam.value && writes() ? { beam_size: Number(beam.value) } : {};
  const given = target.value.trim() && writes() ? { target: target.value } : {};
  const edits = muting.edits();
  return { text: text.value, run: run.value, ...given, ...wide, ...(edits ? { edits } : {}) };
}

const runNamed = (wanted) => runs.find(({ name }) => name === wanted);
const taskOf = (name) => runNamed(name)?.task ?? "translation";

/** Whether the chosen run writes a text for a text; others predict labels or tags, or continue it. */
const writes = () => (runNamed(run.value)?.beam_size ?? null) !== null;

async function explainText() {
  pending?.abort();
  const controller = new AbortController();
  pending = controller;
  const question = readForm();
  say(t("serve.looking"));
  button.setAttribute("aria-busy", "true");
  try {
    const data = await request("/attention", question, { signal: controller.signal });
    remember(question);
    draw(data, question);
    const unknown = [...new Set(data.replies[0].unknown)];
    say(unknown.length ? t("typing.unknown", { signs: unknown.join(" ") }) : "");
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  } finally {
    if (pending === controller) button.removeAttribute("aria-busy");
  }
}

// The newest text first; those before it can be chosen, and compared with. Of a text whose heads were
// changed there are two examples, without and with that.
function draw(data, question) {
  const { edits, ...plain } = question;
  const isEdited = (at) => Boolean(edits) && at % 2 === 1;
  const indexIn = (at) => (edits && !isEdited(at) ? at / 2 : at); // among the examples of its own question
  const fresh = data.examples.map((example, at) => ({
    example,
    question: isEdited(at) ? question : plain,
    index: indexIn(at),
    isExplained: false,
    model: data.model,
  }));
  const same = ({ question: { edits, ...one } }) => JSON.stringify(one) === JSON.stringify(plain);
  recent = [...fresh, ...recent.filter((one) => !same(one))].slice(0, Math.max(MAX_RECENT, fresh.length));
  const isSame = Boolean(lastReply) && same(lastReply);
  const wasEdited = isSame && Boolean(lastReply.question.edits);
  const { view } = readAddress();
  lastReply = { replies: data.replies, question };
  drawReplies();
  muting.offer(attentionsOf(data.examples[0]));
  const isFirst = !viewer;
  at("start")?.remove(); // the viewer has a heading of its own
  viewer?.destroy();
  if (!isFirst && !isSame) history.replaceState(null, "", location.pathname + location.search); // a state of the last text
  viewer = show(
    root,
    { ...data, examples: recent.map(({ example }) => example) },
    { source: recent.some(hasRows) ? source : { ...source, rows: null } },
  );
  if (edits && !wasEdited && !(isFirst && view)) {
    viewBefore = view;
    viewer.choose({ view: "compare", example: 0 });
  } else if (!edits && wasEdited) viewer.choose({ view: viewBefore ?? "head", example: 0 });
}

// Where heads were changed, both answers; and what only this page says of a language model's.
function drawReplies() {
  if (!lastReply) return;
  const { replies, question } = lastReply;
  const { source_language, target_language } = runNamed(question.run);
  const language = target_language ?? source_language;
  const sides = question.edits ? [0, 1].map((side) => replies.filter((_, at) => at % 2 === side)) : [replies];
  const texts = sides.map((side) => side.map((one) => one.text).join(" "));
  const isMasked = taskOf(question.run) === "masked_language_modelling";
  const names = question.edits
    ? [t("typing.before"), muting.nameOfAfter()]
    : [isMasked ? "" : t("typing.continuation")];
  const hasReply = replies.some(({ next_tokens: next }) => next.length) || (question.edits && texts.some(Boolean));
  const nodesOf = (at) =>
    texts[at] ? (at ? differing(...texts, language).other : [texts[0]]) : texts.some(Boolean) ? ["∅"] : [];
  const nextName = isMasked ? "typing.masked" : "typing.next";
  const columns = sides.map(([{ labels, next_tokens: next }], at) =>
    answerOf(names[at], nodesOf(at), { labels, next, nextName }, language),
  );
  at("replies").replaceChildren(...(hasReply ? columns : []));
}

// Whether the server has exact rows of a text: of a run that writes, which has a beam.
const runOf = ({ question }) => runNamed(question.run);
const hasRows = (one) => runOf(one).beam_size !== null;

/** What the viewer asks for besides the document: see `show` in ../viewer/page/viewer.js. */
const source = {
  async rows(index, kind, layer, head, queries) {
    const { example, question } = recent[index];
    if (!hasRows(recent[index])) return null;
    const answer = await request("/attention/rows", { ...question, text: example.source, kind, layer, head, queries });
    return answer.weights.map((row) => Float32Array.from(row));
  },
  explains: (at) => Boolean(recent[at] && runOf(recent[at]).explains) && !recent[at].isExplained,
  async sums(at, { layer, head, query, key }) {
    const { question, index } = recent[at];
    const scores = [[layer, head, query, key]];
    const { examples } = await request("/attribution", { ...question, attribute: [], scores });
    return examples[index];
  },
  async explain(at) {
    const one = recent[at];
    const { examples } = await request("/attribution", one.question);
    one.example = { ...examples[one.index], label: one.example.label };
    one.isExplained = true;
    return one.example;
  },
};

// The text is in the page's address, so that a link shows it again; and the heads that were changed.
/** @param {ReturnType<typeof readForm>} request */
function remember({ text: typed, edits, ...others }) {
  const first = runs[0]?.name === others.run ? { run: undefined } : {};
  const heads = edits && {
    heads: [...muting.chosen].map((key) => key.replaceAll(" ", ".")).join(),
    factor: muting.factor(),
  };
  const parameters = Object.entries({ text: typed, ...others, ...first, ...heads }).filter(
    ([, value]) => value !== undefined,
  );
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(parameters)}${location.hash}`);
}

function say(sentence) {
  status.textContent = sentence;
  failure.hidden = true;
}

function complain(error) {
  status.textContent = "";
  failure.textContent = error.status === 401 ? t(hasToken() ? "serve.token.wrong" : "serve.token.none") : error.message;
  failure.hidden = false;
  if (!viewer) muting.restore([], 0); // a link may name heads of another model
  if (error.status === 401) {
    token.parentElement.hidden = false;
    token.focus();
  } else if (error.status) text.focus();
}

async function open() {
  const answer = await request("/runs");
  runs = answer.runs;
  run.replaceChildren(...runs.map(({ name }) => new Option(name)));
  run.parentElement.hidden = runs.length < 2;
  const linked = new URLSearchParams(location.search);
  if (runNamed(linked.get("run"))) run.value = linked.get("run");
  text.value ||= linked.get("text") ?? "";
  target.value ||= linked.get("target") ?? "";
  beam.value ||= linked.get("beam_size") ?? "";
  choose();
  if (linked.get("heads"))
    muting.restore(linked.get("heads").replaceAll(".", " ").split(","), Number(linked.get("factor") ?? 0));
  say("");
  if (text.value) explainText();
  else invite();
}

const invite = () => say(t(taskOf(run.value) === "translation" ? "serve.type.translation" : "serve.type.other"));

/** @type {(selector: string) => NodeListOf<HTMLElement>} */
const elementsWith = (selector) => document.querySelectorAll(selector);

// What the form says; refusals of the server stay as they are.
function name() {
  document.title = t("serve.title");
  for (const node of elementsWith("[data-says]")) node.textContent = t(node.dataset.says);
  for (const node of elementsWith("[data-labelled]")) node.setAttribute("aria-label", t(node.dataset.labelled));
  target.placeholder = t("serve.own");
  if (status.textContent && runs.length && !viewer) invite();
  muting.draw();
  drawReplies();
}

function choose() {
  muting.offer([]);
  const { source_language: language, beam_size: width } = runNamed(run.value) ?? {};
  text.lang = language ?? "";
  text.placeholder = FIRST[language] ?? "";
  beam.placeholder = width ?? "";
  for (const field of [target, beam]) field.parentElement.hidden = !writes();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (token.value.trim()) storeToken(token.value.trim());
  if (runs.length) explainText();
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

// The page of a server: a text is typed, and what the model looked at is shown by the viewer.

import { switchLanguage, t, watchLanguage } from "../viewer/page/language.js";
import { show } from "../viewer/page/viewer.js";
import { ask, keepToken } from "./asking.js";

const KEPT = 6; // texts looked at before that stay to be compared with
const FIRST = { zh: "我爱中国", en: "A man is reading a book." };

const at = (id) => document.getElementById(id);
const [form, text, target, run, beam, token] = ["ask", "text", "target", "run", "beam", "token"].map(at);
const [told, failure, root, button] = [at("told"), at("failure"), at("regard"), form.querySelector("button")];
let runs = [];
let shown = null; // the viewer on this page
let looked = []; // {example, asked}, the newest first
let asking = null; // what is under way

/** What is asked, as the server takes it; what is left out is the run's own. */
function asked() {
  const wide = beam.value && isTranslator() ? { beam_size: Number(beam.value) } : {};
  const given = target.value.trim() && isTranslator() ? { target: target.value } : {};
  return { text: text.value, run: run.value, ...given, ...wide };
}

/** Whether the chosen run translates; others say labels, tags, or how unexpected a text is. */
function isTranslator() {
  return (runs.find(({ name }) => name === run.value)?.task ?? "translation") === "translation";
}

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
    say("");
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  } finally {
    if (asking === own) button.removeAttribute("aria-busy");
  }
}

// The newest text first; those before it can be chosen, and compared with.
function draw(data, question) {
  const fresh = data.examples.map((example) => ({ example, question, model: data.model }));
  const others = looked.filter((one) => JSON.stringify(one.question) !== JSON.stringify(question));
  looked = [...fresh, ...others].slice(0, Math.max(KEPT, fresh.length));
  if (shown) {
    shown.destroy();
    history.replaceState(null, "", location.pathname + location.search); // a state of the last text
  }
  shown = show(root, { ...data, examples: looked.map(({ example }) => example) }, { source });
}

/** What the viewer asks for besides the document: see ../viewer/live.js. */
const source = {
  async rows(place, kind, layer, head, queries) {
    const { example, question } = looked[place];
    const found = await ask("/attention/rows", { ...question, text: example.source, kind, layer, head, queries });
    return found.weights.map((row) => Float32Array.from(row));
  },
};

// The text is in the page's address, so that a link shows it again.
function remember({ text: typed, ...others }) {
  const first = runs[0]?.name === others.run ? { run: undefined } : {};
  const known = Object.entries({ text: typed, ...others, ...first }).filter(([, value]) => value !== undefined);
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
  say("");
  if (text.value) look();
  else invite();
}

const invite = () => say(t(isTranslator() ? "serve.type.translation" : "serve.type.other"));

// What the form says; refusals of the server stay as they are.
function name() {
  document.title = t("serve.title");
  for (const node of document.querySelectorAll("[data-says]")) node.textContent = t(node.dataset.says);
  target.placeholder = t("serve.own");
  if (told.textContent && runs.length && !shown) invite();
}

function choose() {
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

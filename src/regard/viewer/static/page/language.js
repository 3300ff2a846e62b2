// The language of a page, English or Chinese: everything it says stands in a table, by key.

import { PHRASES, STRINGS } from "./strings.js";

const LANGUAGES = ["en", "zh"]; // as the columns of the table
const STORAGE_KEY = "regard-language";
const page = document.documentElement;

/** What `act` finds in the browser's store; null in a frame that may keep nothing. */
export function remembered(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

// As the link asks (#lang=zh), as it was switched to before, or as the browser's own.
function first() {
  const requested =
    new URLSearchParams(location.hash.slice(1)).get("lang") ?? remembered((storage) => storage.getItem(STORAGE_KEY));
  return LANGUAGES.includes(requested) ? requested : navigator.language.startsWith("zh") ? "zh" : "en";
}

let language = first();
page.lang = language;

/** What the page says for a key; `{name}` in it becomes the value of that name. */
export function t(key, values = {}) {
  return filled(STRINGS[key][LANGUAGES.indexOf(language)], values);
}

/** Adds what one kind of page says to what all say. */
export const addStrings = (strings) => Object.assign(STRINGS, strings);

/** The same for a name that a document may give, such as a measure's: itself, where the table has none. */
export const named = (group, name) => (`${group}.${name}` in STRINGS ? t(`${group}.${name}`) : name);

/**
 * A sentence that Python wrote into the document in English, in the language of the page.
 *
 * @param {string} text
 * @returns {string}
 */
export function phrase(text) {
  if (language === "en") return text;
  if (text.includes(" · ")) return text.split(" · ").map(phrase).join(" · ");
  for (const [english, chinese] of PHRASES) {
    const names = [...english.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const match = text.match(
      new RegExp(`^${english.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "(.+)")}$`, "u"),
    );
    if (match) return filled(chinese, Object.fromEntries(names.map((name, at) => [name, phrase(match[at + 1])])));
  }
  return text;
}

/** Sentences one after another, and a list of tokens: without spaces in Chinese. */
export const sentences = (...parts) => parts.filter(Boolean).join(t("sentence.gap"));
export const listed = (parts) => parts.join(t("list.comma"));

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** Changes over, and keeps that for the next page. */
export function switchLanguage() {
  language = LANGUAGES.find((other) => other !== language);
  page.lang = language;
  remembered((storage) => storage.setItem(STORAGE_KEY, language));
  page.dispatchEvent(new Event("languagechange"));
}

/** Calls `changed` whenever the language is another; returns how to stop. */
export function watchLanguage(changed) {
  page.addEventListener("languagechange", changed);
  return () => page.removeEventListener("languagechange", changed);
}

// Questions to the server this page came from. What it refuses becomes an error with its sentence.

import { t } from "../viewer/page/language.js";

const KEPT = "regard-token"; // for this tab, so that a reload asks for it no more

/** A refusal: `message` is for people, `status` is 0 where there is no answer at all. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Asks by POST, or by GET where there is nothing to say; gives the answer's JSON. */
export async function ask(path, members, { signal } = {}) {
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.Authorization = `Bearer ${token}`;
  const asked = members ? { method: "POST", body: JSON.stringify(members) } : {};
  const answer = await fetch(path, { ...asked, headers, signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, t("serve.silent"));
  });
  const found = await answer.json().catch(() => null);
  if (answer.ok && found) return found;
  throw new Refusal(answer.status, found?.error?.message ?? t("serve.status", { status: answer.status }));
}

/** Remembers what the server wants to be told with every question. */
export function keepToken(token) {
  if (token) sessionStorage.setItem(KEPT, token);
  else sessionStorage.removeItem(KEPT);
}

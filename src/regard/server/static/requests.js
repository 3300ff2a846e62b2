// Requests to the server this page came from. What it refuses becomes an error with its sentence.

import { t } from "/viewer/page/language.js";

const STORAGE_KEY = "regard-token"; // for this tab, so that a reload does not ask for it

/** A refusal: `message` is for people, `status` is 0 where there is no answer at all. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Sends a request by POST, or by GET where there is nothing to say; gives the answer's JSON.
 *
 * @param {string} path
 * @param {Record<string, any>} [members]
 * @param {{signal?: AbortSignal}} [options]
 */
export async function request(path, members, { signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem(STORAGE_KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = members ? { method: "POST", body: JSON.stringify(members) } : {};
  const answer = await fetch(path, { ...options, headers, signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, t("serve.silent"));
  });
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  throw new Refusal(answer.status, body?.error?.message ?? t("serve.status", { status: answer.status }));
}

/** Whether a token is sent with every request. */
export const hasToken = () => Boolean(sessionStorage.getItem(STORAGE_KEY));

/** Remembers what the server needs with every request. */
export const storeToken = (token) => sessionStorage.setItem(STORAGE_KEY, token);

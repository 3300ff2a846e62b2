// As much of a browser as the modules under test use, and the fixtures that Python wrote.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** An element of a page that nobody sees: attributes, classes, children and listeners. */
export class FakeElement extends EventTarget {
  constructor(name) {
    super();
    this.localName = name;
    this.attributes = new Map();
    this.childNodes = [];
    this.parentElement = null;
    this.dataset = {};
    this.style = { properties: {}, setProperty: (key, value) => (this.style.properties[key] = value) };
    const classes = new Set();
    this.classList = {
      toggle: (key, isOn) => (isOn ? classes.add(key) : classes.delete(key)),
      add: (key) => classes.add(key),
      remove: (key) => classes.delete(key),
      contains: (key) => classes.has(key),
    };
  }

  get children() {
    return this.childNodes.filter((node) => node instanceof FakeElement);
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get textContent() {
    return this.childNodes.map((node) => (node instanceof FakeElement ? node.textContent : node)).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  setAttribute(key, value) {
    this.attributes.set(key, String(value));
    if (key.startsWith("data-")) this.dataset[key.slice(5)] = String(value);
    if (key === "class") for (const name of String(value).split(" ")) this.classList.add(name);
  }

  getAttribute(key) {
    return this.attributes.get(key) ?? null;
  }

  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof FakeElement) {
        node.remove();
        node.parentElement = this;
      }
      this.childNodes.push(node instanceof FakeElement ? node : String(node));
    }
  }

  replaceChildren(...nodes) {
    this.childNodes = [];
    this.append(...nodes);
  }

  contains(node) {
    return node === this || this.children.some((child) => child.contains(node));
  }

  remove() {
    const { parentElement } = this;
    if (parentElement) parentElement.childNodes = parentElement.childNodes.filter((node) => node !== this);
    this.parentElement = null;
  }

  /** All elements below, of a name. */
  all(name) {
    return this.children.flatMap((node) => [...(node.localName === name ? [node] : []), ...node.all(name)]);
  }

  querySelectorAll(selector) {
    const [name, className] = selector.split(".");
    return this.all(name).filter((node) => !className || node.classList.contains(className));
  }

  click() {
    this.dispatchEvent(new Event("click"));
  }
}

const root = new FakeElement("html");
const body = new FakeElement("body");
Object.defineProperty(globalThis, "navigator", { value: { language: "en" } });
Object.assign(globalThis, {
  addEventListener: () => {},
  document: {
    documentElement: root,
    body,
    activeElement: body,
    createElement: (name) => new FakeElement(name),
    createElementNS: (_, name) => new FakeElement(name),
  },
  location: { hash: "" },
  DOMParser: class {
    parseFromString() {
      return { querySelector: () => ({ namespaceURI: "svg" }) };
    }
  },
  IntersectionObserver: class {
    observe() {}
    disconnect() {}
  },
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  getComputedStyle: () => ({ direction: "ltr", color: "", getPropertyValue: () => "" }),
});

/** What fixtures.py made: see there. */
export const fixtures = (name) => JSON.parse(readFileSync(join(process.env.REGARD_FIXTURES, `${name}.json`), "utf8"));

/** Whether all numbers of two lists, of lists or not, are within a distance of each other; null is null. */
export function isClose(ours, theirs, distance = 1e-6) {
  if (theirs === null || typeof theirs !== "object")
    return ours === theirs || (typeof ours === "number" && Math.abs(ours - theirs) <= distance);
  const keys = Object.keys(theirs);
  return Object.keys(ours).length === keys.length && keys.every((key) => isClose(ours[key], theirs[key], distance));
}

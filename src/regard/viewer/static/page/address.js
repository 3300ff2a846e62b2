// The state as the fragment of a link, counted from 1 as on the page: #view=map&layer=3&head=5.

const COUNTED = ["example", "layer", "head", "row", "column"];
const counted = (name, value, by) => (COUNTED.includes(name) && value !== "mean" ? Number(value) + by : value);

/** What the link's fragment asks for. */
export function readAddress() {
  const requested = new URLSearchParams(location.hash.slice(1));
  const entries = Array.from(requested, ([name, value]) => [name, counted(name, value, -1)]);
  return Object.fromEntries(
    entries.filter(([, value]) => typeof value === "string" || (Number.isInteger(value) && value >= 0)),
  );
}

// The fragment of a state.
function fragmentOf(state) {
  const members = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#${new URLSearchParams(members.map(([name, value]) => [name, counted(name, value, 1)]))}`;
}

const PAUSE = 120; // milliseconds between changes of an address: browsers refuse too many
let waiting = 0;
let last = 0;

/** Puts a state into the page's address; as a step that Back returns from, if it is one. */
export function writeAddress(state, isStep) {
  clearTimeout(waiting);
  const rest = last + PAUSE - performance.now();
  if (isStep || rest <= 0) return write(fragmentOf(state), isStep);
  waiting = setTimeout(() => write(fragmentOf(state), false), rest);
}

function write(fragment, isStep) {
  last = performance.now();
  if (fragment === location.hash) return;
  try {
    history[isStep ? "pushState" : "replaceState"](null, "", fragment);
  } catch {
    // A page inside a notebook's frame has no address of its own.
  }
}

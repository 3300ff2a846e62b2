// Light and dark: as the system says, until somebody chooses; that is kept for the next time.

const page = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

const KEPT = "regard-theme";

// A frame of a notebook may keep nothing; it then goes by the system each time.
function remembered(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

const kept = remembered((storage) => storage.getItem(KEPT));
if (kept === "light" || kept === "dark") page.dataset.theme = kept;

/** Whether the page is dark now. */
export function isDark() {
  return page.dataset.theme ? page.dataset.theme === "dark" : system.matches;
}

/** Changes over. */
export function switchTheme() {
  page.dataset.theme = isDark() ? "light" : "dark";
  remembered((storage) => storage.setItem(KEPT, page.dataset.theme));
  page.dispatchEvent(new Event("themechange"));
}

/** Calls `changed` whenever the theme is another; returns how to stop. */
export function watchTheme(changed) {
  page.addEventListener("themechange", changed);
  system.addEventListener("change", changed);
  return () => {
    page.removeEventListener("themechange", changed);
    system.removeEventListener("change", changed);
  };
}

// Light and dark: as the system says, until somebody chooses.

const page = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now. */
export function isDark() {
  return page.dataset.theme ? page.dataset.theme === "dark" : system.matches;
}

/** Changes over. */
export function switchTheme() {
  page.dataset.theme = isDark() ? "light" : "dark";
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

const KEY = "heddle.theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** The symbol of the button that changes the colours. */
export const THEME_SYMBOLS: { readonly [theme in Theme]: string } = { system: "◐", light: "☀", dark: "☾" };

/** The colours that were chosen on any of the pages. */
export function readTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return THEMES.find((one) => one === stored) ?? "system";
}

/** Applies colours; `system` follows the operating system. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

/** Chooses the colours after these, for all pages. */
export function chooseNextTheme(theme: Theme): Theme {
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  localStorage.setItem(KEY, next);
  applyTheme(next);
  return next;
}

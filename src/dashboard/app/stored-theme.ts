import { StoredText } from "../stored-text.ts";

const storedTheme = new StoredText("heddle.theme", { keptFor: "browser" });
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

/** The symbol on the button that changes the colour theme, by the current theme. */
export const THEME_SYMBOLS: { readonly [theme in Theme]: string } = { system: "◐", light: "☀", dark: "☾" };

/** Reads the stored colour theme; default: `system`. All pages share it. */
export function readTheme(): Theme {
  const stored = storedTheme.read();
  return THEMES.find((one) => one === stored) ?? "system";
}

/** Applies a colour theme; `system` follows the operating system. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

/** Applies and stores the theme that follows `theme` in the order of the themes, and returns it. */
export function chooseNextTheme(theme: Theme): Theme {
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  storedTheme.write(next);
  applyTheme(next);
  return next;
}

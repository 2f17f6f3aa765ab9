import { signal } from "@preact/signals";

const KEY = "heddle.theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const stored = localStorage.getItem(KEY);
export const theme = signal<Theme>(THEMES.find((one) => one === stored) ?? "system");

/** Applies the chosen theme; `system` follows the operating system. */
export function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (theme.value === "system") delete dataset["theme"];
  else dataset["theme"] = theme.value;
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
  localStorage.setItem(KEY, theme.value);
  applyTheme();
}

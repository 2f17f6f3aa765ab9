import { signal } from "@preact/signals";

const KEY = "heddle.theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const stored = localStorage.getItem(KEY);
export const currentTheme = signal<Theme>(THEMES.find((one) => one === stored) ?? "system");

/** Applies the chosen theme; `system` follows the operating system. */
export function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (currentTheme.value === "system") delete dataset["theme"];
  else dataset["theme"] = currentTheme.value;
}

export function nextTheme(): void {
  currentTheme.value = THEMES[(THEMES.indexOf(currentTheme.value) + 1) % THEMES.length] ?? "system";
  localStorage.setItem(KEY, currentTheme.value);
  applyTheme();
}

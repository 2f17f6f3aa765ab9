import { nextTheme, currentTheme } from "./theme.ts";

/** Cycles through the colour themes: system, light, dark. */
export function ThemeButton() {
  return (
    <button
      type="button"
      class="quiet theme"
      aria-label={`Colours: ${currentTheme.value}. Change`}
      title={`Colours: ${currentTheme.value}`}
      onClick={nextTheme}
    >
      {{ system: "◐", light: "☀", dark: "☾" }[currentTheme.value]}
    </button>
  );
}

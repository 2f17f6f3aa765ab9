import { nextTheme, theme } from "./theme.ts";

/** Cycles through the colour themes: system, light, dark. */
export function ThemeButton() {
  return (
    <button
      type="button"
      class="quiet theme"
      aria-label={`Colours: ${theme.value}. Change`}
      title={`Colours: ${theme.value}`}
      onClick={nextTheme}
    >
      {{ system: "◐", light: "☀", dark: "☾" }[theme.value]}
    </button>
  );
}

import { nextTheme, theme } from "./theme.ts";

/** Changes the colours: those of the system, light, dark. */
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

import { useState } from "preact/hooks";
import { chooseNextTheme, readTheme, THEME_SYMBOLS } from "./stored-theme.ts";

/** A button that switches to the next colour theme: system, light, dark. */
export function ThemeButton() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <button
      type="button"
      class="quiet theme"
      aria-label={`Theme: ${theme}. Change theme`}
      title={`Theme: ${theme}`}
      onClick={() => setTheme(chooseNextTheme(theme))}
    >
      {THEME_SYMBOLS[theme]}
    </button>
  );
}

import { useEffect, useRef } from "preact/hooks";

/**
 * Handles key presses on the page, except in fields and with Ctrl, Meta or Alt. `pressed` returns true if it
 * handled the key.
 */
export function useKeyPress(pressed: (key: string) => boolean): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { tagName = "" } = event.target as Partial<HTMLElement>;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT|SUMMARY)$/.test(tagName))
        return;
      // While a dialog is open, key presses are for the dialog.
      if (document.querySelector("dialog[open]") !== null) return;
      if (latest.current(event.key)) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

import { useEffect, useRef } from "preact/hooks";

/**
 * Calls `pressed` for each key press on the page, except in fields, with Ctrl, Meta or Alt, and while a dialog is
 * open. `pressed` returns true if it has handled the key.
 */
export function useKeyPress(pressed: (key: string) => boolean): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { tagName = "" } = event.target as Partial<HTMLElement>;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT|SUMMARY)$/.test(tagName))
        return;
      // An open dialog handles its own key presses.
      if (document.querySelector("dialog[open]") !== null) return;
      if (latest.current(event.key)) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

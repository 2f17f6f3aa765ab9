import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { currentHistoryEntry } from "../app/page-location.ts";

/** The scroll positions of pages that were left, in pixels, by the entries of the browser's history. */
const positions = new Map<string, number>();
/** The largest number of stored positions. */
const MAX_POSITIONS = 100;

const scrolledElement = (): HTMLElement | null => document.querySelector<HTMLElement>("#main");

/**
 * Scrolls the page's main part to where it was when the user left this entry of the browser's history. `isReady`:
 * whether the content is rendered.
 */
export function useScrollRestoration(isReady: boolean): void {
  const entry = useMemo(currentHistoryEntry, []);
  useLayoutEffect(() => {
    const at = positions.get(entry);
    if (isReady && at !== undefined) scrolledElement()?.scrollTo({ top: at, behavior: "instant" });
  }, [isReady]);
  useEffect(() => {
    const box = scrolledElement();
    if (!isReady || box === null) return;
    const save = () => {
      // The content of the next page may be shorter, which scrolls to its top while this one is still listening.
      if (currentHistoryEntry() !== entry) return;
      positions.delete(entry);
      positions.set(entry, box.scrollTop);
      const [oldest] = positions.keys();
      if (positions.size > MAX_POSITIONS && oldest !== undefined) positions.delete(oldest);
    };
    box.addEventListener("scroll", save, { passive: true });
    return () => box.removeEventListener("scroll", save);
  }, [isReady]);
}

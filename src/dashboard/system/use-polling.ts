import { useEffect } from "preact/hooks";

/**
 * Runs `work` now, again after `soon` milliseconds, and from then on `ms` milliseconds after each run has ended. Pauses
 * while the page is hidden.
 */
export function usePolling(work: () => Promise<void>, ms: number, soon = ms): void {
  useEffect(() => {
    let isOver = false;
    let isAtWork = false;
    let wait = soon;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turn = async () => {
      clearTimeout(timer);
      if (isAtWork || isOver || document.visibilityState === "hidden") return;
      isAtWork = true;
      await work();
      isAtWork = false;
      if (!isOver) timer = setTimeout(() => void turn(), wait);
      wait = ms;
    };
    const seen = () => void turn();
    document.addEventListener("visibilitychange", seen);
    seen();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
}

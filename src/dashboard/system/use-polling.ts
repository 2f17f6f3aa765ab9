import { useEffect } from "preact/hooks";

/** Runs the work now, again after `soon` milliseconds, and then `ms` after each run ends, while the page is visible. */
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

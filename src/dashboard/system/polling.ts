import { useEffect } from "preact/hooks";

/** Does the work now, `soon` milliseconds later, and then again `ms` after it is done, as long as the page is seen. */
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

import { useEffect } from "preact/hooks";

/**
 * Calls `work` when the component is mounted, `soon` milliseconds after this call has ended, and then `ms` milliseconds
 * after the end of each call. Pauses while the page is hidden. If `work` rejects, the polling goes on.
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
      try {
        await work();
      } finally {
        isAtWork = false;
        if (!isOver) timer = setTimeout(() => void turn(), wait);
        wait = ms;
      }
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

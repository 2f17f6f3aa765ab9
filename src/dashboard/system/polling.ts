import { useEffect } from "preact/hooks";

/** Does the work now, and again `ms` after it is done, as long as the page is seen. */
export function usePolling(work: () => Promise<void>, ms: number): void {
  useEffect(() => {
    let isOver = false;
    let isAtWork = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const turn = async () => {
      clearTimeout(timer);
      if (isAtWork || isOver || document.visibilityState === "hidden") return;
      isAtWork = true;
      await work();
      isAtWork = false;
      if (!isOver) timer = setTimeout(() => void turn(), ms);
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

import { useRef } from "preact/hooks";

/**
 * Returns a function that does the work, and that does nothing while the work is in progress: it then returns the promise of
 * the work. So a double click acts once. A state would not do, because the second click may come before the next rendering.
 */
export function useOneAtATime<A extends readonly unknown[], T>(
  work: (...given: A) => Promise<T>,
): (...given: A) => Promise<T> {
  const current = useRef<Promise<T> | null>(null);
  return (...given) =>
    (current.current ??= work(...given).finally(() => {
      current.current = null;
    }));
}

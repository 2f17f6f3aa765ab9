import { useRef } from "preact/hooks";

/**
 * Returns a function that starts `work`. While the work is in progress, further calls start nothing and return the same
 * promise.
 */
export function useOneAtATime<A extends readonly unknown[], T>(
  work: (...given: A) => Promise<T>,
): (...given: A) => Promise<T> {
  // A ref, because a state would change only with the next rendering: a double click could come before it.
  const current = useRef<Promise<T> | null>(null);
  return (...given) =>
    (current.current ??= work(...given).finally(() => {
      current.current = null;
    }));
}

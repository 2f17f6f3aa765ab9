import { useRef } from "preact/hooks";

/**
 * Returns a function that starts `work`, or returns the promise of the work in progress if there is one. So a double
 * click starts the work once. The promise is held by a ref, because a state would change only with the next rendering,
 * which may be after the second click.
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

import { useEffect, useState } from "preact/hooks";

/**
 * Returns the latest value that has stayed the same for `ms` milliseconds, for work that takes too long to do on each
 * key press.
 */
export function useDebouncedValue<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

import { useEffect, useState } from "preact/hooks";

/** Returns the last value that stayed the same for `ms` milliseconds: for what takes too long to follow each key press. */
export function useDebouncedValue<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

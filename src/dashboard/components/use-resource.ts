import { useEffect, useState } from "preact/hooks";
import { showError, errorMessage } from "../app/notices.ts";
import { ApiKeyRequired } from "../requests.ts";

export interface Resource<T> {
  readonly value: T | undefined;
  readonly error: string | null;
  readonly isReading: boolean;
  reload(): void;
}

/** Loads data, and loads it again when a value in `on` changes. The previous data stays until then. */
export function useResource<T>(readIt: () => Promise<T>, on: readonly unknown[]): Resource<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<string | null>(null);
  const [isReading, setReading] = useState(true);
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isOld = false;
    setReading(true);
    readIt().then(
      (found) => {
        if (isOld) return;
        setValue(() => found);
        setError(null);
        setReading(false);
      },
      (cause: unknown) => {
        if (isOld) return;
        if (cause instanceof ApiKeyRequired) showError(cause);
        setError(errorMessage(cause));
        setReading(false);
      },
    );
    return () => {
      isOld = true;
    };
  }, [...on, count]);
  return { value, error, isReading, reload: () => setCount(count + 1) };
}

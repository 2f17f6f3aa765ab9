import { useEffect, useRef, useState } from "preact/hooks";
import { showError, errorMessage } from "../app/notices.ts";
import { Refresher } from "../live/refresher.ts";
import { ApiKeyRequired } from "../api-errors.ts";

export interface Resource<T> {
  readonly value: T | undefined;
  readonly error: string | null;
  readonly isReading: boolean;
  /**
   * Reads the data again. A read in progress is not aborted, because on a slow connection repeated calls would then
   * never let a read end.
   */
  reload(): void;
  /**
   * Reads the data again, unless the last read failed with an error that may be temporary, because such a read is
   * repeated anyway.
   */
  poll(): void;
}

/**
 * Loads data, and loads it again when an element of `on` changes, and after an error that may be temporary. Until the
 * new data has arrived, `value` is the previous data.
 */
export function useResource<T>(readIt: () => Promise<T>, on: readonly unknown[]): Resource<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<string | null>(null);
  const [isReading, setReading] = useState(true);
  const latest = useRef(readIt);
  latest.current = readIt;
  const current = useRef<Refresher<T> | null>(null);
  useEffect(() => {
    setReading(true);
    const refresher = new Refresher({
      read: () => latest.current(),
      take(found) {
        setValue(() => found);
        setError(null);
        setReading(false);
      },
      onError(cause) {
        if (cause instanceof ApiKeyRequired) showError(cause);
        setError(errorMessage(cause));
        setReading(false);
      },
    });
    current.current = refresher;
    return () => refresher.close();
  }, on);
  const reload = () => {
    setReading(true);
    current.current?.request();
  };
  const poll = () => current.current?.poll();
  return { value, error, isReading, reload, poll };
}

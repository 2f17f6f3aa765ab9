import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorMessage, showError } from "../app/notices.ts";
import { ApiKeyRequired } from "../api-errors.ts";
import { useOneAtATime } from "./use-one-at-a-time.ts";

export interface Submit {
  /** The reason why the last attempt failed; null if it did not fail. */
  readonly error: string | null;
  readonly isSending: boolean;
  /** Starts an attempt. Does nothing while an earlier attempt is still in progress. */
  start(work: () => Promise<unknown>): void;
}

/**
 * Sends the request of a form, one attempt at a time. The form shows the error of a failed attempt itself, because a
 * dialog covers the page's notices.
 */
export function useSubmit(): Submit {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const isClosed = useRef(false);
  useLayoutEffect(
    () => () => {
      isClosed.current = true;
    },
    [],
  );
  const send = useOneAtATime(async (work: () => Promise<unknown>) => {
    setSending(true);
    setError(null);
    try {
      await work();
    } catch (cause) {
      // A closed form can no longer show the error, so a notice does.
      if (cause instanceof ApiKeyRequired || isClosed.current) showError(cause);
      setError(errorMessage(cause));
    }
    setSending(false);
  });
  return { error, isSending, start: (work) => void send(work) };
}

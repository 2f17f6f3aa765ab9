import { useState } from "preact/hooks";
import { errorMessage, showError } from "../app/notices.ts";
import { ApiKeyRequired } from "../request-errors.ts";

export interface Submit {
  /** Why the last attempt failed; null: it did not. */
  readonly error: string | null;
  readonly isSending: boolean;
  /** Ignored while an earlier attempt is under way. */
  start(work: () => Promise<unknown>): void;
}

/** The request of a form in a dialog. Its error is shown by the form, because the dialog covers the page's notices. */
export function useSubmit(): Submit {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const send = async (work: () => Promise<unknown>) => {
    setSending(true);
    setError(null);
    try {
      await work();
    } catch (cause) {
      if (cause instanceof ApiKeyRequired) showError(cause);
      setError(errorMessage(cause));
    }
    setSending(false);
  };
  return {
    error,
    isSending,
    start(work) {
      if (!isSending) void send(work);
    },
  };
}

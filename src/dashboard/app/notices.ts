import { signal } from "@preact/signals";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";

/** True while the server requires a key that the user has not given. */
export const isKeyMissing = signal(false);

interface Notice {
  readonly text: string;
  readonly bad: boolean;
  /** The error that the notice shows. */
  readonly cause?: unknown;
}

/** The last notice, shown once; null: none. */
export const currentNotice = signal<Notice | null>(null);

export function showNotice(text: string): void {
  currentNotice.value = { text, bad: false };
}

/** Removes the current notice if it shows an error that no longer applies, as `isOver` decides. */
export function dismissErrorIf(isOver: (cause: unknown) => boolean): void {
  const shown = currentNotice.peek();
  if (shown !== null && shown.bad && isOver(shown.cause)) currentNotice.value = null;
}

/** Whether the server refused a request because of what else has happened on the thread, such as a run in progress. */
export const isConflict = (cause: unknown): boolean => cause instanceof RequestError && cause.status === 409;

/** Whether a request got no answer. */
export const isUnreachableError = (cause: unknown): boolean =>
  cause instanceof TypeError || (cause instanceof DOMException && cause.name === "TimeoutError");

/** Shows an error. A missing key opens the key dialog instead. */
export function showError(cause: unknown): void {
  if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
  else if (!(cause instanceof DOMException && cause.name === "AbortError"))
    currentNotice.value = { text: errorMessage(cause), bad: true, cause };
}

export const errorMessage = (cause: unknown): string => {
  // The API's own text names a field of the request, which has another name in the form.
  if (isConflict(cause) && /multitask strategy/i.test(String(cause)))
    return "A run of this thread is in progress. Wait until it has ended, or change “If a run is active”.";
  if (cause instanceof TypeError) return "The server cannot be reached.";
  if (cause instanceof DOMException && cause.name === "TimeoutError") return "The server does not answer.";
  if (cause instanceof SyntaxError)
    return "The response is not JSON. A proxy or login page may have replaced it.";
  return cause instanceof Error ? cause.message : String(cause);
};

/** Runs an action of the user. Resolves with false if it failed; the error has been shown by then. */
export async function runAction(work: () => Promise<unknown>): Promise<boolean> {
  // Removes the previous notice, which the user has seen by now.
  currentNotice.value = null;
  try {
    await work();
    return true;
  } catch (cause) {
    showError(cause);
    return false;
  }
}

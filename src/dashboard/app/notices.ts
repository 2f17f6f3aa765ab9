import { signal } from "@preact/signals";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";

/** Whether the server requires an API key or token that the user has not entered yet. */
export const isKeyMissing = signal(false);

/** A link in a notice, such as to the run that an action has started. */
interface NoticeLink {
  readonly text: string;
  readonly href: string;
}

interface Notice {
  readonly text: string;
  readonly link?: NoticeLink | undefined;
  readonly bad: boolean;
  /** For a notice that is not an error: whether it stays until the user dismisses it or begins another action. */
  readonly isLasting?: boolean;
  /** The error that caused the notice; undefined for a message of success. */
  readonly cause?: unknown;
}

/** The notice that the header shows; null if there is none. */
export const currentNotice = signal<Notice | null>(null);

export function showNotice(text: string, link?: NoticeLink): void {
  currentNotice.value = { text, link, bad: false };
}

/** Shows that something has failed although no request of the page has. */
export function showFailure(text: string, link: NoticeLink): void {
  currentNotice.value = { text, link, bad: true };
}

/** Shows a notice of something lost. It stays until the user dismisses it or begins another action. */
export function showLastingNotice(text: string): void {
  currentNotice.value = { text, bad: false, isLasting: true };
}

/** Removes the current notice if it shows an error for which `isOver` returns true. */
export function dismissErrorNoticeIf(isOver: (cause: unknown) => boolean): void {
  const shown = currentNotice.peek();
  if (shown !== null && shown.bad && isOver(shown.cause)) currentNotice.value = null;
}

/**
 * Returns whether the server refused a request because of the thread's current state, such as a run in progress (409).
 */
export const isConflictError = (cause: unknown): boolean =>
  cause instanceof RequestError && cause.status === 409;

/** Returns whether a request got no response: the connection failed, or the time ran out. */
export const isUnreachableError = (cause: unknown): boolean =>
  cause instanceof TypeError || (cause instanceof DOMException && cause.name === "TimeoutError");

/**
 * Shows an error as a notice, except for two kinds: for a missing API key, it opens the key dialog; an aborted request
 * is ignored.
 */
export function showError(cause: unknown): void {
  if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
  else if (!(cause instanceof DOMException && cause.name === "AbortError"))
    currentNotice.value = { text: errorMessage(cause), bad: true, cause };
}

export const errorMessage = (cause: unknown): string => {
  // The server's text names the field `multitask_strategy`, which has another label in the form.
  if (isConflictError(cause) && /multitask strategy/i.test(String(cause)))
    return "A run of this thread is in progress. Wait until it has ended, or change “If a run is active”.";
  if (cause instanceof TypeError) return "The server cannot be reached.";
  if (cause instanceof DOMException && cause.name === "TimeoutError") return "The server does not answer.";
  if (cause instanceof SyntaxError)
    return "The response is not JSON. A proxy or login page may have replaced it.";
  return cause instanceof Error ? cause.message : String(cause);
};

/** Runs an action of the user. If it fails, shows the error and resolves with false. */
export async function runAction(work: () => Promise<unknown>): Promise<boolean> {
  // The previous notice belongs to an earlier action.
  currentNotice.value = null;
  try {
    await work();
    return true;
  } catch (cause) {
    showError(cause);
    return false;
  }
}

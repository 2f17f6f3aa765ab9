import { signal } from "@preact/signals";
import { ApiKeyRequired } from "../api-errors.ts";

/** True while the server requires a key that the user has not given. */
export const isKeyMissing = signal(false);

/** The last notice, shown once; null: none. */
export const currentNotice = signal<{ readonly text: string; readonly bad: boolean } | null>(null);

export function showNotice(text: string, bad = false): void {
  currentNotice.value = { text, bad };
}

/** Shows an error. A missing key opens the key dialog instead. */
export function showError(cause: unknown): void {
  if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
  else if (!(cause instanceof DOMException && cause.name === "AbortError"))
    showNotice(errorMessage(cause), true);
}

export const errorMessage = (cause: unknown): string => {
  if (cause instanceof TypeError) return "The server cannot be reached.";
  if (cause instanceof DOMException && cause.name === "TimeoutError") return "The server does not answer.";
  if (cause instanceof SyntaxError)
    return "The answer is not JSON: a proxy or a login page may have answered instead of the server.";
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

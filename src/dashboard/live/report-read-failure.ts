import type { Signal } from "@preact/signals";
import { errorMessage, isKeyMissing } from "../app/notices.ts";
import { ApiKeyRequired, isNotFound, isTransient } from "../api-errors.ts";

/** Says in the signals of a subscription that its record could not be read, and why. */
export function reportReadFailure(
  { error, isMissing }: { readonly error: Signal<string | null>; readonly isMissing: Signal<boolean> },
  cause: unknown,
): void {
  if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
  // The server has said before that the record does not exist. A temporary error does not change that.
  if (isMissing.peek() && isTransient(cause)) return;
  isMissing.value = isNotFound(cause);
  error.value = errorMessage(cause);
}

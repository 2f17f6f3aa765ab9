import type { RetryRule } from "../graph/node.ts";

/** What a service answers when the request is wrong: asking again brings the same. 408 is a time-out, and may pass. */
const LASTING: ReadonlySet<unknown> = new Set([400, 401, 402, 403, 404, 405, 406, 407, 409]);

/** Is what a node's body threw worth another try? A `when` that throws says no. */
export function isRetryable({ when }: RetryRule, thrown: unknown): boolean {
  try {
    if (when !== undefined) return Boolean(when(thrown));
    if (typeof thrown !== "object" || thrown === null) return true;
    const { name, status, response } = thrown as {
      readonly name?: unknown;
      readonly status?: unknown;
      readonly response?: { readonly status?: unknown } | null;
    };
    if (name === "AbortError" || name === "ServiceError") return false;
    return !LASTING.has(status) && !LASTING.has(response?.status);
  } catch {
    return false;
  }
}

import type { RetryRule } from "../graph/node.ts";

/** HTTP statuses of errors in the request, for which a retry gives the same result. 408 is not among them: after a timeout, a retry may succeed. */
const PERMANENT_STATUSES: ReadonlySet<unknown> = new Set([400, 401, 402, 403, 404, 405, 406, 407, 409]);

/** True if an error that a node threw is worth a retry. False also if the `when` function of the policy throws. */
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
    return !PERMANENT_STATUSES.has(status) && !PERMANENT_STATUSES.has(response?.status);
  } catch {
    return false;
  }
}

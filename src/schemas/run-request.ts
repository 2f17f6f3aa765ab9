import { EMPTY_OBJECT } from "../model/json.ts";
import type { RunOrigin } from "../model/run.ts";
import type { RunRequest } from "../service/run-draft.ts";
import { ServiceError } from "../model/errors.ts";
import { dropNulls, type RawBody } from "./read-body.ts";
import { invalidFieldsError } from "./error-to-response.ts";
import { runCreateSchema } from "./request-schemas.ts";

/** Parses the body of a request that starts a run. @throws ServiceError `validation.failed` */
export function parseRunRequest(
  body: RawBody,
  origin?: RunOrigin,
): ReturnType<typeof runCreateSchema.parse> & RunRequest {
  dropNulls(body["config"]);
  const request = runCreateSchema.parse(body) as ReturnType<typeof runCreateSchema.parse> & RunRequest;
  // Replaces an `origin` that the client may have sent. Not a spread: that would give each request a hidden class of its own (see
  // `EMPTY_OBJECT`).
  return Object.assign(request, { origin });
}

/**
 * The documented field names by their names in camel case. One version of LangGraph's official client sends the names in camel case when it
 * starts a batch of runs.
 */
const ALIASES = new Map(
  [
    "assistant_id",
    "stream_mode",
    "stream_subgraphs",
    "stream_resumable",
    "feedback_keys",
    "interrupt_before",
    "interrupt_after",
    "checkpoint_id",
    "checkpoint_during",
    "multitask_strategy",
    "on_completion",
    "on_disconnect",
    "after_seconds",
    "timeout_seconds",
    "if_not_exists",
    "strict_resume",
    "langsmith_tracer",
  ].map((name) => [name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()), name] as const),
);

/**
 * Parses the body of a request that starts a batch of runs.
 * @throws ServiceError `validation.failed`; the field names begin with the index of the run, counted from 0
 */
export function parseBatchRequest(bodies: readonly RawBody[]): readonly RunRequest[] {
  return bodies.map((body, i) => {
    const named: RawBody = { ...EMPTY_OBJECT, ...body };
    for (const [alias, name] of ALIASES) {
      if (Object.hasOwn(body, alias) && !Object.hasOwn(body, name)) named[name] = body[alias];
    }
    try {
      return parseRunRequest(named);
    } catch (cause) {
      if (!(cause instanceof ServiceError)) throw cause;
      throw invalidFieldsError(cause.fields.map(({ at, message }) => ({ at: `[${i}].${at}`, message })));
    }
  });
}

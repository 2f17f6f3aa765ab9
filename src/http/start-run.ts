import { ServiceError, invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { RunRecord, StreamMode } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { RouteCall } from "./route-call.ts";
import type { RouteDeps } from "./deps.ts";
import { type IdempotencyKey, startKeyOf } from "../service/idempotency.ts";
import type { RawBody } from "../schemas/read-body.ts";
import { machineEventSchema } from "../schemas/request-schemas.ts";
import { parseBatchRequest, parseRunRequest } from "../schemas/run-request.ts";
import { withConfigurable } from "../service/run-draft.ts";

export interface StartedRun {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** The path of the run. It has no scheme and host, because some clients refuse a URL of another origin. */
  readonly path: string;
  /** Whether the run is cancelled when the client disconnects. */
  readonly cancelOnDisconnect: boolean;
}

type StartDeps = Pick<RouteDeps, "configurableHeaders">;

/** Reads a request for a run on the thread in the path, and starts the run. */
export async function startRun(deps: StartDeps, call: RouteCall): Promise<StartedRun> {
  const key = call.thread();
  const body = await call.body();
  const again = requestKey(call, key.thread, body);
  const request = withConfigurable(parseRunRequest(body), deps.configurableHeaders(call.request));
  const run = await call.service.runs.start(key, request, { again });
  return { key, run, path: runPath(run), cancelOnDisconnect: request.on_disconnect === "cancel" };
}

/** Reads an event for the thread's machine, and starts the run that processes it. */
export async function sendEvent(deps: StartDeps, call: RouteCall): Promise<RunRecord> {
  const key = call.thread();
  const event = machineEventSchema.parse(await call.body("kept"));
  const again = requestKey(call, `${key.thread}/events`, event);
  const configurable = deps.configurableHeaders(call.request);
  return call.service.events.send(key, event, { again, configurable, metadata: metadataIn(call) });
}

/** The metadata of an event's run, from the query, because the whole body is the event. @throws ServiceError `validation.failed` */
function metadataIn({ query }: RouteCall): JsonObject | undefined {
  const text = query.text("metadata");
  if (text === undefined) return undefined;
  let metadata: unknown;
  try {
    metadata = JSON.parse(text);
  } catch {
    // The check below refuses it.
  }
  if (!isObject(metadata)) throw invalidField("metadata", "must be a JSON object");
  return metadata;
}

/** Starts a run on a temporary thread, for a request that names no thread. `attended`: the client waits for the run's result. */
export async function startThreadlessRun(
  deps: StartDeps,
  call: RouteCall,
  attended: boolean,
): Promise<StartedRun> {
  const { tenant } = call;
  const body = await call.body();
  const again = requestKey(call, "", body);
  const request = withConfigurable(parseRunRequest(body), deps.configurableHeaders(call.request));
  // A run whose client waits for the result is cancelled when the client disconnects, because no other client could read the result. With
  // `on_disconnect: "continue"` it is not cancelled.
  const cancelOnDisconnect = attended && request.on_disconnect !== "continue";
  const temporary = cancelOnDisconnect ? "bound" : attended ? "free" : "background";
  const run = await call.service.runs.startAlone(tenant, request, temporary, { again });
  return { key: { tenant, thread: run.thread_id }, run, path: threadlessRunPath(run), cancelOnDisconnect };
}

/** Starts the runs of a batch: all of them or, if one is refused, none. */
export async function startBatch(deps: StartDeps, call: RouteCall): Promise<readonly RunRecord[]> {
  const requests = parseBatchRequest(await call.list());
  const headers = deps.configurableHeaders(call.request);
  return call.service.runs.startBatch(
    call.tenant,
    requests.map((request) => withConfigurable(request, headers)),
  );
}

/** The maximum length of an idempotency key, in characters. */
const MAX_KEY_CHARACTERS = 255;

/**
 * The request's idempotency key, with the content that a repeated request must have; undefined if it has no key.
 * @throws ServiceError `validation.failed` if the key is too long
 */
function requestKey(call: RouteCall, routePath: string, body: RawBody): IdempotencyKey | undefined {
  const key = call.request.header("idempotency-key");
  if (key === undefined || key === "") return undefined;
  if (key.length > MAX_KEY_CHARACTERS) {
    throw invalidField("idempotency-key", `must have at most ${MAX_KEY_CHARACTERS} characters`);
  }
  return { key: startKeyOf(key), content: `${routePath}\n${JSON.stringify(body)}` };
}

export const runPath = (run: RunRecord): string => `/threads/${run.thread_id}/runs/${run.run_id}`;
export const threadlessRunPath = (run: RunRecord): string => `/runs/${run.run_id}`;

/**
 * Calls `left` and, if `cancelOnDisconnect` is true, cancels the run: when the client disconnects, or at once if the client has already
 * disconnected. If only the connection to the process that forwarded the request has ended, the run is cancelled later, unless the request
 * is sent again.
 */
export function handleDisconnect(
  { logger, isForPeers = false, unattendedRuns }: Pick<RouteDeps, "logger" | "isForPeers" | "unattendedRuns">,
  call: RouteCall,
  { key, run, cancelOnDisconnect }: StartedRun,
  left: () => void,
): void {
  const cancel = () => {
    call.service.runs.cancel(key, run.run_id, "interrupt").catch((cause: unknown) => {
      // Two errors are expected: the run has ended and was deleted with its thread, or the server is stopping, and cancels the run at its
      // next start.
      const isOver =
        cause instanceof ServiceError &&
        (cause.code.endsWith(".not_found") || cause.code === "server.draining");
      logger[isOver ? "debug" : "warn"]("a run whose client left could not be cancelled", {
        run: run.run_id,
        error: String(cause),
      });
    });
  };
  const gone = () => {
    left();
    if (!cancelOnDisconnect) return;
    if (call.reply.isPeerLost === true && unattendedRuns !== undefined) unattendedRuns.lost(key, run, cancel);
    else cancel();
  };
  unattendedRuns?.attended(key, run);
  // A shutdown of this server disconnects the client, so it must end the run too. If the request comes from another process of this server,
  // the client stays connected to that process, and the run continues.
  if (cancelOnDisconnect && !isForPeers) call.service.runs.cancelOnDisconnect(key, run.run_id);
  if (call.reply.aborted) gone();
  else call.reply.onAbort(gone);
}

/** Stream modes that a request names, or those with which a run was started. */
export type StreamModeList = readonly StreamMode[];

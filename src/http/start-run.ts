import { ServiceError } from "../model/errors.ts";
import type { RunRecord, StreamMode } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Call } from "./request-context.ts";
import type { HttpDeps } from "./deps.ts";
import type { RequestKey } from "../service/idempotency.ts";
import type { RawBody } from "../schemas/body.ts";
import { invalidField } from "../schemas/error-responses.ts";
import { runRequest } from "../schemas/run-request.ts";

export interface Started {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  /** Where the run is, relative: some clients refuse another origin. */
  readonly path: string;
  /** What the client wants to become of the run when it goes away. */
  readonly cancelOnDisconnect: boolean;
}

/** Reads a request for a run on a thread and starts it: the same for all ways to look at its outcome. */
export async function startRun({ service }: HttpDeps, call: Call): Promise<Started> {
  const key = call.thread();
  const body = await call.body();
  const again = requestKey(call, key.thread, body);
  const request = runRequest(body);
  const run = await service.runs.start(key, request, again);
  return { key, run, path: runPath(run), cancelOnDisconnect: request.on_disconnect === "cancel" };
}

/** The same for a run that is given no thread. `attended`: its client stays to hear its outcome. */
export async function startAlone({ service }: HttpDeps, call: Call, attended: boolean): Promise<Started> {
  const { tenant } = call;
  const body = await call.body();
  const again = requestKey(call, "", body);
  const request = runRequest(body);
  // Nobody else would ever hear of it.
  const cancelOnDisconnect = attended && request.on_disconnect !== "continue";
  const temporary = cancelOnDisconnect ? "bound" : attended ? "free" : "background";
  const run = await service.runs.startAlone(tenant, request, temporary, again);
  return { key: { tenant, thread: run.thread_id }, run, path: alonePath(run), cancelOnDisconnect };
}

/** Characters of an idempotency key. */
const LONGEST_KEY = 255;

/** By what its client names the request, where it does. @throws ServiceError `validation.failed` */
function requestKey(call: Call, place: string, body: RawBody): RequestKey | undefined {
  const key = call.request.header("idempotency-key");
  if (key === undefined || key === "") return undefined;
  if (key.length > LONGEST_KEY) {
    throw invalidField("idempotency-key", `must have at most ${LONGEST_KEY} characters`);
  }
  return { key: `request ${key}`, says: `${place}\n${JSON.stringify(body)}` };
}

export const runPath = (run: RunRecord): string => `/threads/${run.thread_id}/runs/${run.run_id}`;
export const alonePath = (run: RunRecord): string => `/runs/${run.run_id}`;

/** Tells the run's end to come when the peer goes away, also when it has gone by now. */
export function onDisconnect(
  { service, logger }: HttpDeps,
  call: Call,
  { key, run, cancelOnDisconnect }: Started,
  left: () => void,
): void {
  const gone = () => {
    left();
    if (!cancelOnDisconnect) return;
    service.runs.cancel(key, run.run_id, "interrupt").catch((cause: unknown) => {
      // One that has ended may be gone already, with its thread; a stop has left the others to the next start.
      const isOver =
        cause instanceof ServiceError &&
        (cause.code.endsWith(".not_found") || cause.code === "server.draining");
      logger[isOver ? "debug" : "warn"]("a run whose client left could not be cancelled", {
        run: run.run_id,
        error: String(cause),
      });
    });
  };
  if (cancelOnDisconnect) service.runs.cancelOnDisconnect(key, run.run_id);
  if (call.reply.aborted) gone();
  else call.reply.onAbort(gone);
}

/** A filter of stream modes as the run's own list is one. */
export type Modes = readonly StreamMode[];

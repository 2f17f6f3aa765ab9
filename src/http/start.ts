import type { RunRecord, StreamMode } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Call } from "./call.ts";
import type { HttpDeps } from "./deps.ts";
import { runRequest } from "../wire/run-request.ts";
import { refuseUnservedQuery } from "../wire/unserved.ts";

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
  const request = await readRun(call);
  const run = await service.runs.start(key, request);
  return { key, run, path: runPath(run), cancelOnDisconnect: request.on_disconnect === "cancel" };
}

/** The same for a run that is given no thread. `attended`: its client stays to hear its outcome. */
export async function startAlone({ service }: HttpDeps, call: Call, attended: boolean): Promise<Started> {
  const { tenant } = call;
  const request = await readRun(call);
  // Nobody else would ever hear of it.
  const cancelOnDisconnect = attended && request.on_disconnect !== "continue";
  const temporary = cancelOnDisconnect ? "bound" : attended ? "free" : "background";
  const run = await service.runs.startAlone(tenant, request, temporary);
  return { key: { tenant, thread: run.thread_id }, run, path: alonePath(run), cancelOnDisconnect };
}

async function readRun(call: Call) {
  refuseUnservedQuery(call.query, "create");
  return runRequest(await call.body());
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
    service.runs.cancel(key, run.run_id, "interrupt", false).catch((cause: unknown) => {
      logger.warn("a run whose client left could not be cancelled", {
        run: run.run_id,
        error: String(cause),
      });
    });
  };
  if (call.reply.aborted) gone();
  else call.reply.onAbort(gone);
}

/** A filter of stream modes as the run's own list is one. */
export type Modes = readonly StreamMode[];

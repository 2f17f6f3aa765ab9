import type { AdmitTimerRun } from "../../actors/thread-system-interface.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import { isSameTimer, nextTimer, type Timer } from "../model/machine-timer.ts";
import type { Engine } from "../ports/engine.ts";
import { SemaphorePerTenant } from "../ports/fair-semaphore.ts";
import type { Journal } from "../ports/journal.ts";
import type { RunRequest } from "./run-draft.ts";
import type { Runs } from "./runs.ts";

interface Deps {
  readonly engine: Pick<Engine, "continuationError">;
  readonly journal: Pick<Journal, "checkpoint" | "sharedValues" | "thread">;
  readonly runs: Pick<Runs, "start">;
}

/**
 * The largest number of timers of one tenant whose runs are admitted (started or queued) at the same time. A
 * machine may set any number of timers for the same moment; so many runs at once would make the requests of
 * other tenants wait.
 */
const MAX_ADMITTED_TOGETHER = 4;

/** Codes of errors that mean that the thread was changed or deleted after its timer was read. */
const CHANGED: ReadonlySet<string> = new Set(["run.conflict", "thread.not_found"]);

/**
 * Creates the handler of due timers. It starts or queues a run that processes the timer's event, with the thread's last assistant. The
 * handler throws `resume.invalid` if the thread's machine cannot continue, for example because the graph lacks its version. The timer then
 * stays, and its run does not fail.
 */
export function createTimerHandler({ engine, journal, runs }: Deps): AdmitTimerRun {
  const slots = new SemaphorePerTenant(MAX_ADMITTED_TOGETHER);
  return (key, timer) => slots.run(key.tenant, () => admit(key, timer));

  async function admit(key: ThreadKey, timer: Timer): Promise<boolean> {
    const thread = await journal.thread(key);
    const next = thread === undefined ? null : nextTimer(thread);
    if (thread === undefined || next === null || !isSameTimer(next, timer)) return false;
    const error = await continuationError(key, thread);
    if (error !== null) throw new ServiceError("resume.invalid", error.message);
    const request: RunRequest = {
      assistant_id: String(thread.metadata["assistant_id"]),
      multitask_strategy: "enqueue",
      origin: "timer",
    };
    try {
      await runs.start(key, request, { event: { timer } });
      return true;
    } catch (cause) {
      if (cause instanceof ServiceError && CHANGED.has(cause.code)) return false;
      throw cause;
    }
  }
  async function continuationError(
    key: ThreadKey,
    { checkpoint: id, metadata: { graph_id: graph } }: ThreadRecord,
  ) {
    const checkpoint =
      id === null || typeof graph !== "string" ? undefined : await journal.checkpoint(key, "", id);
    if (checkpoint === undefined) return null;
    const values = await journal.sharedValues(key, checkpoint);
    return engine.continuationError?.(String(graph), checkpoint, values) ?? null;
  }
}

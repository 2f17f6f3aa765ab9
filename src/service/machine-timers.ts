import type { AdmitTimerRun } from "../../actors/thread-system.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import { isSameTimer, nextTimer, type Timer } from "../model/machine-timer.ts";
import { TenantSlots } from "../ports/slots.ts";
import type { Journal } from "../ports/journal.ts";
import type { RunRequest } from "./run-draft.ts";
import type { Runs } from "./runs.ts";

interface Deps {
  readonly journal: Pick<Journal, "thread">;
  readonly runs: Pick<Runs, "start">;
}

/**
 * Timers of one tenant whose runs are being admitted at the same time. A machine may set any number of timers for the same moment; so many
 * runs at once would make the requests of other tenants wait.
 */
const ADMITTED_TOGETHER = 4;

/** Errors of a thread that was changed or deleted meanwhile. */
const CHANGED: ReadonlySet<string> = new Set(["run.conflict", "thread.not_found"]);

/** Starts or queues the run of a thread's last assistant that takes the event of a due timer. */
export function createTimerHandler({ journal, runs }: Deps): AdmitTimerRun {
  const slots = new TenantSlots(ADMITTED_TOGETHER);
  return (key, timer) => slots.run(key.tenant, () => admit(key, timer));

  async function admit(key: ThreadKey, timer: Timer): Promise<boolean> {
    const thread = await journal.thread(key);
    const next = thread === undefined ? null : nextTimer(thread);
    if (next === null || !isSameTimer(next, timer)) return false;
    const request: RunRequest = {
      assistant_id: String(thread?.metadata["assistant_id"]),
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
}

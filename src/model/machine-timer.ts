import type { CheckpointHead } from "./checkpoint.ts";
import { isObject } from "./json.ts";
import type { ThreadRecord } from "./thread.ts";

/**
 * A timer of a machine. Its id is unique among the timers of a checkpoint. Different timers in two branches of a thread may have the same
 * id; `due` tells them apart.
 */
export interface Timer {
  readonly id: string;
  /** The time at which the timer fires, in epoch milliseconds. */
  readonly due: number;
}

/** A timer of the machine in a thread's latest checkpoint. */
export interface ThreadTimer extends Timer {
  /**
   * The id of the run that sends the timer's event to the machine. The run is admitted when the timer is due; before that, the id is null.
   */
  readonly run: string | null;
}

type ThreadTimers = ThreadRecord["timers"];

export const isSameTimer = (one: Timer, other: Timer): boolean =>
  one.id === other.id && one.due === other.due;

export function isTimer(value: unknown): value is Timer {
  if (!isObject(value)) return false;
  const { id, due } = value;
  return typeof id === "string" && Number.isSafeInteger(due) && (due as number) >= 0;
}

/**
 * The timers of a thread whose latest checkpoint is `head`; null if there are none. A timer that is also in `before`,
 * the thread's timers before that checkpoint, keeps its run.
 */
export function timersAtCheckpoint(
  head: Pick<CheckpointHead, "engine"> | null,
  before: ThreadTimers,
): ThreadTimers {
  const timers = head?.engine?.["timers"];
  if (!Array.isArray(timers)) return null;
  return timers.filter(isTimer).map(({ id, due }) => {
    const known = before?.find((one) => isSameTimer(one, { id, due }));
    return { id, due, run: known?.run ?? null };
  });
}

/**
 * Copies the timers, and sets the run of each timer that `isIt` selects. `run`: the run that was admitted to send the timer's event; null:
 * that run was withdrawn.
 */
export function timersWith(
  timers: ThreadTimers,
  isIt: (timer: ThreadTimer) => boolean,
  run: string | null,
): ThreadTimers {
  return timers === null ? null : timers.map((timer) => (isIt(timer) ? { ...timer, run } : timer));
}

/**
 * The timer that is due first among a thread's timers for which no run has been admitted; null if there is
 * none, or if timers cannot fire. After a failed or cancelled run, timers do not fire: the machine takes no
 * events until another run continues it.
 */
export function nextTimer({ timers, active, queue, rest }: ThreadRecord): Timer | null {
  if (timers === null || (active === null && queue.length === 0 && rest !== "interrupted")) return null;
  let next: Timer | null = null;
  for (const timer of timers) {
    if (timer.run === null && (next === null || timer.due < next.due)) next = timer;
  }
  return next;
}

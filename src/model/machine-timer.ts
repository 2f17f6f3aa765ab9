import type { CheckpointHead } from "./checkpoint.ts";
import { isObject } from "./json.ts";
import type { ThreadRecord } from "./thread.ts";

/** A timer of a machine. Its id is unique among the timers of a checkpoint; with `due`, among those of the thread's branches. */
export interface Timer {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly due: number;
}

/** A timer of the machine in a thread's latest checkpoint. */
export interface ThreadTimer extends Timer {
  /** The run that takes its event, admitted when it was due; null before. */
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

/** The timers of a thread whose latest checkpoint is `head`. Those that were due `before` keep their runs. */
export function timersAt(head: Pick<CheckpointHead, "engine"> | null, before: ThreadTimers): ThreadTimers {
  const timers = head?.engine?.["timers"];
  if (!Array.isArray(timers)) return null;
  return timers.filter(isTimer).map(({ id, due }) => {
    const known = before?.find((one) => isSameTimer(one, { id, due }));
    return { id, due, run: known?.run ?? null };
  });
}

/** The timers after runs were admitted to take events of them, or were withdrawn before they did (`run` is null). */
export function timersWith(
  timers: ThreadTimers,
  isIt: (timer: ThreadTimer) => boolean,
  run: string | null,
): ThreadTimers {
  return timers === null ? null : timers.map((timer) => (isIt(timer) ? { ...timer, run } : timer));
}

/**
 * The timer of a thread that is due first. Timers wait while the thread rests in a failed or cancelled run: nothing would take their events
 * until another run goes on.
 */
export function nextTimer({ timers, active, queue, rest }: ThreadRecord): Timer | null {
  if (timers === null || (active === null && queue.length === 0 && rest !== "interrupted")) return null;
  let next: Timer | null = null;
  for (const timer of timers) {
    if (timer.run === null && (next === null || timer.due < next.due)) next = timer;
  }
  return next;
}

import type { timersOf } from "../xstate-clock.ts";
import { createActor } from "../xstate.ts";
import type { Cell } from "./live-thread.ts";
import type { ThreadMachine } from "./thread-machine.ts";

/** The actor of a thread that wakes: a root of its own, not started yet. */
export function threadActor(
  chart: ThreadMachine,
  { record, runs }: Cell,
  name: string,
  clock: ReturnType<typeof timersOf>,
) {
  const input = { thread: name, active: record.active, queue: record.queue, rest: record.rest };
  // At rest it need not walk there.
  return createActor(
    chart,
    runs.size === 0 ? { input, clock, snapshot: chart.resting(input) } : { input, clock },
  );
}

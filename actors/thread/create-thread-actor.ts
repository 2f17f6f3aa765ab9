import type { createXStateClock } from "../xstate-clock.ts";
import { createActor } from "../xstate.ts";
import type { LiveThread } from "./live-thread.ts";
import { threadChartConfig, type ThreadActorLogic } from "./thread-chart.ts";

/** Creates the actor of a thread: the root of its own XState system, not started yet. */
export function createThreadActor(
  chart: ThreadActorLogic,
  { record, runs }: LiveThread,
  name: string,
  clock: ReturnType<typeof createXStateClock>,
) {
  const input = { thread: name, active: record.active, queue: record.queue, rest: record.rest };
  // The actor of an idle thread starts directly in its settled state, which saves the transitions that lead there.
  return createActor(
    chart,
    runs.size === 0
      ? { input, clock, snapshot: chart.snapshotIn(input.rest, threadChartConfig.context({ input })) }
      : { input, clock },
  );
}

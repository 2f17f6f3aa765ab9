import type { AnyActorLogic } from "./xstate.ts";
import type { RunInput } from "./messages.ts";
import { runMachine, type RunDelays } from "./run/run-machine.ts";
import { taskMachine } from "./task.ts";
import type { OngoingGraph } from "./run/attempt-handle.ts";
import type { Cell } from "./thread/live-thread.ts";
import { threadMachine } from "./thread/thread-machine.ts";
import { askToStart, start } from "./thread/run-start.ts";

/** The three statecharts of one server, with effects that act on its live threads. */
export function charts(cellNamed: (name: string) => Cell | undefined, delays: RunDelays) {
  // An actor may receive one more message after its thread was removed from memory: then there is nothing to do.
  const graphOf = ({ thread, run, within }: RunInput): OngoingGraph | undefined => {
    const attempt = cellNamed(thread)?.attempt;
    return attempt?.id === run ? attempt.graph(within) : undefined;
  };
  // A task's node may be a graph, which the run's chart executes: each chart needs the other.
  const task = taskMachine(
    { execute: (input, self) => graphOf(input)?.execute(input.task, self) },
    (): AnyActorLogic => run,
  );
  const run = runMachine(
    {
      load: (input, self, stopped) => graphOf(input)?.load(self, stopped),
      plan: (input) => graphOf(input)?.next(),
      abort: (input) => graphOf(input)?.abort(),
      close: (input, stop) => graphOf(input)?.close(stop),
    },
    task,
    delays,
  );
  const thread = threadMachine(
    {
      ask: (name, id) => {
        const cell = cellNamed(name);
        if (cell !== undefined) askToStart(cell, id);
      },
      start: (name, id) => {
        const cell = cellNamed(name);
        if (cell === undefined) return;
        // Nothing to do where the admission has stored the start in its own append.
        if (cell.attempt?.id !== id) start(cell, id);
      },
    },
    run,
  );
  return { thread, run, task };
}

export type Charts = ReturnType<typeof charts>;

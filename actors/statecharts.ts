import type { AnyActorLogic } from "./xstate.ts";
import type { RunInput } from "./messages.ts";
import { runMachine, type RunDelays } from "./run/run-machine.ts";
import { taskMachine } from "./task.ts";
import type { GraphHandle } from "./run/attempt-handle.ts";
import type { LiveThread } from "./thread/live-thread.ts";
import { threadMachine } from "./thread/thread-machine.ts";
import { requestSlot, start } from "./thread/run-start.ts";

/** The three statecharts of one server, with effects that act on its live threads. */
export function createStatecharts(
  liveThreadNamed: (name: string) => LiveThread | undefined,
  delays: RunDelays,
) {
  // An actor may receive one more message after its thread was removed from memory: then there is nothing to do.
  const graphOf = ({ thread, run, within }: RunInput): GraphHandle | undefined => {
    const attempt = liveThreadNamed(thread)?.attempt;
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
        const liveThread = liveThreadNamed(name);
        if (liveThread !== undefined) requestSlot(liveThread, id);
      },
      start: (name, id) => {
        const liveThread = liveThreadNamed(name);
        if (liveThread === undefined) return;
        // Nothing to do where the admission has stored the start in its own append.
        if (liveThread.attempt?.id !== id) start(liveThread, id);
      },
    },
    run,
  );
  return { thread, run, task };
}

export type Statecharts = ReturnType<typeof createStatecharts>;

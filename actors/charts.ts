import type { RunInput } from "./messages.ts";
import { runMachine, type RunDelays } from "./run/machine.ts";
import { taskMachine } from "./node.ts";
import type { Ongoing } from "./run/ongoing.ts";
import type { Cell } from "./thread/cell.ts";
import { threadMachine } from "./thread/machine.ts";
import { askToStart, start } from "./thread/starting.ts";

/** The three statecharts of one server, their effects bound to its cells. */
export function charts(cellNamed: (name: string) => Cell | undefined, delays: RunDelays) {
  // An actor may outlive its cell by a message: then there is nothing to do.
  const attemptOf = ({ thread, run }: RunInput): Ongoing | undefined => {
    const attempt = cellNamed(thread)?.attempt;
    return attempt?.id === run ? attempt : undefined;
  };
  const task = taskMachine({
    execute: (input, self) => attemptOf(input)?.execute(input.task, self),
  });
  const run = runMachine(
    {
      load: (input, self, stopped) => attemptOf(input)?.load(self, stopped),
      plan: (input) => attemptOf(input)?.next(),
      abort: (input) => attemptOf(input)?.abort(),
      close: (input, stop) => attemptOf(input)?.close(stop),
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
        // Its admission has its start in the same append.
        if (cell.attempt?.id !== id) start(cell, id);
      },
    },
    run,
  );
  return { thread, run, task };
}

export type Charts = ReturnType<typeof charts>;

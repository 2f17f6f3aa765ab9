import { close } from "./run/closing.ts";
import { runMachine, type RunInput } from "./run/machine.ts";
import { taskMachine } from "./node.ts";
import type { Attempt } from "./run/attempt.ts";
import type { Cell } from "./thread/cell.ts";
import { threadMachine } from "./thread/machine.ts";
import { start } from "./thread/starting.ts";

/** The three statecharts of one server, their effects bound to its cells. */
export function charts(cellNamed: (name: string) => Cell | undefined, grace: number) {
  // An actor may outlive its cell by a message: then there is nothing to do.
  const attemptOf = ({ thread, run }: RunInput): Attempt | undefined => {
    const attempt = cellNamed(thread)?.attempt;
    return attempt?.id === run ? attempt : undefined;
  };
  const task = taskMachine({
    execute: (input, self) => attemptOf(input)?.tasks.execute(input.task, self),
  });
  const run = runMachine(
    {
      load: (input, self) => attemptOf(input)?.load(self),
      plan: (input) => attemptOf(input)?.next(),
      abort: (input) => attemptOf(input)?.tasks.abort("The run was stopped"),
      close: (input, stop) => {
        const attempt = attemptOf(input);
        if (attempt !== undefined) close(attempt, stop);
      },
    },
    task,
    grace,
  );
  const thread = threadMachine(
    {
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

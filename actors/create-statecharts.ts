import type { RunInput } from "./actor-events.ts";
import { createRunChart, type RunEffects, type RunLogic } from "./run/run-chart.ts";
import { interpretStatechart, type Interpreter } from "./statechart-interpreter.ts";
import { createTaskChart, type TaskLogic } from "./task-chart.ts";
import type { GraphExecution } from "./run/graph-execution.ts";
import type { LiveThread } from "./thread/live-thread.ts";
import { createThreadChart, type ThreadEffects, type ThreadActorLogic } from "./thread/thread-chart.ts";
import { requestSlot, startPendingRun } from "./thread/run-start.ts";

/** Makes the three statecharts (thread, run, task) of one shard, with effects that act on its live threads. */
export function createStatecharts(
  liveThreadNamed: (name: string) => LiveThread | undefined,
  {
    grace,
    interpret = interpretStatechart,
  }: { readonly grace: number; readonly interpret?: Interpreter | undefined },
): Statecharts {
  // The graph that an actor of a run executes; undefined if the run has no attempt in memory any more, for
  // example because its thread was removed from memory. The actor may then still receive one more message,
  // which has no effect.
  const graphOf = ({ thread, run, within }: RunInput): GraphExecution | undefined => {
    const attempt = liveThreadNamed(thread)?.attempt;
    return attempt?.id === run ? attempt.graph(within) : undefined;
  };
  // A task's node may be a graph, which the run's chart executes. So each of the two charts needs the other.
  const task: TaskLogic = interpret(
    createTaskChart(
      { execute: (input, self) => graphOf(input)?.tasks.execute(input.task, self) },
      { run: () => run, task: () => task },
    ),
  );
  const runEffects: RunEffects = {
    load: (input, self, stopped) => graphOf(input)?.load(self, stopped),
    plan: (input) => graphOf(input)?.next(),
    abortPlanning: (input) => graphOf(input)?.abortPlanning(),
    abort: (input) => graphOf(input)?.tasks.abort("The run was stopped"),
    sayClosing: ({ thread, within }) => {
      // The end of a subgraph does not end the run: it is the outcome of a task.
      if (within === null) liveThreadNamed(thread)?.actor?.send({ type: "RUN.CLOSING" });
    },
    close: (input, stop) => {
      const graph = graphOf(input);
      graph?.origin.close(graph, stop);
    },
  };
  const run: RunLogic = interpret(createRunChart(runEffects, task, grace));
  const threadEffects: ThreadEffects = {
    ask: (name, id) => {
      const liveThread = liveThreadNamed(name);
      if (liveThread !== undefined) requestSlot(liveThread, id);
    },
    start: (name, id) => {
      const liveThread = liveThreadNamed(name);
      if (liveThread === undefined) return;
      // If the append that admitted the run has also stored its start, there is nothing to do.
      if (liveThread.attempt?.id !== id) startPendingRun(liveThread, id);
    },
  };
  return { thread: interpret(createThreadChart(threadEffects, run)), run, task };
}

export interface Statecharts {
  readonly thread: ThreadActorLogic;
  readonly run: RunLogic;
  readonly task: TaskLogic;
}

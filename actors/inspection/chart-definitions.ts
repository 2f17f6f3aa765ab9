import { fromCallback, type AnyActorLogic } from "../xstate.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { taskChart } from "../task.ts";
import { runChart } from "../run/run-chart.ts";
import type { TaskMachine } from "../task.ts";
import type { RunMachine } from "../run/run-machine.ts";
import { xstateThreadChart } from "../thread/xstate-chart.ts";

/** The definitions of the three statecharts, as XState reads them, for drawings. Nothing of them runs. */
export function chartDefinitions(): { readonly [machine: string]: JsonObject } {
  const nothing = (): void => undefined;
  const none = fromCallback(nothing) as AnyActorLogic;
  const run = runChart(
    { load: nothing, plan: nothing, abort: nothing, close: nothing },
    none as TaskMachine,
    0,
  );
  const thread = xstateThreadChart({ ask: nothing, start: nothing }, none as RunMachine);
  return { thread: plain(thread.config), run: plain(run.config), task: plain(taskChart) };
}

/** JSON of a definition. Functions are left out: the chart refers to them by name. */
function plain(definition: object): JsonObject {
  return JSON.parse(JSON.stringify(definition)) as JsonObject;
}

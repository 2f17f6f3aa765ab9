import type { JsonObject } from "../../src/model/json.ts";
import { runConfig } from "../run/run-chart.ts";
import { taskConfig } from "../task-chart.ts";
import { threadConfig } from "../thread/thread-chart.ts";

/** The definitions of the three statecharts, as XState reads them, for drawings. */
export function chartDefinitions(): { readonly [machine: string]: JsonObject } {
  return { thread: plain(threadConfig), run: plain(runConfig), task: plain(taskConfig) };
}

/** JSON of a definition. Functions are left out: the chart refers to them by name. */
function plain(definition: object): JsonObject {
  return JSON.parse(JSON.stringify(definition)) as JsonObject;
}

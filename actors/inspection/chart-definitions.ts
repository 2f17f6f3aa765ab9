import type { JsonObject } from "../../src/model/json.ts";
import { runChartConfig } from "../run/run-chart.ts";
import { taskChartConfig } from "../task-chart.ts";
import { threadChartConfig } from "../thread/thread-chart.ts";

/** The definitions of the three statecharts, as XState reads them, for drawings. */
export function chartDefinitions(): { readonly [machine: string]: JsonObject } {
  return { thread: plain(threadChartConfig), run: plain(runChartConfig), task: plain(taskChartConfig) };
}

/**
 * Copies a definition as plain JSON, without its functions. The definition refers to guards and actions by name, so
 * these names stay.
 */
function plain(definition: object): JsonObject {
  return JSON.parse(JSON.stringify(definition)) as JsonObject;
}

import { isObject } from "../model/json.ts";
import { stringifyJson } from "../model/stringify-json.ts";
import { serialise } from "./serialisation.ts";
import { isAtLeastVersion } from "./user-library.ts";

/**
 * The namespace of the graph that a tool was called in. Versions of LangGraph.js below 1.7 stream a call under the namespace of its task,
 * whose last segment is removed.
 */
export const toolNamespace = (ns: readonly string[], version: string): readonly string[] =>
  isAtLeastVersion(version, "1.7.0") ? ns : ns.slice(0, -1);

/** The data of a tool's event as JSON text. Tools may have any output: what cannot be stored is left out, instead of failing the run. */
export function toolEventText(payload: unknown): string {
  try {
    return stringifyJson(serialise(payload));
  } catch {
    const { event, toolCallId, name } = isObject(payload) ? payload : {};
    return stringifyJson(serialise({ event, toolCallId, name }));
  }
}

/** Errors by which LangGraph.js pauses or stops a graph. The tool in which one is thrown has not failed. */
const PAUSES: ReadonlySet<unknown> = new Set(["GraphInterrupt", "NodeInterrupt", "GraphDrained"]);

/** Whether a payload says that a tool has failed because its graph pauses. LangGraph.js below 1.7 streams such payloads. */
export const isPauseOfTool = (payload: unknown): boolean =>
  isObject(payload) && payload["event"] === "on_tool_error" && PAUSES.has(nameOf(payload["error"]));

const nameOf = (error: unknown): unknown => (error instanceof Error ? error.name : undefined);

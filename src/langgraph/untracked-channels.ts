import { isObject, type JsonObject } from "../model/json.ts";
import { compiledGraphAt } from "./node-interception.ts";
import type { CompiledGraph } from "./exported-graph.ts";

const NONE: ReadonlySet<string> = new Set();

/**
 * The keys of a graph's state that are never stored (LangGraph's `UntrackedValue`), for the graph at a namespace. Their values often cannot
 * be serialised, such as a connection. For graphs that a node function calls, the keys are not known, and the result is empty.
 */
export function untrackedKeys(root: CompiledGraph, ns: string): ReadonlySet<string> {
  const channels = compiledGraphAt(root, ns)?.channels as
    | { readonly [key: string]: { readonly lc_graph_name?: unknown } }
    | undefined;
  const names = Object.entries(channels ?? {}).flatMap(([key, channel]) =>
    channel.lc_graph_name === "UntrackedValue" ? [key] : [],
  );
  return names.length === 0 ? NONE : new Set(names);
}

/** Removes the state keys `keys` from a payload that LangGraph streams in the mode `mode`. */
export function streamPayloadWithoutKeys(mode: string, payload: unknown, keys: ReadonlySet<string>): unknown {
  if (keys.size === 0 || !isObject(payload)) return payload;
  switch (mode) {
    case "values":
      return without(payload, keys);
    case "updates":
      return mapped(payload, (update) =>
        Array.isArray(update) ? update.map((one) => without(one, keys)) : without(update, keys),
      );
    case "checkpoints":
      return { ...payload, values: without(payload["values"], keys) };
    case "tasks": {
      const visible = { ...payload };
      for (const part of ["input", "result"])
        if (part in payload) visible[part] = without(payload[part], keys);
      return visible;
    }
    default:
      return payload;
  }
}

function without(value: unknown, keys: ReadonlySet<string>): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.has(key)));
}

const mapped = (value: JsonObject, change: (member: unknown) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([key, member]) => [key, change(member)]));

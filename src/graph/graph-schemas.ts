import type { GraphSchemas } from "../model/graph-schemas.ts";
import type { JsonObject } from "../model/json.ts";
import { type DescribedGraph, type GraphDefinition, subgraphOf } from "./definition.ts";
import { JSON_SCHEMA_DIALECT, jsonSchemaOf, embedSchema, type SchemaSide } from "./json-schema-conversion.ts";
import type { Schema } from "./standard-schema.ts";

/**
 * Makes the JSON Schemas of a graph's input, output, state and context. A key that cannot be described may have any value. No input key is
 * required, because the thread may already have a value for it. In the schemas of the output and the state, the keys that the graph
 * requires are required: those that the input must have if the thread has no value for them. If a machine declares a schema of its input,
 * that schema is the input schema.
 */
export function definitionSchemas(definition: DescribedGraph, graph_id: string): GraphSchemas {
  const { rules, input, output, outputSchemas, required, context, name, machine } = definition;
  const title = name ?? graph_id;
  // Only the TypeScript compiler knows the types of a machine's context, so the keys and values of the initial context are used.
  const machineContext = machine?.firstContext() ?? {};
  const stored = [...rules].filter(([key, { life }]) => life !== "never" && key !== machine?.inputKey);
  const keys = [...Object.keys(machineContext), ...stored.map(([key]) => key)];
  const describe = (
    what: string,
    side: SchemaSide,
    only?: readonly string[] | null,
    own?: ReadonlyMap<string, Schema | null> | null,
    needed: readonly string[] = [],
  ): JsonObject => {
    const shown = only ? keys.filter((key) => only.includes(key)) : keys;
    const properties = shown.map((key) => {
      const schema = own?.get(key);
      const described = schema
        ? jsonSchemaOf(schema, side)
        : Object.hasOwn(machineContext, key)
          ? { default: machineContext[key] as unknown }
          : rules.get(key)?.describe?.(side);
      return [key, embedSchema(described ?? {}, `/properties/${escapePointer(key)}`)] as const;
    });
    const there = needed.filter((key) => shown.includes(key));
    return {
      $schema: JSON_SCHEMA_DIALECT,
      title: `${title} ${what}`,
      type: "object",
      properties: Object.fromEntries(properties),
      ...(there.length > 0 && { required: there }),
    };
  };
  const inputJson = machine?.schemas?.inputJson ?? null;
  const declaredInput = inputJson && {
    $schema: JSON_SCHEMA_DIALECT,
    title: `${title} input`,
    ...inputJson,
  };
  return {
    graph_id,
    input_schema: declaredInput ?? describe("input", "input", input && [...input.keys()], input),
    output_schema: describe("output", "output", output, outputSchemas, required),
    state_schema: describe("state", "output", null, null, required),
    // There is no schema for `config`: all keys are allowed in it, and the settings of a graph are in its `context`.
    config_schema: null,
    context_schema: context === undefined ? null : jsonSchemaOf(context, "input"),
  };
}

/** Escapes a key for a JSON pointer in a URI fragment. */
const escapePointer = (key: string) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"));

/** The subgraphs of a graph, or the child machines of a machine, at all levels, by their path of node names (`node|node`). */
export function subgraphsByPath(definition: GraphDefinition): ReadonlyMap<string, DescribedGraph> {
  const found = new Map<string, DescribedGraph>(definition.machine?.childMachines());
  for (const node of definition.nodes.values()) {
    const inner = subgraphOf(node);
    if (inner === null) continue;
    found.set(node.name, inner);
    for (const [path, deeper] of subgraphsByPath(inner)) found.set(`${node.name}|${path}`, deeper);
  }
  return found;
}

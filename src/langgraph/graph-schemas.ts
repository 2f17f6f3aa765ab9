import { JSON_SCHEMA_DIALECT } from "../graph/json-schema-conversion.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { TypeSchemas } from "../ports/graph-type-schemas.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import type { CompiledGraph } from "./exported-graph.ts";

/** Definitions that LangGraph's graph builder stores. They are not a public API, so each may be missing. */
interface Builder {
  readonly _schemaDefinition?: unknown;
  readonly _inputDefinition?: unknown;
  readonly _outputDefinition?: unknown;
  readonly _configSchema?: unknown;
}

/**
 * Reads the TypeScript types that a graph file declares for its graph and subgraphs. The keys of the result are the paths of nodes to the
 * subgraphs, "" for the graph itself. Resolves with null if the types are not known.
 */
export type ReadTypes = () => Promise<ReadonlyMap<string, TypeSchemas> | null>;

/**
 * JSON Schemas of a graph's input, output, state and configuration. LangGraph makes them if the graph is defined by schemas (zod,
 * StateSchema). An `Annotation` only names channels: their schemas come from their TypeScript types (`types`) or, if these are not known,
 * from the reducer and default of common channels. In the state schema, no member is required.
 */
export function langGraphSchemas(
  library: LangGraphLibrary,
  graph: CompiledGraph,
  graph_id: string,
  types?: TypeSchemas,
): GraphSchemas {
  const { schema } = library;
  const describeType = (describe: (graph: CompiledGraph) => unknown): JsonObject | null => {
    try {
      const described = describe(graph);
      return isObject(described) ? (JSON.parse(JSON.stringify(described)) as JsonObject) : null;
    } catch {
      // The schema contains something that JSON Schema cannot express, such as a date.
      return null;
    }
  };
  const builder = builderOf(graph);
  const annotated = (what: keyof TypeSchemas, ...definitions: readonly unknown[]): JsonObject | null => {
    const title = `${graph_id} ${what}`;
    const typed = types?.[what];
    if (typed) return { title, ...typed };
    const spec = definitions.find(isSpec);
    return spec === undefined ? null : annotation(library, title, spec);
  };
  const { _schemaDefinition: state, _inputDefinition: input, _outputDefinition: output } = builder;
  const { _configSchema: setup } = builder;
  const config = describeType(schema.getConfigTypeSchema) ?? annotated("config", specOf(setup));
  return {
    graph_id,
    input_schema: describeType(schema.getInputTypeSchema) ?? annotated("input", input, state),
    output_schema: describeType(schema.getOutputTypeSchema) ?? annotated("output", output, state),
    state_schema:
      withoutRequired(describeType(schema.getUpdateTypeSchema)) ?? annotated("state", state, graph.channels),
    // LangGraph.js has one schema for both configuration and context.
    config_schema: config,
    context_schema: config,
  };
}

/** The JSON Schemas of a graph. Its TypeScript types are read only if its state is not defined by schemas. */
export async function schemasWithTypes(
  library: LangGraphLibrary,
  graph: CompiledGraph,
  graph_id: string,
  readTypes: ReadTypes,
): Promise<GraphSchemas> {
  const types = isDescribed(library, graph) ? null : await readTypes();
  return langGraphSchemas(library, graph, graph_id, types?.get(""));
}

/** Whether the graph's state is defined by schemas. */
function isDescribed({ schema }: LangGraphLibrary, graph: CompiledGraph): boolean {
  try {
    return isObject(schema.getUpdateTypeSchema(graph));
  } catch {
    // The state is defined by schemas that JSON Schema cannot express.
    return true;
  }
}

/**
 * JSON Schemas of all subgraphs. The keys of the result are the paths of nodes to the subgraphs, such as `node|node`.
 * @param names the names of subgraphs that are also served as separate graphs
 */
export async function subgraphSchemas(
  library: LangGraphLibrary,
  graph: CompiledGraph,
  names: ReadonlyMap<CompiledGraph, string>,
  readTypes: ReadTypes = async () => null,
): Promise<ReadonlyMap<string, GraphSchemas>> {
  const found = new Map<string, GraphSchemas>();
  let types: ReturnType<ReadTypes> | undefined;
  for await (const [path, subgraph] of graph.getSubgraphsAsync(undefined, true)) {
    const inner = subgraph as CompiledGraph;
    const own = names.get(inner) ?? inner.getName();
    const read = () => (types ??= readTypes());
    const known = isDescribed(library, inner) ? null : await read();
    found.set(path, langGraphSchemas(library, inner, own, known?.get(path)));
  }
  return found;
}

function builderOf(graph: CompiledGraph): Builder {
  const { builder } = graph as { readonly builder?: unknown };
  return typeof builder === "object" && builder !== null ? builder : {};
}

function withoutRequired(schema: JsonObject | null): JsonObject | null {
  if (schema === null) return null;
  const { required: _, ...rest } = schema;
  return rest;
}

/** The channels of an `Annotation`, by name. */
type Spec = { readonly [key: string]: unknown };

function isSpec(value: unknown): value is Spec {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function specOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "spec" in value ? value.spec : undefined;
}

interface AnyChannel {
  readonly operator?: unknown;
  readonly initialValueFactory?: unknown;
}

function annotation({ langgraph }: LangGraphLibrary, title: string, spec: Spec): JsonObject {
  const keys = Object.keys(spec).filter((key) => !/^(__|branch:|join:)/.test(key));
  const properties = keys.map((key) => [key, described(langgraph, spec[key])] as const);
  return { $schema: JSON_SCHEMA_DIALECT, title, type: "object", properties: Object.fromEntries(properties) };
}

function described({ messagesStateReducer }: LangGraphLibrary["langgraph"], channel: unknown): JsonObject {
  const { operator, initialValueFactory: initial } = (
    typeof channel === "object" && channel !== null ? channel : {}
  ) as AnyChannel;
  if (operator === messagesStateReducer) {
    return { type: "array", items: { type: "object" }, langgraph_type: "messages" };
  }
  if (typeof initial !== "function") return {};
  try {
    return byExample((initial as () => unknown)());
  } catch {
    return {};
  }
}

/** The JSON Schema of a value's type, from an example of the value. */
function byExample(value: unknown): JsonObject {
  if (Array.isArray(value)) return { type: "array" };
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      return { type: typeof value };
    default:
      return isObject(value) ? { type: "object" } : {};
  }
}

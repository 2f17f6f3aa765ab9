import type { Pregel } from "@langchain/langgraph/pregel";
import { ServiceError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import { type FactoryRuntime, READ_ONLY_RUNTIME } from "./factory-runtime.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { ModuleExport } from "../model/module-export.ts";
import type { LibraryGraph } from "../ports/library-graph.ts";
import { resolveLibrary, type LangGraphLibrary } from "./user-library.ts";

// The types of a graph's nodes and channels are defined by the user, so they are not known here.
// oxlint-disable-next-line typescript/no-explicit-any
export type CompiledGraph = Pregel<any, any>;

/** A LangGraph.js graph that a file exports. */
export interface LoadedLangGraph extends LibraryGraph {
  readonly library: LangGraphLibrary;
  /** The graph as it was loaded. If the file exports a factory, it was called with an empty configuration. */
  readonly graph: CompiledGraph;
  /**
   * The graph for a run with this configuration. A factory that takes a configuration makes a new graph at each call.
   * @throws ServiceError `graph.invalid` if a factory does not return a graph; errors of the factory are thrown unchanged
   */
  graphFor(config: JsonObject, runtime?: FactoryRuntime): Eventually<CompiledGraph>;
  /** A hash of the names of the graph's nodes and channels, and of its fixed edges. */
  readonly hash: string;
  /** The module export where the graph's types are declared. Absent for a graph that a program passed. */
  readonly source?: ModuleExport;
}

/**
 * The export of a file (`found`), and the graph that results from it (`given`): the return value if the export is a function, otherwise the
 * export.
 */
export interface LoadedExport {
  readonly file: string;
  /** The name of the export. Absent for a graph that a program passed. */
  readonly name?: string;
  /**
   * Further files from which to resolve LangGraph.js. The file itself may resolve an installation other than the one that made the graph.
   */
  readonly alsoIn?: readonly string[];
  readonly found: unknown;
  readonly given: unknown;
}

/**
 * Loads an export as a LangGraph.js graph: a compiled graph, a builder (which is compiled), an agent of `createAgent`, or a function that
 * returns one of these. Undefined if the export is something else.
 * @throws ServiceError `config.invalid` if LangGraph.js is missing, or its version is not supported
 */
export async function loadLangGraph({
  file,
  name,
  alsoIn = [],
  found,
  given,
}: LoadedExport): Promise<LoadedLangGraph | undefined> {
  const graph = compile(given);
  if (graph === undefined) return undefined;
  const library = await resolveLibrary(file, graph, alsoIn);
  const asks = typeof found === "function" && found.length > 0;
  const callFactory = async (...given: readonly [JsonObject, FactoryRuntime]): Promise<CompiledGraph> => {
    const made = compile(await (found as (...given: readonly unknown[]) => unknown)(...given));
    if (made !== undefined) return made;
    throw new ServiceError("graph.invalid", `The function of ${file} gave no graph`);
  };
  return {
    library,
    graph,
    graphFor: (config, runtime = READ_ONLY_RUNTIME) => (asks ? callFactory(config, runtime) : graph),
    hash: hashOf(graph),
    ...(name !== undefined && { source: { file, name } }),
  };
}

/**
 * The compiled graph of a value: the value itself, the result of its method `compile`, or its member `graph`. Undefined if there is none.
 */
function compile(value: unknown): CompiledGraph | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  if (isCompiled(value)) return value;
  const { compile: build, graph } = value as { readonly compile?: unknown; readonly graph?: unknown };
  if (typeof build === "function") {
    const built: unknown = build.call(value);
    return isCompiled(built) ? built : undefined;
  }
  return isCompiled(graph) ? graph : undefined;
}

/** Whether a value is a compiled graph. A `RemoteGraph` also has LangGraph's mark `lg_is_pregel`, but no nodes. */
function isCompiled(value: unknown): value is CompiledGraph {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { readonly lg_is_pregel?: unknown }).lg_is_pregel === true &&
    "nodes" in value &&
    "channels" in value
  );
}

/** The UUID namespace of graph hashes. */
const NAMESPACE = "6c6b6f1e-60a4-5d0f-8f6a-6d2d7b1c9a10";

function hashOf({ nodes, channels, builder }: CompiledGraph & { readonly builder?: unknown }): string {
  const { edges } = isBuilder(builder) ? builder : { edges: [] };
  const shape = [
    Object.keys(nodes as object).toSorted(),
    Object.keys(channels as object).toSorted(),
    [...edges].map(String).toSorted(),
  ];
  return uuid5(JSON.stringify(shape), NAMESPACE);
}

function isBuilder(value: unknown): value is { readonly edges: Iterable<unknown> } {
  return typeof value === "object" && value !== null && (value as { edges?: unknown }).edges instanceof Set;
}

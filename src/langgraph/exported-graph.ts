import type { Pregel } from "@langchain/langgraph/pregel";
import { ServiceError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Hosted } from "../ports/hosted-graph.ts";
import { libraryOf, type Library } from "./user-library.ts";

// Whatever its nodes and channels are: their types are the user's own.
// oxlint-disable-next-line typescript/no-explicit-any
export type CompiledGraph = Pregel<any, any>;

/** A LangGraph.js graph that a file exports. */
export interface LoadedLangGraph extends Hosted {
  readonly library: Library;
  /** As it was when it was loaded: a factory was asked with an empty configuration. */
  readonly graph: CompiledGraph;
  /**
   * The graph for a run with this configuration: the one that there is, or, of a factory that takes it, another one each
   * time.
   * @throws ServiceError `graph.invalid` when a factory gives something else, and what it throws itself
   */
  compiled(config: JsonObject): Eventually<CompiledGraph>;
  /** By its nodes, channels and fixed edges. */
  readonly hash: string;
}

/** What a file exports, and what that gave where it is a function. */
export interface Exported {
  readonly file: string;
  readonly found: unknown;
  readonly given: unknown;
}

/**
 * What is exported as a LangGraph.js graph: a compiled one, a builder (it is compiled), an agent of `createAgent`, or a
 * function that gives one of these. Undefined when it is none.
 * @throws ServiceError `config.invalid` when it is one, and LangGraph.js is missing or of a version that is not served
 */
export async function langGraphOf({ file, found, given }: Exported): Promise<LoadedLangGraph | undefined> {
  const graph = compile(given);
  if (graph === undefined) return undefined;
  const library = await libraryOf(file, graph);
  const asks = typeof found === "function" && found.length > 0;
  const anew = async (config: JsonObject): Promise<CompiledGraph> => {
    const made = compile(await (found as (config: JsonObject) => unknown)(config));
    if (made !== undefined) return made;
    throw new ServiceError("graph.invalid", `The function of ${file} gave no graph`);
  };
  return {
    library,
    graph,
    compiled: (config) => (asks ? anew(config) : graph),
    hash: hashOf(graph),
  };
}

/** The compiled graph that a value is, or leads to. */
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

/** LangGraph marks what it has compiled. A graph that runs elsewhere (`RemoteGraph`) has the mark too, and no nodes. */
function isCompiled(value: unknown): value is CompiledGraph {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { readonly lg_is_pregel?: unknown }).lg_is_pregel === true &&
    "nodes" in value &&
    "channels" in value
  );
}

/** Any UUID that is nobody else's. */
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

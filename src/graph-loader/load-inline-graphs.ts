import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type GraphDefinition, isDefinition } from "../graph/definition.ts";
import { loadLangGraph, type LoadedLangGraph } from "../langgraph/exported-graph.ts";
import { ServiceError } from "../model/errors.ts";
import {
  callFactory,
  forEachGraph,
  machineAsGraph,
  type LoadedGraphs,
  type LoadOptions,
  notAGraphMessage,
  withLoadTimeout,
} from "./load-graphs.ts";

/**
 * Loads the graphs that a program passes to the server.
 * @throws ServiceError `graph.invalid` for a value that is not a graph, `config.invalid` for a graph that cannot be
 * served; both name the graph
 */
export async function loadInlineGraphs(
  graphsByName: { readonly [name: string]: unknown },
  options: LoadOptions,
): Promise<LoadedGraphs> {
  const graphs: Record<string, GraphDefinition> = {};
  const langGraphs = new Map<string, LoadedLangGraph>();
  await forEachGraph(graphsByName, async (name, found) => {
    const loaded = await loadInlineGraph(name, found, options);
    if (isDefinition(loaded)) graphs[name] = loaded;
    else langGraphs.set(name, loaded);
  });
  return { graphs, langGraphs };
}

async function loadInlineGraph(
  name: string,
  found: unknown,
  options: LoadOptions,
): Promise<GraphDefinition | LoadedLangGraph> {
  if (isDefinition(found)) return found;
  const refuse = (what: string, cause?: unknown): never => {
    throw new ServiceError("graph.invalid", `graphs.${name}: ${what}`, { cause });
  };
  const made = await withLoadTimeout(typeof found === "function" ? callFactory(found) : found, options).catch(
    (cause: unknown) => refuse(`the function gave no graph: ${String(cause)}`, cause),
  );
  if (isDefinition(made)) return made;
  const files = filesOfProgram();
  const machine = await machineAsGraph(made, files).catch((cause: Error) => {
    throw new ServiceError(
      "config.invalid",
      `graphs.${name}: the machine cannot be served: ${cause.message}`,
      {
        cause,
      },
    );
  });
  if (machine !== undefined) return machine;
  const [file = "", ...alsoIn] = files;
  const hosted = await withLoadTimeout(loadLangGraph({ file, alsoIn, found, given: made }), options).catch(
    (cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ServiceError("config.invalid", `graphs.${name}: the graph cannot be served: ${why}`, {
        cause,
      });
    },
  );
  return hosted ?? refuse(`it is no graph: ${notAGraphMessage(made)}`);
}

/** Files from which the program may have imported LangGraph.js: its main file, a file in its working directory, and this file. */
function filesOfProgram(): readonly string[] {
  const { argv } = process;
  const main = argv[1] === undefined ? [] : [argv[1]];
  return [...main, join(process.cwd(), "index.js"), fileURLToPath(import.meta.url)];
}

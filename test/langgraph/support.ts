import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { loadLangGraph, type LoadedLangGraph } from "../../src/langgraph/exported-graph.ts";
import { READ_ONLY_RUNTIME } from "../../src/langgraph/factory-runtime.ts";

/** The file of a graph in a project that has the version of LangGraph.js over which the tests run. */
export const graphFile: string = join(
  process.env["HEDDLE_TEST_LANGGRAPH_AT"] ?? import.meta.dirname,
  "graph.js",
);

/** The directory of packages from which the graph file gets LangGraph.js. */
export const langGraphModules: string =
  createRequire(graphFile)
    .resolve.paths("@langchain/langgraph")
    ?.find((path) => existsSync(join(path, "@langchain/langgraph"))) ?? "";

/** The version of LangGraph.js over which the tests run. */
export const langGraphVersion: string = (
  JSON.parse(readFileSync(join(langGraphModules, "@langchain/langgraph/package.json"), "utf8")) as {
    readonly version: string;
  }
).version;

/** True when the tests run over a LangGraph.js below 1.`minor`. */
export const isBelow = (minor: number): boolean => Number(langGraphVersion.split(".")[1]) < minor;

/** Serves compiled graphs, or factories of them, as if a file of such a project had exported them. */
export async function served(graphs: {
  readonly [name: string]: unknown;
}): Promise<ReadonlyMap<string, LoadedLangGraph>> {
  const all = new Map<string, LoadedLangGraph>();
  for (const [name, graph] of Object.entries(graphs)) {
    // oxlint-disable-next-line no-await-in-loop -- there are only a few
    const given: unknown =
      typeof graph === "function" ? await graph({ configurable: {} }, READ_ONLY_RUNTIME) : graph;
    const loaded = await loadLangGraph({ file: graphFile, found: graph, given });
    if (loaded === undefined) throw new TypeError(`"${name}" is no graph of LangGraph.js`);
    all.set(name, loaded);
  }
  return all;
}

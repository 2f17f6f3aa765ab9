import { loadLangGraph, type LoadedLangGraph } from "../../src/langgraph/exported-graph.ts";

/** Compiled graphs, as if files of the tests' own project had exported them. */
export async function served(graphs: {
  readonly [name: string]: unknown;
}): Promise<ReadonlyMap<string, LoadedLangGraph>> {
  const all = new Map<string, LoadedLangGraph>();
  for (const [name, graph] of Object.entries(graphs)) {
    // oxlint-disable-next-line no-await-in-loop -- a handful
    const loaded = await loadLangGraph({ file: import.meta.filename, found: graph, given: graph });
    if (loaded === undefined) throw new TypeError(`"${name}" is no graph of LangGraph.js`);
    all.set(name, loaded);
  }
  return all;
}

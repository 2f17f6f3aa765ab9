/**
 * Heddle as the bench measures it: the server in a process of its own, which reports its memory and the counts of its
 * storage over IPC.
 */
import { fileURLToPath } from "node:url";
import { unlimitedConcurrency } from "../../actors/concurrency-limiter.ts";
import { createApp } from "../../src/app.ts";
import * as graphs from "../graphs.ts";
import { loadLangGraph, type LoadedLangGraph } from "../../src/langgraph/exported-graph.ts";
import type { HeddleOptions } from "../rows/row.ts";
import { ownStats, reportOver } from "./report.ts";

const [, , given = "{}"] = process.argv;
const { data = "", idle, slots, keys, workers, langGraph = false } = JSON.parse(given) as HeddleOptions;
// Worker threads load their graphs from the files that a configuration names, so `burn` is also configured by its
// file.
const file = fileURLToPath(new URL("../graphs.js", import.meta.url));
const burn = { path: file, graphs: { burn: { file, name: "burn" } }, env: {} };
const { burn: _, ...others } = graphs;

/**
 * Loads the graph of the hosted rows, if the row asks for it. The other rows do not load LangGraph.js, because that
 * takes memory and time.
 */
async function langGraphs(): Promise<ReadonlyMap<string, LoadedLangGraph>> {
  if (!langGraph) return new Map();
  const compiled = (await import("../langgraph.ts")).tenNodeGraph();
  const loaded = await loadLangGraph({ file: import.meta.filename, found: compiled, given: compiled });
  if (loaded === undefined) throw new TypeError("It is no graph of LangGraph.js");
  return new Map([["ten", loaded]]);
}

const app = await createApp({
  ...(workers === undefined ? { graphs: { ...graphs } } : { config: burn, workers, graphs: others }),
  langGraphs: await langGraphs(),
  data,
  webhooks: { allow_internal: true },
  ...(keys === undefined ? {} : { keys }),
  limits: {
    ...(idle === undefined ? {} : { idle }),
    ...(slots === undefined ? {} : { concurrent: { ...unlimitedConcurrency, all: slots } }),
  },
});
reportOver(
  app.address.port,
  () => ({
    ...ownStats(),
    storage: app.storage.stats(),
    level: app.storage.memory() ?? 0,
    live: app.system.counts.live,
  }),
  () => app.close(),
);

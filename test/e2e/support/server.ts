import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type App, type AppOptions, createApp } from "../../../src/app.ts";
import agent from "../../../src/demo/agent.ts";
import approval from "../../../src/demo/approval.ts";
import { createLogger } from "../../../src/platform/log.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Twins } from "../../langgraph/twin.ts";

export interface Server extends App {
  /** The log records of level `warn` or above. */
  readonly complaints: readonly string[];
}

/**
 * The variants over which the suite can run: a transport (`uws`, `node`) and a storage (`memory`, `level`). The
 * defaults are the server's own choice of a transport, and memory. The graphs can be rewritten in LangGraph.js
 * (`langgraph`) for tests that do not depend on features of Heddle's own graphs.
 */
const {
  HEDDLE_TEST_TRANSPORT: transport,
  HEDDLE_TEST_STORAGE: storage,
  HEDDLE_TEST_GRAPHS: kind,
} = process.env;

async function graphsOf(
  graphs: NonNullable<AppOptions["graphs"]>,
): Promise<Pick<AppOptions, "graphs" | "langGraphs">> {
  if (kind !== "langgraph") return { graphs };
  const { twin } = await import("../../langgraph/twin.ts");
  const { served } = await import("../../langgraph/support.ts");
  const made: Twins = new Map();
  const twins = Object.entries(graphs).map(([name, graph]) => [name, twin(graph, made)]);
  return { graphs: {}, langGraphs: await served(Object.fromEntries(twins)) };
}

async function surroundings(options: AppOptions): Promise<AppOptions> {
  const own = options.data !== undefined || options.storage !== undefined;
  return {
    ...(transport === "uws" || transport === "node" ? { transport } : {}),
    ...(storage === "level" && !own ? { data: await directory() } : {}),
  };
}

/**
 * Starts a real server in this process, on a free port and, by default, in memory. It closes with the test, and serves
 * the demo's graphs and the given ones.
 */
export async function serve(options: AppOptions = {}): Promise<Server> {
  const complaints: string[] = [];
  const logger = createLogger({ clock: systemClock, level: "warn", write: (line) => complaints.push(line) });
  const app = await createApp({
    logger,
    ...(await surroundings(options)),
    ...options,
    ...(await graphsOf({ agent, approval, ...options.graphs })),
  });
  onTestFinished(() => app.close(0));
  return Object.assign(app, { complaints });
}

/** A directory that is deleted after the test. */
export async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "heddle-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

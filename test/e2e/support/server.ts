import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type App, type AppOptions, createApp } from "../../../src/app.ts";
import agent from "../../../src/demo/agent.ts";
import approval from "../../../src/demo/approval.ts";
import { isDefinition } from "../../../src/graph/definition.ts";
import { createLogger, silentLogger } from "../../../src/platform/log.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemScheduler } from "../../../src/platform/scheduler.ts";
import { noFailpoints } from "../../../src/ports/failpoints.ts";
import { LevelDbKeyValueStore } from "../../../src/storage/leveldb-key-value-store.ts";
import { openStorage, type Storage } from "../../../src/storage/open-storage.ts";
import type { Twins } from "../../langgraph/twin.ts";
import type { ClusterRole } from "./cluster-server.ts";
import { DelayedKeyValueStore } from "../../storage/delayed-key-value-store.ts";

export interface Server extends App {
  /** The log records of level `warn` or above. */
  readonly complaints: readonly string[];
}

/**
 * The variants over which the suite can run: a transport (`uws`, `node`) and a storage (`memory`, `level`, or `delayed`,
 * whose reads take turns, as over a network), and the number of shards. The defaults are the server's own choice of a transport, memory, and one
 * shard. The tests can also ask the first of three nodes of a cluster (`member` or `forwarding`, see `cluster-server.ts`). The graphs can be rewritten in LangGraph.js (`langgraph`) for tests that do not depend on features of Heddle's own graphs.
 */
const {
  HEDDLE_TEST_TRANSPORT: transport,
  HEDDLE_TEST_STORAGE: storage,
  HEDDLE_TEST_GRAPHS: kind,
  HEDDLE_TEST_SHARDS: shards,
  HEDDLE_TEST_CLUSTER: cluster,
} = process.env;

async function graphsOf(
  graphs: NonNullable<AppOptions["graphs"]>,
  langGraphs: AppOptions["langGraphs"],
): Promise<Pick<AppOptions, "graphs" | "langGraphs">> {
  if (kind !== "langgraph") return { graphs };
  const { twin } = await import("../../langgraph/twin.ts");
  const { served } = await import("../../langgraph/support.ts");
  const made: Twins = new Map();
  const all = Object.entries(graphs);
  const twins = all.flatMap(([name, graph]) => (isDefinition(graph) ? [[name, twin(graph, made)]] : []));
  const others = all.filter(([, graph]) => !isDefinition(graph));
  return {
    graphs: Object.fromEntries(others),
    langGraphs: new Map([...(await served(Object.fromEntries(twins))), ...(langGraphs ?? [])]),
  };
}

/** Registers cleanups: for the end of a test, unless a file shares a server among its tests. */
export type AtEnd = (cleanUp: () => Promise<void>) => void;

async function surroundings(options: AppOptions, atEnd: AtEnd): Promise<AppOptions> {
  const own = options.data !== undefined || options.storage !== undefined;
  return {
    ...(transport === "uws" || transport === "node" ? { transport } : {}),
    ...(storage === "level" && !own ? { data: await directory(atEnd) } : {}),
  };
}

/** The storage of the variant `delayed`: in memory, or in the directory that the test names. */
function delayedStorage({ data, storage: opened }: AppOptions): Pick<AppOptions, "data"> {
  if (storage !== "delayed" || opened !== undefined || (data !== undefined && typeof data !== "string"))
    return {};
  const inner = data === undefined ? undefined : new LevelDbKeyValueStore(join(data, "level"), false);
  return { data: { kind: "key-value", store: new DelayedKeyValueStore(inner) } };
}

/** Opens storages for several shards: in memory, or in folders of the data directory. */
export async function openShards(count: number, options: AppOptions = {}): Promise<readonly Storage[]> {
  const { data, clock = systemClock, scheduler = systemScheduler } = options;
  const { failpoints = noFailpoints, logger = silentLogger } = options;
  const deps = { clock, scheduler, failpoints, logger };
  const opened: Storage[] = [];
  for (let shard = 0; shard < count; shard++) {
    const directory = typeof data === "string" ? join(data, "shards", String(shard)) : undefined;
    opened.push(
      await openStorage(directory === undefined ? { kind: "memory" } : { kind: "level", directory }, deps),
    );
  }
  return opened;
}

/** The storages of the variant with several shards. */
async function shardStorages(options: AppOptions): Promise<Pick<AppOptions, "storage">> {
  const { data, storage: opened } = options;
  if (shards === undefined || opened !== undefined || (data !== undefined && typeof data !== "string"))
    return {};
  return { storage: await openShards(Number(shards), options) };
}

/** Starts the server of the variant: one process or, unless a test opens the storage itself, the first of three nodes of a cluster. */
async function start(options: AppOptions): Promise<App> {
  const { data, storage: opened } = options;
  if (cluster === undefined || opened !== undefined || (data !== undefined && typeof data !== "string"))
    return createApp(options);
  const { startClusterNodes } = await import("./cluster-server.ts");
  return startClusterNodes(cluster as ClusterRole, options);
}

/**
 * Starts a real server in this process, on a free port and, by default, in memory. It closes with the test, and serves
 * the demo's graphs (unless `demo` is false) and the given ones.
 */
export async function serve(
  options: AppOptions = {},
  { atEnd = onTestFinished, demo = true }: { readonly atEnd?: AtEnd; readonly demo?: boolean } = {},
): Promise<Server> {
  const complaints: string[] = [];
  const logger = createLogger({ clock: systemClock, level: "warn", write: (line) => complaints.push(line) });
  const app = await start({
    logger,
    ...(await surroundings(options, atEnd)),
    ...options,
    ...delayedStorage(options),
    ...(await shardStorages({ logger, ...options })),
    ...(demo || options.graphs !== undefined
      ? await graphsOf({ ...(demo && { agent, approval }), ...options.graphs }, options.langGraphs)
      : {}),
  });
  atEnd(() => app.close(0));
  return Object.assign(app, { complaints });
}

/** A directory that is deleted after the test. */
export async function directory(atEnd: AtEnd = onTestFinished): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "heddle-"));
  atEnd(() => rm(made, { recursive: true, force: true }));
  return made;
}

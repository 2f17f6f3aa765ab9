import type { ActorMetrics, GraphRunCounts } from "../../actors/run-totals.ts";
import { DurationHistogram } from "../model/duration-histogram.ts";
import type { ReadyDetails } from "../http/deps.ts";
import type { Storage } from "../storage/open-storage.ts";
import type { MetricsDeps } from "./metrics.ts";
import type { App } from "./options.ts";
import type { Shard } from "./shard.ts";

/** The sums of the metrics of all shards of this process. */
export interface ShardTotals extends Pick<MetricsDeps, "outbox" | "runLogs"> {
  readonly system: App["system"];
  readonly storage: App["storage"] & MetricsDeps["storage"];
}

export function createShardTotals(shards: readonly Shard[]): ShardTotals {
  const [only] = shards;
  // In the usual case of one shard, there is nothing to add up.
  if (shards.length === 1 && only !== undefined)
    return { system: only.system, storage: only.storage, outbox: only.storage.outbox, runLogs: only.runLogs };
  const storages = shards.map(({ storage }) => storage);
  return {
    system: {
      get counts() {
        return sumsOf(shards.map(({ system }) => system.counts));
      },
      get figures() {
        return figuresOf(shards.map(({ system }) => system.figures));
      },
    },
    storage: {
      stats: () => sumsOf(storages.map((storage) => storage.stats())),
      size: async () => knownSum(await Promise.all(storages.map((storage) => storage.size()))),
      memory: () => knownSum(storages.map((storage) => storage.memory())),
      damage: () => sumsOf(storages.map((storage) => storage.damage())),
      // Only clusters replicate, and each of their processes has at most one shard. A single shard is handled above.
      replication: () => undefined,
      findings: () => storages.flatMap((storage) => storage.findings()),
    },
    outbox: {
      async count(most) {
        const { pending, dead } = sumsOf(await Promise.all(storages.map(({ outbox }) => outbox.count(most))));
        return { pending: Math.min(pending, most), dead: Math.min(dead, most) };
      },
    },
    runLogs: {
      get counts() {
        return sumsOf(shards.map(({ runLogs }) => runLogs.counts));
      },
    },
  };
}

/** Resolves if every storage accepts writes. @throws ServiceError `storage.unavailable` */
export async function checkStorages(storages: readonly Storage[]): Promise<ReadyDetails> {
  await Promise.all(storages.map((storage) => storage.check()));
  const findings = storages.reduce((sum, storage) => sum + storage.findings().length, 0);
  const verifying = storages.flatMap((storage) => storage.verifying() ?? []);
  return {
    // A server with damaged threads still counts as ready, because no other server has its undamaged threads.
    ...(findings > 0 && { damaged: { ...sumsOf(storages.map((storage) => storage.damage())), findings } }),
    ...(verifying.length > 0 && { verifying: sumsOf(verifying) }),
  };
}

/** Adds up objects whose members are numbers, member by member. `all` MUST NOT be empty. */
function sumsOf<T extends { readonly [Name in keyof T]: number }>(all: readonly T[]): T {
  const names = Object.keys(all[0] as T) as (keyof T)[];
  return Object.fromEntries(
    names.map((name) => [name, all.reduce((sum, one) => sum + one[name], 0)] as const),
  ) as T;
}

/** The sum of the values; undefined if any value is undefined. */
function knownSum(all: readonly (number | undefined)[]): number | undefined {
  return all.reduce<number | undefined>(
    (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
    0,
  );
}

function figuresOf(all: readonly ActorMetrics[]): ActorMetrics {
  const graphs = new Map<string, GraphRunCounts>();
  for (const [graph, added] of all.flatMap((one) => [...one.graphs])) {
    const before = graphs.get(graph);
    graphs.set(graph, before === undefined ? { ...added } : sumsOf<GraphRunCounts>([before, added]));
  }
  const sum = (name: Exclude<keyof ActorMetrics, "waits" | "graphs">): number =>
    all.reduce((total, one) => total + one[name], 0);
  return {
    busy: sum("busy"),
    idle: sum("idle"),
    waking: sum("waking"),
    woken: sum("woken"),
    passivated: sum("passivated"),
    running: sum("running"),
    queued: sum("queued"),
    waiting: sum("waiting"),
    stateBytes: sum("stateBytes"),
    withdrawn: sum("withdrawn"),
    waits: DurationHistogram.sum(all.map(({ waits }) => waits)),
    graphs,
  };
}

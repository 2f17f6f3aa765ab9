import { type ErrorCode, ServiceError } from "../model/errors.ts";
import type { ActorInspection } from "../service/actor-inspection.ts";
import { compareCrons, type Crons } from "../service/crons/crons.ts";
import { type Service, type UnrestrictedService, withoutCronsOfDeleted } from "../service/service.ts";
import type { Webhooks } from "../service/webhooks/webhooks.ts";
import { readAll, ascending, firstEntries, mergedPage, offsetsInLists, sumOf } from "./merged-pages.ts";
import { ShardRouter } from "./shard-router.ts";
import { shardedRuns } from "./sharded-runs.ts";
import { shardedStates, shardedThreads } from "./sharded-threads.ts";

/**
 * The service over several shards in one process. Each thread is in one shard, with its runs, checkpoints and events; items of the store
 * are divided among the shards. Lists and counts of all shards are merged. Assistants are stored in the home shard (shard 0).
 */
export function createShardedService(shards: readonly UnrestrictedService[]): UnrestrictedService {
  const router = new ShardRouter(shards);
  const { home } = router;
  const runs = shardedRuns(router);
  const crons = shardedCrons(router);
  const protocolWith: UnrestrictedService["protocolWith"] = (started) =>
    router.byThread(
      (shard: UnrestrictedService) => shard.protocolWith(started),
      ["start", "respond", "fork", "state", "checkpoints", "tree", "lastEventNumber", "follow"],
    );
  const eventsWith: UnrestrictedService["eventsWith"] = (parts) =>
    router.byThread((shard: UnrestrictedService) => shard.eventsWith(parts), ["possible", "send"]);
  return {
    threads: shardedThreads(router),
    states: shardedStates(router),
    runs,
    events: router.byThread(({ events }: UnrestrictedService) => events, ["possible", "send"]),
    eventsWith,
    protocol: protocolWith(runs),
    protocolWith,
    assistants: withoutCronsOfDeleted(home.assistants, crons),
    drawings: home.drawings,
    crons,
    webhooks: shardedWebhooks(router),
    inspection: {
      ...shardedInspection(router),
      machines: () => home.inspection.machines(),
      machine: (id) => home.inspection.machine(id),
    },
    store: home.store,
  };
}

export function shardedCrons(router: ShardRouter<Pick<Service, "crons">>): Crons {
  return {
    ...router.byThread(({ crons }: Pick<Service, "crons">) => crons, ["createOn", "deleteOfThread"]),

    create(tenant, settings, owner) {
      const shard = owner === undefined ? router.next() : router.of(owner.cron_id);
      return shard.crons.create(tenant, settings, owner);
    },

    get: (tenant, id, permits) => router.of(id).crons.get(tenant, id, permits),

    update: (tenant, id, ...change) => router.of(id).crons.update(tenant, id, ...change),

    delete: (tenant, id, permits) => router.of(id).crons.delete(tenant, id, permits),

    async search(tenant, query) {
      const { sort_by = "created_at", sort_order = "desc" } = query;
      const compare = compareCrons(sort_by, sort_order);
      const lists = router.all.map(({ crons }) => async (offset: number, limit: number) => {
        return (await crons.search(tenant, { ...query, offset, limit })).crons;
      });
      const offsets = await offsetsInLists(lists, compare, query.offset);
      const pages = await Promise.all(
        router.all.map(({ crons }, shard) => crons.search(tenant, { ...query, offset: offsets[shard] ?? 0 })),
      );
      const found = pages.map(({ crons }) => crons);
      return {
        crons: await readAll(firstEntries(found, compare, query.limit)),
        total: sumOf(pages.map(({ total }) => total)),
      };
    },

    async count(tenant, filter) {
      return sumOf(await Promise.all(router.all.map(({ crons }) => crons.count(tenant, filter))));
    },

    async deleteOfAssistant(tenant, assistant) {
      await Promise.all(router.all.map(({ crons }) => crons.deleteOfAssistant(tenant, assistant)));
    },

    isUseless: (tenant, cron) => router.of(cron.cron_id).crons.isUseless(tenant, cron),

    watch: () => {
      throw new TypeError("each shard fires its own crons");
    },
  };
}

const isMissing =
  (code: ErrorCode) =>
  (cause: unknown): boolean =>
    cause instanceof ServiceError && cause.code === code;

const DELIVERY_STATUSES = ["pending", "dead"];

export function shardedWebhooks(router: ShardRouter<Pick<Service, "webhooks">>): Webhooks {
  // A webhook delivery has the id of its run. That id does not determine the shard, because a run is in the shard of its thread.
  const find = <T>(ask: (webhooks: Webhooks) => Promise<T>): Promise<T> =>
    router.find(({ webhooks }) => ask(webhooks), isMissing("delivery.not_found"));

  return {
    accept: (request) => router.home.webhooks.accept(request),

    list: (tenant, query) =>
      mergedPage(
        router.all.map(
          ({ webhooks }) =>
            (offset, limit) =>
              webhooks.list(tenant, { ...query, offset, limit }),
        ),
        (a, b) =>
          DELIVERY_STATUSES.indexOf(String(a["status"])) - DELIVERY_STATUSES.indexOf(String(b["status"])) ||
          ascending(String(b["id"]), String(a["id"])),
        query,
      ),

    retry: (key) => find((webhooks) => webhooks.retry(key)),
    remove: (key) => find((webhooks) => webhooks.remove(key)),
  };
}

export function shardedInspection(router: ShardRouter<Pick<Service, "inspection">>): ActorInspection {
  const { home } = router;
  return {
    ...router.byThread(
      ({ inspection }: Pick<Service, "inspection">) => inspection,
      ["storedActors", "actors"],
    ),
    machines: () => home.inspection.machines(),
    machine: (id) => home.inspection.machine(id),

    async liveThreads(tenant, limit, permits) {
      const found = await Promise.all(
        router.all.map(({ inspection }) => inspection.liveThreads(tenant, limit, permits)),
      );
      const isIdle = (runs: number) => Number(runs === 0);
      return found
        .flat()
        .sort((a, b) => isIdle(a.runs) - isIdle(b.runs))
        .slice(0, limit);
    },

    threadOf: (tenant, run, permits) =>
      router.find(({ inspection }) => inspection.threadOf(tenant, run, permits), isMissing("run.not_found")),

    scopeOf: (scope) => scope,

    watch(scope, inspector) {
      const { thread } = scope;
      if (thread !== null) return router.of(thread).inspection.watch(scope, inspector);
      const stops = router.all.map(({ inspection }) => inspection.watch(scope, inspector));
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}

import type { JsonObject } from "../model/json.ts";
import type { ThreadOrder } from "../model/thread-search.ts";
import type { Service } from "../service/service.ts";
import type { ThreadStates } from "../service/thread-states.ts";
import type { Threads } from "../service/threads.ts";
import { ascending, type Compare, firstEntries, offsetsInLists, sumOf } from "./merged-pages.ts";
import type { ShardRouter } from "./shard-router.ts";

export function shardedThreads(router: ShardRouter<Pick<Service, "threads">>): Threads {
  const everywhere = <T>(ask: (threads: Threads, shard: number) => Promise<T>): Promise<T[]> =>
    Promise.all(router.all.map(({ threads }, shard) => ask(threads, shard)));

  return {
    ...router.byThread(
      ({ threads }: Pick<Service, "threads">) => threads,
      ["record", "get", "update", "remove", "copy", "storedSizes", "state", "stateText"],
    ),

    create(tenant, request, permits) {
      const shard = request.thread_id === undefined ? router.next() : router.of(request.thread_id);
      return shard.threads.create(tenant, request, permits);
    },

    async search(tenant, query) {
      const { offset, limit, sort_by = "created_at", sort_order = "desc" } = query;
      const compare = shownThreadOrder(sort_by, sort_order);
      const { extract: _, ...plain } = query;
      const skipped = router.all.map(({ threads }) => async (from: number, count: number) => {
        // Only the ids are needed, so the states of these threads are not read.
        const page = { ...plain, select: ["thread_id"], offset: from, limit: count };
        return (await threads.search(tenant, page)).threads;
      });
      const offsets = await offsetsInLists(skipped, compare, offset);
      const pages = await everywhere((threads, shard) =>
        threads.search(tenant, { ...query, offset: offsets[shard] ?? 0 }),
      );
      const end = offset + limit;
      const total = sumOf(pages.map((page) => page.total));
      const hasMore = total > end || pages.some(({ next }) => next !== undefined);
      const lists = pages.map(({ threads }) => threads);
      return { threads: firstEntries(lists, compare, limit), total, next: hasMore ? end : undefined };
    },

    count: async (tenant, filter) => sumOf(await everywhere((threads) => threads.count(tenant, filter))),

    async removeOf(tenant, assistant, permission) {
      await everywhere((threads) => threads.removeOf(tenant, assistant, permission));
    },

    async prune(keys, strategy) {
      const parts = router.group(keys, ({ thread }) => thread);
      return sumOf(
        await Promise.all(Array.from(parts, ([{ threads }, part]) => threads.prune(part, strategy))),
      );
    },
  };
}

export function shardedStates(router: ShardRouter<Pick<Service, "states">>): ThreadStates {
  return router.byThread(
    ({ states }: Pick<Service, "states">) => states,
    ["at", "history", "update", "pendingInterrupts"],
  );
}

/** Compares threads in the form of the API. The order is the same as for stored threads (see `threadSortKey`). */
function shownThreadOrder(sort_by: ThreadOrder, sort_order: "asc" | "desc"): Compare<JsonObject> {
  const sign = sort_order === "asc" ? 1 : -1;
  const fields = sort_by === "status" ? ["status", "created_at", "thread_id"] : [sort_by, "thread_id"];
  return (a, b) => {
    for (const field of fields) {
      const order = ascending(String(a[field]), String(b[field]));
      if (order !== 0) return sign * order;
    }
    return 0;
  };
}

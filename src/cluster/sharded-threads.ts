import type { JsonObject } from "../model/json.ts";
import type { ThreadOrder } from "../model/thread-search.ts";
import type { Service } from "../service/service.ts";
import { showsStates, type ThreadSearchQuery } from "../service/thread-search.ts";
import type { ThreadStates } from "../service/thread-states.ts";
import type { Threads } from "../service/threads.ts";
import {
  ascending,
  type Compare,
  firstEntries,
  iterate,
  offsetsInLists,
  readAll,
  sumOf,
} from "./merged-pages.ts";
import type { ShardRouter } from "./shard-router.ts";

/** The number of threads whose states are read from all shards at once. */
const THREADS_PER_READ = 16;

export function shardedThreads(router: ShardRouter<Pick<Service, "threads">>): Threads {
  const everywhere = <T>(ask: (threads: Threads, shard: number) => Promise<T>): Promise<T[]> =>
    Promise.all(router.all.map(({ threads }, shard) => ask(threads, shard)));

  /**
   * Reads the threads of a page again, with their states, {@link THREADS_PER_READ} at a time. All states together may be larger than memory,
   * and another process sends all results of a call at once.
   */
  async function* readInParts(
    tenant: string,
    query: ThreadSearchQuery,
    page: readonly JsonObject[],
  ): AsyncGenerator<JsonObject> {
    for (let from = 0; from < page.length; from += THREADS_PER_READ) {
      const ids = page.slice(from, from + THREADS_PER_READ).map(({ thread_id }) => String(thread_id));
      const parts = Array.from(
        router.group(ids, (id) => id),
        async ([{ threads }, part]) => {
          const again = { ...query, ids: part, offset: 0, limit: part.length };
          return readAll((await threads.search(tenant, again)).threads);
        },
      );
      const read = new Map((await Promise.all(parts)).flat().map((thread) => [thread["thread_id"], thread]));
      for (const id of ids) {
        const thread = read.get(id);
        // A thread may have been deleted meanwhile.
        if (thread !== undefined) yield thread;
      }
    }
  }

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
      const { extract, ...plain } = query;
      const withoutStates = { ...plain, select: ["thread_id"] };
      const skipped = router.all.map(({ threads }) => async (from: number, count: number) => {
        const page = { ...withoutStates, offset: from, limit: count };
        return (await threads.search(tenant, page)).threads;
      });
      const offsets = await offsetsInLists(skipped, compare, offset);
      const pages = await everywhere((threads, shard) =>
        threads.search(tenant, { ...withoutStates, offset: offsets[shard] ?? 0 }),
      );
      const end = offset + limit;
      const total = sumOf(pages.map((page) => page.total));
      const hasMore = total > end || pages.some(({ next }) => next !== undefined);
      const lists = pages.map(({ threads }) => threads);
      const found = await readAll(firstEntries(lists, compare, limit));
      const isComplete = extract === undefined && !showsStates(query);
      const shown = isComplete ? iterate(found) : readInParts(tenant, query, found);
      return { threads: shown, total, next: hasMore ? end : undefined };
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

import type { JsonObject } from "../model/json.ts";
import type { Runs } from "../service/runs.ts";
import type { Service } from "../service/service.ts";
import { ascending } from "./merged-pages.ts";
import type { ShardRouter } from "./shard-router.ts";

export function shardedRuns(router: ShardRouter<Pick<Service, "runs">>): Runs {
  /**
   * The shard of a run without a thread: the shard of the run's id, else the shard of its idempotency key, else {@link ShardRouter.next}.
   */
  const shardFor = (id: string | undefined, key?: string): Pick<Service, "runs"> => {
    const name = id ?? key;
    return name === undefined ? router.next() : router.of(name);
  };

  return {
    ...router.byThread(
      ({ runs }: Pick<Service, "runs">) => runs,
      [
        "start",
        "find",
        "findForReading",
        "keepForReading",
        "show",
        "list",
        "result",
        "lastEventAt",
        "follow",
        "followThread",
        "cancel",
        "cancelOnDisconnect",
        "cancelAll",
        "cancelSome",
        "remove",
      ],
    ),

    startAlone: (tenant, request, temporary, options = {}) =>
      shardFor(options.by?.run_id, options.again?.key).runs.startAlone(tenant, request, temporary, options),

    // One shard starts the whole batch, because either all of its runs start or none.
    startBatch: (tenant, requests, by) => shardFor(by?.[0]?.run_id).runs.startBatch(tenant, requests, by),

    async search(tenant, query) {
      const { limit, sort_order = "desc", thread_id } = query;
      if (thread_id !== undefined) return router.of(thread_id).runs.search(tenant, query);
      // A cursor is a position in the sort order, not in the list of a shard, so the same cursor is valid in all shards.
      const pages = await Promise.all(router.all.map(({ runs }) => runs.search(tenant, query)));
      const sign = sort_order === "asc" ? 1 : -1;
      const compare = (a: string, b: string): number => sign * ascending(a, b);
      // If a shard has more runs after its page, they may come before runs of other shards. So the result ends where the first page with
      // more runs ends.
      const ends = pages.flatMap(({ next }) => (next === undefined ? [] : [next])).sort(compare);
      const [end] = ends;
      const found: { readonly run: JsonObject; readonly cursor: string }[] = [];
      for (const { runs, cursors } of pages)
        for (const [i, run] of runs.entries()) found.push({ run, cursor: cursors[i] ?? "" });
      const page = found
        .filter(({ cursor }) => end === undefined || compare(cursor, end) <= 0)
        .sort((a, b) => compare(a.cursor, b.cursor))
        .slice(0, limit);
      const hasMore = end !== undefined || page.length < found.length;
      return {
        runs: page.map(({ run }) => run),
        cursors: page.map(({ cursor }) => cursor),
        next: hasMore ? page.at(-1)?.cursor : undefined,
      };
    },

    async cancelEverywhere(tenant, action, which, permits) {
      await Promise.all(router.all.map(({ runs }) => runs.cancelEverywhere(tenant, action, which, permits)));
    },
  };
}

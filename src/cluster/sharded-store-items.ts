import type { Namespace } from "../model/store-item.ts";
import type { StoreItems } from "../ports/store-items.ts";
import { ascending, mergeSorted } from "./merged-pages.ts";
import { ShardRouter } from "./shard-router.ts";

/**
 * The store's items of all shards. The first label of an item's namespace determines its shard. Changes are atomic within a shard, but not
 * across shards.
 */
export function shardedStoreItems(shards: readonly StoreItems[]): StoreItems {
  const router = new ShardRouter(shards);
  const of = ([label = ""]: Namespace): StoreItems => router.of(label);

  /** The shards that may have items whose namespaces begin with this prefix. */
  const below = (prefix: Namespace): readonly StoreItems[] =>
    prefix.length === 0 ? router.all : [of(prefix)];

  return {
    find: (tenant, place) => of(place.namespace).find(tenant, place),

    heads: (tenant, prefix) =>
      byNamespace(
        below(prefix).map((items) => items.heads(tenant, prefix)),
        ({ namespace }) => namespace,
      ),

    vectors: (tenant, prefix) =>
      byNamespace(
        below(prefix).map((items) => items.vectors(tenant, prefix)),
        ({ namespace }) => namespace,
      ),

    namespaces: (tenant, query) =>
      byNamespace(
        below(query.prefix).map((items) => items.namespaces(tenant, query)),
        (namespace) => namespace,
      ),

    async expiring(limit) {
      const found = await Promise.all(router.all.map((items) => items.expiring(limit)));
      return found
        .flat()
        .sort((a, b) => a.expires_at - b.expires_at)
        .slice(0, limit);
    },

    async change(tenant, changes, { fence, ...write }) {
      const parts = router.group(changes, ({ namespace: [label = ""] }) => label);
      if (fence === undefined) {
        await Promise.all(Array.from(parts, ([items, part]) => items.change(tenant, part, write)));
        return;
      }
      // The fence refuses writes of an older attempt of a run. Only the shard of the fence's thread can check it. If other shards have
      // changes, a call without changes checks the fence there first. This call waits for no write, so the changes are made, or sent to
      // other processes, in the same turn of the event loop.
      const guard = router.of(fence.thread.thread);
      const fenced = { ...write, fence };
      if (parts.size !== 1 || !parts.has(guard)) await guard.change(tenant, [], fenced);
      await Promise.all(
        Array.from(parts, ([items, part]) => items.change(tenant, part, items === guard ? fenced : write)),
      );
    },
  };
}

/** Merges lists that are sorted by namespace. Each first label of a namespace occurs in only one of the lists. */
async function* byNamespace<T>(
  lists: readonly AsyncIterable<T>[],
  namespaceOf: (entry: T) => Namespace,
): AsyncGenerator<T> {
  const labelOf = (entry: T): string => namespaceOf(entry)[0] ?? "";
  for await (const { entry } of mergeSorted(lists, (a, b) => ascending(labelOf(a), labelOf(b)))) yield entry;
}

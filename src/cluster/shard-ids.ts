import type { createMonotonicIds } from "../model/ids.ts";
import { shardOf } from "../model/shard-of.ts";
import { ShardRouter } from "./shard-router.ts";

export interface ShardIds {
  /** For each shard, the function that creates ids that belong to this shard. */
  readonly ofShards: readonly (() => string)[];
  /**
   * Creates an id that belongs to the shard of `beside`. Without `beside`: to the shard of this process, or to the shards in turn if this
   * process has none.
   */
  newId(beside?: string): string;
}

/**
 * Creates ids for `count` shards. The shard of a record can be computed from its id alone.
 * @param own the number of this process's shard; undefined if it has none
 */
export function createShardIds(
  newId: ReturnType<typeof createMonotonicIds>,
  count: number,
  own?: number,
): ShardIds {
  const ofShards = Array.from({ length: count }, (_, shard) =>
    count === 1 ? () => newId() : () => newId((id) => shardOf(id, count) === shard),
  );
  const router = new ShardRouter(ofShards, own);
  return {
    ofShards,
    newId: (beside) => (beside === undefined ? router.next() : router.of(beside))(),
  };
}

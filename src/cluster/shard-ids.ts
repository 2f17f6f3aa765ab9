import type { monotonicIds } from "../model/ids.ts";
import { shardOf } from "../model/shard-of.ts";
import { ShardRouter } from "./shard-router.ts";

export interface ShardIds {
  /** For each shard, the function that makes ids that belong to it. */
  readonly ofShards: readonly (() => string)[];
  /** Makes an id that belongs to the shard of `beside`. Without `beside`: to the process's own shard if it has one, else to any shard. */
  newId(beside?: string): string;
}

/** Makes ids for `count` shards. An id alone says in which shard its record is. @param own the number of this process's shard, if it has one */
export function createShardIds(
  newId: ReturnType<typeof monotonicIds>,
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

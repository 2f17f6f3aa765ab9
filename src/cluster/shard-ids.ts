import type { monotonicIds } from "../model/ids.ts";
import { shardOf } from "../model/shard-of.ts";
import { ShardRouter } from "./shard-router.ts";

export interface ShardIds {
  /** For each shard, what makes ids that fall into it. */
  readonly ofShards: readonly (() => string)[];
  /** Makes an id in the shard of `beside`; without it, in any shard, or in the process's own one. */
  newId(beside?: string): string;
}

/** Makes ids for `count` shards: what gets one is found by it alone. @param own the number of this process's shard, if there are several */
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

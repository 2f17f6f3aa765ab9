import { shardedStoreItems } from "../../src/cluster/sharded-store-items.ts";
import { shardOf } from "../../src/model/shard-of.ts";
import type { Catalog } from "../../src/ports/catalog.ts";
import { itemsContract } from "../contracts/items.ts";
import { threadKey } from "../storage/samples.ts";
import { delayed, inMemory } from "../storage/support.ts";
import type { Harness } from "../contracts/harness.ts";

const SHARDS = 4;

/** Items over several shards. The journal is that of the contract's thread. */
const sharded = (open: () => Promise<Harness>) => async (): Promise<Harness> => {
  const shards = await Promise.all(Array.from({ length: SHARDS }, open));
  const own = shards[shardOf(threadKey(1).thread, SHARDS)] as Harness;
  const each = async (work: (shard: Harness) => Promise<void>) => void (await Promise.all(shards.map(work)));
  return {
    get journal() {
      return own.journal;
    },
    get catalog() {
      return { items: shardedStoreItems(shards.map(({ catalog }) => catalog.items)) } as Catalog;
    },
    outbox: own.outbox,
    crons: own.crons,
    bytes: () => shards.reduce((sum, shard) => sum + shard.bytes(), 0),
    reopen: () => each((shard) => shard.reopen()),
    close: () => each((shard) => shard.close()),
  };
};

itemsContract("several shards", sharded(inMemory));
itemsContract("several shards, delayed reads", sharded(delayed));

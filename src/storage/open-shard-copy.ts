import type { ReplaceableKeyValueStore } from "../ports/key-value-store.ts";
import { lockDirectory } from "./directory-lock.ts";
import { LevelDbKeyValueStore } from "./leveldb-key-value-store.ts";
import { makeDirectory } from "./make-directory.ts";
import { databaseIn } from "./open-storage.ts";

/** An open database that no server uses: a copy of a shard that another cluster node serves. */
interface ShardCopy {
  readonly kv: ReplaceableKeyValueStore;
  close(): Promise<void>;
}

/**
 * Opens the copy of a shard in a directory, which is created if it is missing.
 * @throws ServiceError `storage.locked` if another process has the directory open; `storage.unavailable`, `journal.damaged`
 */
export async function openShardCopy(directory: string): Promise<ShardCopy> {
  makeDirectory(directory);
  const lock = lockDirectory(directory);
  try {
    const kv = new LevelDbKeyValueStore(databaseIn(directory), false);
    await kv.removeLeftovers();
    await kv.open();
    return { kv, close: () => kv.close().finally(() => lock.release()) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

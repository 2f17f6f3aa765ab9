import { MemoryLevel } from "memory-level";
import { AbstractLevelStore } from "./abstract-level-store.ts";
import type { KeyValueStore, ReplaceableKeyValueStore, WriteOperation } from "../ports/key-value-store.ts";

type Db = MemoryLevel<string, Buffer>;

/**
 * A store in the memory of this process, for tests and for servers that need not keep their data. Closing and reopening
 * a store keeps its content.
 */
export class MemoryKeyValueStore extends AbstractLevelStore<Db> implements ReplaceableKeyValueStore {
  async open(): Promise<void> {
    this.db ??= new MemoryLevel<string, Buffer>({ keyEncoding: "utf8", valueEncoding: "buffer" });
    await this.db.open();
  }

  async replace(fill: (empty: KeyValueStore) => Promise<void>): Promise<void> {
    const made = new MemoryKeyValueStore();
    await made.open();
    await fill(made);
    await this.close();
    this.db = made.db;
  }

  protected write(db: Db, ops: readonly WriteOperation[]): Promise<void> {
    return db.batch(
      ops.map(({ key, value }) => (value === null ? { type: "del", key } : { type: "put", key, value })),
    );
  }
}

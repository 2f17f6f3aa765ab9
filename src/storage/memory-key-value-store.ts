import { MemoryLevel } from "memory-level";
import { AbstractLevelStore } from "./abstract-level-store.ts";
import type { WriteOperation } from "../ports/key-value-store.ts";

type Db = MemoryLevel<string, Buffer>;

/** A store in the memory of this process, for tests and for servers that need not keep their data. Closing and opening it again keeps its contents. */
export class MemoryKeyValueStore extends AbstractLevelStore<Db> {
  async open(): Promise<void> {
    this.db ??= new MemoryLevel<string, Buffer>({ keyEncoding: "utf8", valueEncoding: "buffer" });
    await this.db.open();
  }

  protected write(db: Db, ops: readonly WriteOperation[]): Promise<void> {
    return db.batch(
      ops.map(({ key, value }) => (value === null ? { type: "del", key } : { type: "put", key, value })),
    );
  }
}

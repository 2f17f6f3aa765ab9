import type { Catalog } from "../../src/ports/catalog.ts";
import type { CronStorage } from "../../src/ports/cron-storage.ts";
import type { Journal } from "../../src/ports/journal.ts";
import type { Outbox } from "../../src/ports/outbox.ts";

/** A storage under test. The ports are those of the latest open. */
export interface Harness {
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly crons: CronStorage;
  /** Bytes written since it was opened. */
  bytes(): number;
  /** Ends the process, as far as the storage can see, and starts the next one over the same data. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

/** Optional features of a journal. */
export interface Supports {
  /** True if its data survive a close and an open. */
  readonly reopen: boolean;
  /** True if small reads answer in the same turn. */
  readonly sync: boolean;
}

/** The storage opened for the running test. */
export type Opened = () => Harness;

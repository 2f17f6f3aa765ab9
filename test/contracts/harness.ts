import type { Catalog } from "../../src/ports/catalog.ts";
import type { CronBook } from "../../src/ports/cron-book.ts";
import type { Journal } from "../../src/ports/journal.ts";
import type { Outbox } from "../../src/ports/outbox.ts";

/** A storage as its contract is tried on it. The ports are those of the latest open. */
export interface Harness {
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly crons: CronBook;
  /** Bytes written since it was opened. */
  bytes(): number;
  /** Ends the process, as far as the storage can see, and begins the next one over the same data. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

/** What a journal may lack. */
export interface Supports {
  /** Its data outlive a close and an open. */
  readonly reopen: boolean;
  /** Small reads answer in the same turn. */
  readonly sync: boolean;
}

/** The one opened for the test that runs. */
export type Opened = () => Harness;

import type { ClassicLevel } from "classic-level";

/** The largest number of operations in one batch. */
const MAX_BATCH_OPERATIONS = 256;

interface Waiting {
  readonly key: string;
  readonly value: Buffer;
  readonly done: () => void;
}

/**
 * A minimal group commit: while LevelDB writes and syncs one batch, commits gather for the next one. No durable server
 * on LevelDB can cost less.
 */
export class GroupCommit {
  readonly #db: ClassicLevel<string, Buffer>;
  #waiting: Waiting[] = [];
  #busy = false;
  batches = 0;

  constructor(db: ClassicLevel<string, Buffer>) {
    this.#db = db;
  }

  commit(key: string, value: Buffer): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ key, value, done });
      if (!this.#busy) this.#next();
    });
  }

  #next(): void {
    if (this.#waiting.length === 0) {
      this.#busy = false;
      return;
    }
    this.#busy = true;
    const taken =
      this.#waiting.length <= MAX_BATCH_OPERATIONS / 2
        ? this.#waiting.splice(0)
        : this.#waiting.splice(0, MAX_BATCH_OPERATIONS / 2);
    const batch = this.#db.batch();
    for (const { key, value } of taken) {
      // Each commit of Heddle writes two entries too: a record, and the thread's head, which points to the record.
      batch.put(`r:${key}`, value);
      batch.put(`h:${key.slice(0, 8)}`, value.subarray(0, 64));
    }
    this.batches++;
    batch.write({ sync: true }).then(
      () => {
        this.#next();
        for (const { done } of taken) done();
      },
      (error: unknown) => {
        throw error;
      },
    );
  }
}

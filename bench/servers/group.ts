import type { ClassicLevel } from "classic-level";

/** The largest number of operations in one batch. */
const MAX_BATCH_OPERATIONS = 256;

interface Waiting {
  readonly key: string;
  readonly value: Buffer;
  readonly done: () => void;
}

/**
 * A minimal group commit: while one synced batch is in flight, the next one fills. It is the lower limit for every
 * durable row, without any part of Heddle.
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
      // Heddle's commits also contain a record and the head that points to it.
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

/** Rows of the storage, and the bytes of their values as Heddle writes them: before the database compresses them. */
export interface StoredRows {
  readonly count: number;
  readonly bytes: number;
}

/** What a thread has stored, by kind. */
export interface StoredSizes {
  readonly checkpoints: StoredRows;
  /** Values of channels, by the channel's name; of all namespaces together. */
  readonly channels: ReadonlyMap<string, StoredRows>;
  /** Pending writes of tasks. */
  readonly writes: StoredRows;
  /** Records of runs, with their inputs and their order. */
  readonly runs: StoredRows;
  readonly events: StoredRows;
  /** The thread's record, and the journal of its changes. */
  readonly thread: StoredRows;
}

/** A number of stored rows, and the bytes of their values before the database compresses them. */
export interface StoredRows {
  readonly count: number;
  readonly bytes: number;
}

/** How much is stored for a thread, by kind. */
export interface StoredSizes {
  readonly checkpoints: StoredRows;
  /** The values of channels, by the channel's name. Channels with the same name in several namespaces are counted together. */
  readonly channels: ReadonlyMap<string, StoredRows>;
  /** Pending writes of tasks. */
  readonly writes: StoredRows;
  /** Records of runs with their inputs, and the indexes of their order. */
  readonly runs: StoredRows;
  readonly events: StoredRows;
  /** The thread's record, and the journal of its changes. */
  readonly thread: StoredRows;
}

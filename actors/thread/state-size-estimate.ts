/** The fraction of its size by which a large state may grow before it is measured again. */
const GROWTH = 1 / 4;

/**
 * The size in memory of a thread's state and of its subgraphs' states. A small state is not measured: its size is taken as the sum of the
 * changes that made it, until that sum is large. A large state is measured again whenever it has grown by a quarter.
 */
export class StateSizeEstimate {
  readonly #large: number;
  /** The bytes at the last measurement. While `#isExact` is false, the stored size, or 0 if it is unknown. */
  #measured = 0;
  /**
   * The bytes of the changes since the last measurement. A change may replace other data, so this is an upper bound of
   * the growth.
   */
  #grown = 0;
  #isExact: boolean;

  /** `stored`: the bytes that are stored with the thread; null: unknown. `large`: a state of this many bytes or more is large. */
  constructor(stored: number | null, large: number) {
    this.#large = large;
    this.#isExact = stored !== null && stored < large;
    if (this.#isExact) this.#grown = stored ?? 0;
    else this.#measured = stored ?? 0;
  }

  /**
   * An upper bound of the state's bytes, unless the stored size was unknown and the state is not yet
   * measured.
   */
  get bytes(): number {
    return this.#measured + this.#grown;
  }

  get isLarge(): boolean {
    return this.bytes >= this.#large;
  }

  /** True if the state should be measured, once it is in memory. */
  get isOutdated(): boolean {
    return !this.#isExact || (this.isLarge && this.#grown >= this.#measured * GROWTH);
  }

  grow(bytes: number): void {
    this.#grown += bytes;
  }

  /** Sets the size of the state in memory, in bytes, after a measurement. */
  measured(bytes: number): void {
    this.#measured = bytes;
    this.#grown = 0;
    this.#isExact = true;
  }

  /**
   * The bytes to store in the thread's record; null if the size is still unknown. `before`: the bytes that are stored there now; null:
   * none. If one of the thread's states was large, the size of the largest one is kept, because a run may start from any of the thread's
   * checkpoints.
   */
  toStore(before: number | null): number | null {
    if (before === null && !this.#isExact) return null;
    return before !== null && before >= this.#large ? Math.max(before, this.bytes) : this.bytes;
  }
}

/** The fraction of its size by which a large state may grow before it is measured again. */
const GROWTH = 1 / 4;

/**
 * The size in memory of a thread's state and those of its subgraphs. Small states are not measured: their size is the
 * sum of the changes that made them, until that sum is large. Large ones are measured by {@link measured} whenever they
 * have grown by a quarter.
 */
export class StateSize {
  readonly #large: number;
  /** Bytes at the last measurement. While not `isExact`, the stored size instead. */
  #measured = 0;
  /** Bytes of the changes since then. A change may replace other data, so this is an upper bound of the growth. */
  #grown = 0;
  #isExact: boolean;

  /** `stored`: bytes as stored with the thread, null for unknown. `large`: bytes; a state of this size or more counts as large. */
  constructor(stored: number | null, large: number) {
    this.#large = large;
    this.#isExact = stored !== null && stored < large;
    if (this.#isExact) this.#grown = stored ?? 0;
    else this.#measured = stored ?? 0;
  }

  /** The largest number of bytes that the state can have. */
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

  /** Adds the bytes of a change. */
  grow(bytes: number): void {
    this.#grown += bytes;
  }

  /** Sets the bytes of the state in memory. */
  measured(bytes: number): void {
    this.#measured = bytes;
    this.#grown = 0;
    this.#isExact = true;
  }

  /**
   * The number of bytes to store with the thread, when `before` is stored now: the size of its largest state, since a run
   * may begin at any of its checkpoints. While no state was large, it is the size of the latest state instead, because
   * sizes that are only added up may be too high.
   */
  toStore(before: number | null): number | null {
    if (before === null && !this.#isExact) return null;
    return before !== null && before >= this.#large ? Math.max(before, this.bytes) : this.bytes;
  }
}

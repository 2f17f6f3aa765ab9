/** The part of a large state by which it may grow before it is measured again. */
const GROWTH = 1 / 4;

/**
 * The size in memory of a thread's state, with those of its subgraphs. Small states are not looked at: their size is the sum of the changes
 * that made them, until that is large. Large ones are measured by {@link measured}, as often as they have grown by a quarter.
 */
export class StateSize {
  readonly #large: number;
  /** Bytes when it was measured last; stored, but not measured, while not `isExact`. */
  #measured = 0;
  /** Bytes of changes since. A change may replace other data, so they are the most by which it has grown. */
  #grown = 0;
  #isExact: boolean;

  /** `stored`: bytes as stored with the thread, null for unknown. `large`: bytes; a state of this size or more counts as large. */
  constructor(stored: number | null, large: number) {
    this.#large = large;
    this.#isExact = stored !== null && stored < large;
    if (this.#isExact) this.#grown = stored ?? 0;
    else this.#measured = stored ?? 0;
  }

  /** Bytes, the most that it can be. */
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
   * Bytes to store with the thread, where `before` is stored: of its largest state, since a run may begin at any of its checkpoints. Small
   * states all count as the latest one: their sizes are sums that may be too high.
   */
  toStore(before: number | null): number | null {
    if (before === null && !this.#isExact) return null;
    return before !== null && before >= this.#large ? Math.max(before, this.bytes) : this.bytes;
  }
}

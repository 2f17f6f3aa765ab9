/** Entries of an order that are held at a time. They are sorted in one piece, which takes some ten milliseconds. */
const MOST = 10_000;

/**
 * What a scan gives, in another order than the scan's. However much it gives, no more than some thousand entries are held: what
 * stands behind those is scanned for again.
 */
export class Ordered<T> {
  readonly #scan: () => AsyncIterable<T>;
  readonly #compare: (a: T, b: T) => number;
  readonly #most: number;
  /** How many entries the scan gave; known once the first one is there, or the end. */
  total = 0;

  /** `compare` MUST tell any two entries apart. */
  constructor(scan: () => AsyncIterable<T>, compare: (a: T, b: T) => number, most = MOST) {
    this.#scan = scan;
    this.#compare = compare;
    this.#most = most;
  }

  /** The entries behind the first `offset` ones; how many are `wanted` is a hint. */
  async *from(offset: number, wanted = Number.POSITIVE_INFINITY): AsyncGenerator<T> {
    let size = Math.min(this.#most, offset + wanted);
    let skip = offset;
    let last: T | undefined;
    for (let scans = 0; ; scans++) {
      const first = new First(this.#compare, size);
      let count = 0;
      for await (const entry of this.#scan()) {
        count++;
        if (last === undefined || this.#compare(entry, last) > 0) first.add(entry);
      }
      if (scans === 0) this.total = count;
      // What was asked for stands behind all there is.
      if (offset >= this.total || wanted === 0) return;
      const { entries, isAll } = first.end();
      const from = Math.min(skip, entries.length);
      skip -= from;
      for (let i = from; i < entries.length; i++) yield entries[i] as T;
      if (isAll) return;
      last = entries.at(-1);
      size = this.#most;
    }
  }
}

/** The first entries of all that are added. */
class First<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #size: number;
  readonly #held: T[] = [];
  /** What stands behind it is not among them. */
  #last: T | undefined;
  #isAll = true;

  constructor(compare: (a: T, b: T) => number, size: number) {
    this.#compare = compare;
    this.#size = size;
  }

  add(entry: T): void {
    if (this.#size === 0 || (this.#last !== undefined && this.#compare(entry, this.#last) > 0)) {
      this.#isAll = false;
      return;
    }
    // Sorted now and then, and cut: for each entry a few comparisons, as with a heap.
    if (this.#held.push(entry) >= 2 * this.#size + 64) this.#cut();
  }

  end(): { readonly entries: readonly T[]; readonly isAll: boolean } {
    this.#cut();
    return { entries: this.#held, isAll: this.#isAll };
  }

  #cut(): void {
    this.#held.sort(this.#compare);
    if (this.#held.length <= this.#size) return;
    this.#held.length = this.#size;
    this.#isAll = false;
    this.#last = this.#held.at(-1);
  }
}

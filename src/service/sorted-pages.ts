/** The largest number of entries in memory. Sorting that many at once takes about 10 ms. */
const MAX_ENTRIES_IN_MEMORY = 10_000;

/**
 * Pages over the results of a scan, in another sort order than that of the scan. Only a limited number of entries are in memory. When these
 * have been returned, the scan runs again to collect the next ones.
 */
export class SortedPages<T> {
  readonly #scan: () => AsyncIterable<T>;
  readonly #compare: (a: T, b: T) => number;
  readonly #most: number;
  /** The number of entries of the scan. It is known once the first entry has been yielded, or at the end if there is none. */
  total = 0;

  /** `compare` MUST NOT return 0 for two different entries. */
  constructor(scan: () => AsyncIterable<T>, compare: (a: T, b: T) => number, most = MAX_ENTRIES_IN_MEMORY) {
    this.#scan = scan;
    this.#compare = compare;
    this.#most = most;
  }

  /**
   * The entries after the first `offset` ones. `wanted`: the largest number of entries that will be read, as a hint for the size of the
   * first scan.
   */
  async *from(offset: number, wanted = Number.POSITIVE_INFINITY): AsyncGenerator<T> {
    let size = Math.min(this.#most, offset + wanted);
    let skip = offset;
    let last: T | undefined;
    for (let scans = 0; ; scans++) {
      const first = new FirstEntries(this.#compare, size);
      let count = 0;
      for await (const entry of this.#scan()) {
        count++;
        if (last === undefined || this.#compare(entry, last) > 0) first.add(entry);
      }
      if (scans === 0) this.total = count;
      // There is nothing to return: no entry is requested, or the offset is past the last entry.
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

/** Collects the first entries, by sort order, of all that are added. */
class FirstEntries<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #size: number;
  readonly #entries: T[] = [];
  /** The last of the collected entries in sort order. Entries that sort after it are dropped. */
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
    // The list is sorted and cut only when it is more than twice as long as needed. This takes a few
    // comparisons for each entry, about as many as a heap would.
    if (this.#entries.push(entry) >= 2 * this.#size + 64) this.#cut();
  }

  end(): { readonly entries: readonly T[]; readonly isAll: boolean } {
    this.#cut();
    return { entries: this.#entries, isAll: this.#isAll };
  }

  #cut(): void {
    this.#entries.sort(this.#compare);
    if (this.#entries.length <= this.#size) return;
    this.#entries.length = this.#size;
    this.#isAll = false;
    this.#last = this.#entries.at(-1);
  }
}

/** The number of entries that are read from a list at once to find where a page begins. */
const ENTRIES_PER_READ = 500;

export type Compare<T> = (a: T, b: T) => number;

/** Reads `limit` entries of one shard's list, after the first `offset` entries. */
export type ReadPage<T> = (
  offset: number,
  limit: number,
) => Promise<AsyncIterable<T> | Iterable<T>> | AsyncIterable<T>;

/**
 * Merges sorted lists. `list` is the index of the list that an entry comes from. Only one entry of each list is read ahead, so lists of any
 * length can be merged.
 */
export async function* mergeSorted<T>(
  lists: readonly (AsyncIterable<T> | Iterable<T>)[],
  compare: Compare<T>,
): AsyncGenerator<{ readonly entry: T; readonly list: number }> {
  const readers = lists.map((list) =>
    Symbol.asyncIterator in list ? list[Symbol.asyncIterator]() : list[Symbol.iterator](),
  );
  try {
    const heads = await Promise.all(readers.map(async (reader) => reader.next()));
    for (;;) {
      let first: { readonly entry: T; readonly list: number } | undefined;
      for (const [list, head] of heads.entries()) {
        if (head.done === true) continue;
        if (first === undefined || compare(head.value, first.entry) < 0) first = { entry: head.value, list };
      }
      if (first === undefined) return;
      yield first;
      heads[first.list] = (await readers[first.list]?.next()) as IteratorResult<T>;
    }
  } finally {
    for (const reader of readers) await reader.return?.();
  }
}

/**
 * Returns, for each list, the offset at which a page begins: how many of the first `offset` entries of the merged lists come from that
 * list. All entries before the page are read, {@link ENTRIES_PER_READ} at a time.
 */
export async function offsetsInLists<T>(
  lists: readonly ReadPage<T>[],
  compare: Compare<T>,
  offset: number,
): Promise<readonly number[]> {
  const offsets = lists.map(() => 0);
  if (offset === 0) return offsets;
  let left = offset;
  for await (const { list } of mergeSorted(lists.map(wholeList), compare)) {
    offsets[list] = (offsets[list] ?? 0) + 1;
    if (--left === 0) break;
  }
  return offsets;
}

async function* wholeList<T>(read: ReadPage<T>): AsyncGenerator<T> {
  for (let from = 0; ;) {
    const before = from;
    for await (const entry of await read(from, ENTRIES_PER_READ)) {
      from++;
      yield entry;
    }
    if (from === before) return;
  }
}

export async function mergedPage<T>(
  lists: readonly ReadPage<T>[],
  compare: Compare<T>,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<readonly T[]> {
  const offsets = await offsetsInLists(lists, compare, offset);
  const pages = await Promise.all(lists.map((read, list) => read(offsets[list] ?? 0, limit)));
  return readAll(firstEntries(pages, compare, limit));
}

/** Merges sorted lists, and yields the first `limit` entries. */
export async function* firstEntries<T>(
  lists: readonly (AsyncIterable<T> | Iterable<T>)[],
  compare: Compare<T>,
  limit: number,
): AsyncGenerator<T> {
  let left = limit;
  if (left < 1) return;
  for await (const { entry } of mergeSorted(lists, compare)) {
    yield entry;
    if (--left === 0) return;
  }
}

export async function readAll<T>(entries: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}

export const ascending = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

export const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

export async function* iterate<T>(entries: Iterable<T>): AsyncGenerator<T> {
  yield* entries;
}

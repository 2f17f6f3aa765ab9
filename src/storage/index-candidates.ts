/** A thread that may match a search. */
export interface Candidate {
  readonly thread: string;
  /** Its sort key in the scanned index, if that is a number. */
  readonly at: number;
  /** Set when the thread may not match although its scan is exact. */
  readonly doubtful?: true;
}

/** Candidates found together. `seen`: the number of keys that were read for them. */
export interface Candidates {
  readonly found: readonly Candidate[];
  readonly seen: number;
}

export type Pages = AsyncGenerator<Candidates>;

export const all = (found: readonly Candidate[]): Candidates => ({ found, seen: found.length });

/** The next candidates; empty when there are no more. */
export async function some(pages: Pages): Promise<readonly Candidate[]> {
  for (;;) {
    const page = await pages.next();
    if (page.done === true) return [];
    if (page.value.found.length > 0) return page.value.found;
  }
}

export async function* only(page: Candidates): Pages {
  yield page;
}

export async function* given(ids: readonly string[]): Pages {
  yield all(Array.from(new Set(ids), (thread) => ({ thread, at: 0 })));
}

export async function* without(pages: Pages, threads: ReadonlyMap<string, unknown>): Pages {
  for await (const { found, seen } of pages) {
    yield threads.size === 0
      ? { found, seen }
      : { found: found.filter(({ thread }) => !threads.has(thread)), seen };
  }
}

export async function* doubted(pages: Pages): Pages {
  for await (const { found } of pages) yield all(found.map(doubtedOne));
}

export const doubtedOne = (one: Candidate): Candidate => ({ ...one, doubtful: true });

/** A thread that may match a search. */
export interface Candidate {
  readonly thread: string;
  /** The number by which the scanned index sorts the thread, such as its creation time; 0 if threads are read by id. */
  readonly at: number;
  /**
   * True if the record must be read to decide whether the thread matches, even if the other candidates of the scan match for sure
   * ({@link IndexScan.sure}).
   */
  readonly doubtful?: true;
}

/** A page of candidates. */
export interface CandidatePage {
  readonly found: readonly Candidate[];
  /** The number of keys that were read to find the candidates. */
  readonly seen: number;
}

export type CandidatePages = AsyncGenerator<CandidatePage>;

export const newCandidatePage = (found: readonly Candidate[]): CandidatePage => ({
  found,
  seen: found.length,
});

/** The next candidates; empty when there are no more. */
export async function nextCandidates(pages: CandidatePages): Promise<readonly Candidate[]> {
  for (;;) {
    const page = await pages.next();
    if (page.done === true) return [];
    if (page.value.found.length > 0) return page.value.found;
  }
}

export async function* onePage(page: CandidatePage): CandidatePages {
  yield page;
}

export async function* candidatesById(ids: readonly string[]): CandidatePages {
  yield newCandidatePage(Array.from(new Set(ids), (thread) => ({ thread, at: 0 })));
}

export async function* withoutThreads(
  pages: CandidatePages,
  threads: ReadonlyMap<string, unknown>,
): CandidatePages {
  for await (const { found, seen } of pages) {
    yield threads.size === 0
      ? { found, seen }
      : { found: found.filter(({ thread }) => !threads.has(thread)), seen };
  }
}

export async function* asDoubtful(pages: CandidatePages): CandidatePages {
  for await (const { found } of pages) yield newCandidatePage(found.map(doubtfulCandidate));
}

export const doubtfulCandidate = (one: Candidate): Candidate => ({ ...one, doubtful: true });

import { listThreads } from "../api/client.ts";
import type { ThreadListFilter, ThreadRow } from "../api/records.ts";

/**
 * The largest numbers of threads read by one request and in total. The API cannot search in texts, so the page reads
 * the threads and searches in them itself.
 */
const PER_REQUEST = 1_000;
const MAX_THREADS = 20_000;
/** An id that no thread has. It stands for "no match", since an empty list of ids would not filter anything. */
const NOBODY = "00000000-0000-0000-0000-000000000000";

export interface FoundThreads {
  readonly ids: readonly string[];
  /** Why `ids` may not have all matches: there are more than one request can list, or not all threads were searched. Null: it has all. */
  readonly limit: "matches" | "searched" | null;
}

/** The words for each limit of a search. */
export const SEARCH_LIMIT_TEXTS = {
  matches: `More than ${PER_REQUEST.toLocaleString("en")} threads match: these are the last updated.`,
  searched: `Only the ${MAX_THREADS.toLocaleString("en")} threads that were updated last were searched.`,
};

/** Finds the threads that match all of the words, last changed first. A word matches at the end of the id or anywhere in the metadata. */
export async function findThreads(
  filter: ThreadListFilter,
  words: readonly string[],
  signal: AbortSignal,
): Promise<FoundThreads> {
  const ids: string[] = [];
  let isAllSearched = false;
  for (let offset = 0; offset < MAX_THREADS && !isAllSearched && ids.length <= PER_REQUEST;) {
    const { rows, total } = await listThreads(filter, "latest", offset, PER_REQUEST, signal);
    ids.push(...rows.filter((row) => containsAll(row, words)).map(({ thread_id }) => thread_id));
    offset += PER_REQUEST;
    isAllSearched = total <= offset;
  }
  if (ids.length > PER_REQUEST) return { ids: ids.slice(0, PER_REQUEST), limit: "matches" };
  return { ids: ids.length === 0 ? [NOBODY] : ids, limit: isAllSearched ? null : "searched" };
}

export function containsAll(
  { thread_id, metadata }: Pick<ThreadRow, "thread_id" | "metadata">,
  words: readonly string[],
) {
  const text = JSON.stringify(metadata).toLowerCase();
  return words.every((word) => thread_id.endsWith(word.toLowerCase()) || text.includes(word.toLowerCase()));
}

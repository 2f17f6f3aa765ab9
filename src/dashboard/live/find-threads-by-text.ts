import { listThreads } from "../api/client.ts";
import type { ThreadListFilter, ThreadRow } from "../api/records.ts";

/**
 * The largest numbers of threads that are read by one request and by one search. The API cannot search in texts, so
 * the page reads the threads and searches in their metadata itself.
 */
const MAX_PER_REQUEST = 1_000;
const MAX_THREADS = 20_000;
/**
 * An id that no thread has, returned if no thread matches: as a filter, an empty list of ids would match all threads.
 */
const NO_THREAD_ID = "00000000-0000-0000-0000-000000000000";

export interface FoundThreads {
  readonly ids: readonly string[];
  /**
   * Why `ids` may lack some matches: `matches` if more threads match than one request can list, `searched` if not all
   * threads were searched. Null if no match is missing.
   */
  readonly limit: "matches" | "searched" | null;
}

/** The text for the user about each {@link FoundThreads.limit}. */
export const SEARCH_LIMIT_TEXTS = {
  matches: `More than ${MAX_PER_REQUEST.toLocaleString("en")} threads match: these are the last updated.`,
  searched: `Only the ${MAX_THREADS.toLocaleString("en")} threads that were updated last were searched.`,
};

/**
 * Finds the threads that match all words, most recently changed first. A word matches the end of a thread's id, or any
 * part of its metadata as JSON.
 */
export async function findThreads(
  filter: ThreadListFilter,
  words: readonly string[],
  signal: AbortSignal,
): Promise<FoundThreads> {
  const ids: string[] = [];
  let isAllSearched = false;
  for (let offset = 0; offset < MAX_THREADS && !isAllSearched && ids.length <= MAX_PER_REQUEST;) {
    const { rows, total } = await listThreads(filter, "latest", offset, MAX_PER_REQUEST, signal);
    ids.push(...rows.filter((row) => containsAll(row, words)).map(({ thread_id }) => thread_id));
    offset += MAX_PER_REQUEST;
    isAllSearched = total <= offset;
  }
  if (ids.length > MAX_PER_REQUEST) return { ids: ids.slice(0, MAX_PER_REQUEST), limit: "matches" };
  return { ids: ids.length === 0 ? [NO_THREAD_ID] : ids, limit: isAllSearched ? null : "searched" };
}

export function containsAll(
  { thread_id, metadata }: Pick<ThreadRow, "thread_id" | "metadata">,
  words: readonly string[],
) {
  const text = JSON.stringify(metadata).toLowerCase();
  return words.every((word) => thread_id.endsWith(word.toLowerCase()) || text.includes(word.toLowerCase()));
}

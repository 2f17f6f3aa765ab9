import { listThreads } from "../api/client.ts";
import type { ThreadListFilter, ThreadRow } from "../api/records.ts";

/** The largest number of threads that one request reads, and that a search can find. */
const MAX_PER_REQUEST = 1_000;
/**
 * The largest number of threads that one search reads. The API has no text search, so the page reads the threads and
 * searches in their metadata itself.
 */
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

/** The length of the shortest word that can match an id. */
const MIN_ID_CHARACTERS = 4;
/** A UUID, or at least 24 hexadecimal digits, such as the id of a question or a trace. */
const ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,})$/;

/**
 * Finds the threads that match the filter and contain all words, most recently changed first. If no thread has one of
 * the filter's ids, these ids are searched as words.
 */
export async function findThreadsByText(
  filter: ThreadListFilter,
  words: readonly string[],
  signal: AbortSignal,
): Promise<FoundThreads> {
  const { ids: named = [], ...others } = filter;
  // A complete id that is not a thread's may be in the metadata.
  if (named.length > 0 && (await listThreads(filter, "latest", 0, 1, signal)).total === 0)
    return findThreadsByText(others, [...words, ...named], signal);
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

/**
 * Returns whether a thread matches all words. A word matches any part of the metadata, but of an id only the beginning,
 * because almost every id contains a given digit. It also matches the end of the thread's own id, which the list shows.
 */
function containsAll(
  { thread_id, metadata }: Pick<ThreadRow, "thread_id" | "metadata">,
  words: readonly string[],
): boolean {
  const ids = [thread_id];
  const text = JSON.stringify(metadata, (_, value: unknown) => {
    if (typeof value !== "string" || !ID.test(value.toLowerCase())) return value;
    ids.push(value.toLowerCase());
    return "";
  }).toLowerCase();
  const isOfId = (word: string) =>
    word.length >= MIN_ID_CHARACTERS && (thread_id.endsWith(word) || ids.some((id) => id.startsWith(word)));
  return words.map((word) => word.toLowerCase()).every((word) => text.includes(word) || isOfId(word));
}

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
  /** Whether `ids` has all matches. False if not all threads were searched, or there are too many matches. */
  readonly isAll: boolean;
}

/** Finds the threads that match all of the words, last changed first. A word matches at the end of the id or anywhere in the metadata. */
export async function findThreads(
  filter: ThreadListFilter,
  words: readonly string[],
  signal: AbortSignal,
): Promise<FoundThreads> {
  const ids: string[] = [];
  for (let offset = 0; offset < MAX_THREADS; offset += PER_REQUEST) {
    const { rows } = await listThreads(filter, "latest", offset, PER_REQUEST, signal);
    ids.push(...rows.filter((row) => containsAll(row, words)).map(({ thread_id }) => thread_id));
    const isLast = rows.length < PER_REQUEST;
    if (isLast || ids.length > PER_REQUEST)
      return { ids: ids.length === 0 ? [NOBODY] : ids.slice(0, PER_REQUEST), isAll: isLast };
  }
  return { ids: ids.length === 0 ? [NOBODY] : ids.slice(0, PER_REQUEST), isAll: false };
}

export function containsAll(
  { thread_id, metadata }: Pick<ThreadRow, "thread_id" | "metadata">,
  words: readonly string[],
) {
  const text = JSON.stringify(metadata).toLowerCase();
  return words.every((word) => thread_id.endsWith(word.toLowerCase()) || text.includes(word.toLowerCase()));
}

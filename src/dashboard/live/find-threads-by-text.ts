import { listThreads } from "../api/client.ts";
import type { ThreadListFilter, ThreadRow } from "../api/records.ts";
import { errorLine } from "../components/one-line-text.ts";
import type { ThreadDescriptions } from "./thread-descriptions.ts";

/** The largest number of threads that one request reads, and that a search can find. */
const MAX_PER_REQUEST = 1_000;
/**
 * The largest number of threads that one search reads. The API has no text search, so the page reads the threads and
 * searches in them itself.
 */
const MAX_THREADS = 20_000;
/**
 * The largest number of threads in whose descriptions one search looks, at most {@link MAX_PER_REQUEST}. The server
 * reads the whole state of a thread for its description.
 */
const MAX_DESCRIPTIONS = 1_000;
/**
 * An id that no thread has, returned if no thread matches: as a filter, an empty list of ids would match all threads.
 */
const NO_THREAD_ID = "00000000-0000-0000-0000-000000000000";

export interface FoundThreads {
  readonly ids: readonly string[];
  /**
   * Why `ids` may lack some matches: `matches` if more threads match than one request can list, `searched` if not all
   * threads were searched, `descriptions` if only titles, metadata and errors of some were, `unread` if this is so
   * because of an error. Empty if no match is missing.
   */
  readonly limits: readonly (keyof typeof SEARCH_LIMIT_TEXTS)[];
}

/** The text for the user about each of {@link FoundThreads.limits}. */
export const SEARCH_LIMIT_TEXTS = {
  matches: `More than ${MAX_PER_REQUEST.toLocaleString("en")} threads match: these are the last updated.`,
  searched: `Only the ${MAX_THREADS.toLocaleString("en")} threads that were updated last were searched.`,
  descriptions: `Messages and state were searched only in the ${MAX_DESCRIPTIONS.toLocaleString("en")} threads that were updated last.`,
  unread: "The messages and the state of some threads could not be searched.",
};

/** The length of the shortest word that can match an id. */
const MIN_ID_CHARACTERS = 4;
/** A UUID, or at least 24 hexadecimal digits, such as the id of a question or a trace. */
const ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,})$/;

/**
 * Finds the threads that match the filter and contain all words in what the list shows of them, or in their metadata,
 * most recently changed first. If no thread has one of the filter's ids, these ids are searched as words.
 */
export async function findThreadsByText(
  filter: ThreadListFilter,
  words: readonly string[],
  descriptions: ThreadDescriptions,
  signal: AbortSignal,
): Promise<FoundThreads> {
  const { ids: named = [], ...others } = filter;
  // A complete id that is not a thread's may be in the metadata.
  if (named.length > 0 && (await listThreads(filter, "latest", 0, 1, signal)).total === 0)
    return findThreadsByText(others, [...words, ...named], descriptions, signal);
  const wanted = words.map((word) => word.toLowerCase());
  const ids: string[] = [];
  const limits = new Set<FoundThreads["limits"][number]>();
  let isAllSearched = false;
  for (let offset = 0; offset < MAX_THREADS && !isAllSearched && ids.length <= MAX_PER_REQUEST;) {
    const { rows, total } = await listThreads(filter, "latest", offset, MAX_PER_REQUEST, signal);
    const undescribed = rows.filter((row) => !containsAll(row, "", wanted));
    if (offset < MAX_DESCRIPTIONS) {
      await descriptions.read(undescribed);
      signal.throwIfAborted();
      if (undescribed.some((row) => descriptions.isMissing(row))) limits.add("unread");
    } else if (undescribed.some((row) => descriptions.isMissing(row))) limits.add("descriptions");
    ids.push(
      ...rows
        .filter((row) => containsAll(row, descriptions.of(row), wanted))
        .map(({ thread_id }) => thread_id),
    );
    offset += MAX_PER_REQUEST;
    isAllSearched = total <= offset;
  }
  if (ids.length > MAX_PER_REQUEST) return { ids: ids.slice(0, MAX_PER_REQUEST), limits: ["matches"] };
  if (!isAllSearched) limits.add("searched");
  return { ids: ids.length === 0 ? [NO_THREAD_ID] : ids, limits: [...limits] };
}

/**
 * Returns whether a thread matches all words, which are in lower case. A word matches any part of the metadata, the
 * description or the error, but of an id only the beginning, because almost every id contains a given digit. It also
 * matches the end of the thread's own id, which the list shows.
 */
function containsAll(
  { thread_id, metadata, error }: Pick<ThreadRow, "thread_id" | "metadata" | "error">,
  description: string,
  words: readonly string[],
): boolean {
  const ids = [thread_id];
  const withoutId = (text: string): string => {
    if (!ID.test(text.toLowerCase())) return text;
    ids.push(text.toLowerCase());
    return "";
  };
  const text = [
    JSON.stringify(metadata, (_, value: unknown) => (typeof value === "string" ? withoutId(value) : value)),
    error === undefined ? "" : errorLine(error.error, error.message),
    ...description.split(" ").map(withoutId),
  ]
    .join(" ")
    .toLowerCase();
  const isOfId = (word: string) =>
    word.length >= MIN_ID_CHARACTERS && (thread_id.endsWith(word) || ids.some((id) => id.startsWith(word)));
  return words.every((word) => text.includes(word) || isOfId(word));
}

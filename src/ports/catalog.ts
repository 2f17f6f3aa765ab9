import type { AssistantFilter, AssistantRecord, AssistantVersion } from "../model/assistant.ts";
import type { RunFilter, RunWithoutKwargs } from "../model/run-search.ts";
import type { ThreadFilter, ThreadOrder } from "../model/thread-search.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";
import type { StoreItems } from "./store-items.ts";

export interface ThreadQuery {
  readonly limit: number;
  /**
   * Only threads whose id sorts after this id. Ids that the server makes are UUIDs of version 7, so they sort by time
   * of creation.
   */
  readonly after?: string;
}

export interface ThreadSelection extends ThreadFilter {
  /**
   * An additional condition that no index can answer. It is checked last, for each thread that matches all other
   * conditions.
   */
  readonly keep?: (thread: ThreadRecord) => Eventually<boolean>;
}

export interface ThreadSearch extends ThreadSelection {
  readonly limit: number;
  readonly offset: number;
  readonly sort_by: ThreadOrder;
  readonly sort_order: "asc" | "desc";
}

export interface ThreadRecordPage {
  readonly threads: readonly ThreadRecord[];
  /**
   * The number of matching threads on all pages. It may be too low if many threads follow this page, because the catalog does not have to
   * count them all.
   */
  readonly total: number;
  /** True when there may be more threads after this page. */
  readonly more: boolean;
}

export interface RunSearch extends RunFilter {
  readonly limit: number;
  /** The cursor for the next page: {@link RunRecordPage.next} of an earlier page with the same filter and order. */
  readonly cursor?: string;
  /** Sort order, by time of creation. */
  readonly sort_order: "asc" | "desc";
  /**
   * An additional condition that no index can answer. It is checked last, for each run that matches all other
   * conditions.
   */
  readonly keep: (run: RunWithoutKwargs, thread: ThreadRecord) => boolean;
}

export interface RunRecordPage {
  /** The runs of the page. They are fewer than the limit if no more runs match, or if the records are large. */
  readonly runs: readonly RunWithoutKwargs[];
  /**
   * For each run of the page, the cursor with which a search continues after this run. Cursors MUST sort, as strings, in the order of the
   * runs, and MUST be valid in the catalog of every shard.
   */
  readonly cursors: readonly string[];
  /** The cursor for the next page, which may turn out to be empty; undefined if there are no more runs. */
  readonly next: string | undefined;
}

export type CatalogChange =
  | { readonly kind: "assistant.put"; readonly assistant: AssistantRecord }
  | { readonly kind: "assistant.version"; readonly version: AssistantVersion }
  /** Deletes an assistant with all versions that are stored when the change is made. */
  | { readonly kind: "assistant.delete"; readonly assistant: string };

/** Stored data outside of threads (assistants and store items), and the searches for threads and runs. */
export interface Catalog {
  assistant(tenant: string, id: string): Eventually<AssistantRecord | undefined>;
  /** The assistants that match, newest first. */
  assistants(tenant: string, filter: AssistantFilter): AsyncIterable<AssistantRecord>;
  /** An assistant's versions, newest first. */
  versions(tenant: string, assistant: string): AsyncIterable<AssistantVersion>;
  version(tenant: string, assistant: string, version: number): Eventually<AssistantVersion | undefined>;
  readonly items: StoreItems;
  /** Makes all changes or none. Resolves when they would survive a power cut. */
  transact(tenant: string, changes: readonly CatalogChange[]): Promise<void>;

  // --- the index of threads, updated by the journal's appends; temporary threads are not in it ---
  threads(tenant: string, query: ThreadQuery): Promise<readonly ThreadKey[]>;
  /**
   * A page of the threads that match. MUST NOT read every thread in two cases:
   * - There is no filter, and the threads are sorted by id, creation or last change.
   * - The threads are sorted by creation, and filtered by status or by one member of the metadata (a string, a number, a boolean or null).
   */
  searchThreads(tenant: string, search: ThreadSearch): Promise<ThreadRecordPage>;
  /** The exact number of threads that match. */
  countThreads(tenant: string, selection: ThreadSelection): Promise<number>;
  /**
   * A page of the matching runs of all threads, except temporary threads.
   * - The cost of a page MUST NOT depend on how many pages came before it.
   * - The runs that follow a cursor MUST stay the same when runs are admitted later.
   * - Failed runs, and the runs of one thread, MUST be found without reading other runs.
   */
  searchRuns(tenant: string, search: RunSearch): Promise<RunRecordPage>;
  /**
   * Up to `limit` threads of all tenants whose `ttl.due` is at or before `now` (epoch milliseconds), earliest first.
   */
  dueThreads(now: number, limit: number): Promise<readonly ThreadKey[]>;
}

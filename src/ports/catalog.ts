import type { AssistantFilter, AssistantRecord, AssistantVersion } from "../model/assistant.ts";
import type { ThreadFilter, ThreadOrder } from "../model/thread-search.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";
import type { Items } from "./store-items.ts";

export interface ThreadQuery {
  readonly limit: number;
  /** Only threads after this id, in the order of ids (which, being UUID version 7, is that of creation). */
  readonly after?: string;
}

export interface ThreadSelection extends ThreadFilter {
  /** Asked last, of each thread that fits the rest: what the index knows nothing of. */
  readonly keep?: (thread: ThreadRecord) => Eventually<boolean>;
}

export interface ThreadSearch extends ThreadSelection {
  readonly limit: number;
  readonly offset: number;
  readonly sort_by: ThreadOrder;
  readonly sort_order: "asc" | "desc";
}

export interface ThreadsFound {
  readonly threads: readonly ThreadRecord[];
  /** How many there are on all pages; where that is no fewer than some hundred more, it may say less. */
  readonly total: number;
  /** May there be more behind this page? */
  readonly more: boolean;
}

/** One change of the catalog. */
export type CatalogChange =
  | { readonly kind: "assistant.put"; readonly assistant: AssistantRecord }
  | { readonly kind: "assistant.version"; readonly version: AssistantVersion }
  /** With its versions that are stored by then. */
  | { readonly kind: "assistant.delete"; readonly assistant: string };

/** What no thread owns. Each `transact` is atomic and acknowledged: it resolves once it would survive a power cut. */
export interface Catalog {
  assistant(tenant: string, id: string): Eventually<AssistantRecord | undefined>;
  /** Newest first. */
  assistants(tenant: string, filter: AssistantFilter): AsyncIterable<AssistantRecord>;
  /** An assistant's versions, newest first. */
  versions(tenant: string, assistant: string): AsyncIterable<AssistantVersion>;
  version(tenant: string, assistant: string, version: number): Eventually<AssistantVersion | undefined>;
  /** Those of the store. */
  readonly items: Items;
  transact(tenant: string, changes: readonly CatalogChange[]): Promise<void>;

  // --- the index of threads, which the journal's appends keep; temporary ones are not in it ---
  threads(tenant: string, query: ThreadQuery): Promise<readonly ThreadKey[]>;
  /**
   * A page of the threads that fit. MUST NOT look at every thread for a page by id, by creation or by last change, in a status
   * by creation, or with one member of the metadata (a text, a number, a boolean or null) by creation.
   */
  searchThreads(tenant: string, search: ThreadSearch): Promise<ThreadsFound>;
  /** How many fit, exactly. */
  countThreads(tenant: string, selection: ThreadSelection): Promise<number>;
  /** Threads of all tenants whose `ttl.due` is not after `now` (epoch milliseconds), the first due first. */
  dueThreads(now: number, limit: number): Promise<readonly ThreadKey[]>;
}

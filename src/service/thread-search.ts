import { contains, type JsonObject } from "../model/json.ts";
import { type Permission, permitsOf } from "../model/permitted-resources.ts";
import type { ThreadFilter, ThreadOrder } from "../model/thread-search.ts";
import type { ThreadRecord } from "../model/thread.ts";
import type { Catalog, ThreadSelection } from "../ports/catalog.ts";
import { type ValuePath, valueAtPath } from "./value-path.ts";

export interface ThreadSearchFilter extends ThreadFilter {
  /** The thread's state must contain all these entries. */
  readonly values?: JsonObject;
  /** Only threads that this permission allows. */
  readonly permission?: Permission | undefined;
}

export interface ThreadSearchQuery extends ThreadSearchFilter {
  readonly limit: number;
  readonly offset: number;
  /** Default `created_at`. */
  readonly sort_by?: ThreadOrder;
  /** Default `desc`. */
  readonly sort_order?: "asc" | "desc";
  /** The fields to show; undefined: all. */
  readonly select?: readonly string[];
  /**
   * Values to extract from each thread, by the name under which the response field `extracted` shows them.
   */
  readonly extract?: ReadonlyMap<string, ValuePath>;
}

export interface ThreadSearchPage {
  /** Each thread is read only when the iterator reaches it: all threads together, with their states, may be larger than memory. */
  readonly threads: AsyncIterable<JsonObject>;
  /**
   * The number of matches. The search does not count all of them if there are many more than fit on this page. The number is then too low,
   * but higher than the offset at which the page ends.
   */
  readonly total: number;
  /** The offset of the next page, if there may be one. */
  readonly next: number | undefined;
}

/** Access to the records and states of threads, for a search. */
export interface ThreadRecordReader {
  /** The state of a thread, or only these keys of it; null when it has none. */
  values(tenant: string, thread: ThreadRecord, keys?: readonly string[]): Promise<JsonObject | null>;
  /** The thread as the API shows it; undefined when it does not exist any more. */
  show(tenant: string, thread: ThreadRecord, withValues: boolean): Promise<JsonObject | undefined>;
}

export async function searchThreads(
  catalog: Catalog,
  reading: ThreadRecordReader,
  tenant: string,
  {
    limit,
    offset,
    sort_by = "created_at",
    sort_order = "desc",
    select,
    extract,
    ...search
  }: ThreadSearchQuery,
): Promise<ThreadSearchPage> {
  const selection = selected(reading, tenant, search);
  const found = await catalog.searchThreads(tenant, { ...selection, limit, offset, sort_by, sort_order });
  const withValues = showsStates({ select, extract });
  async function* shown() {
    for (const record of found.threads) {
      const thread = await reading.show(tenant, record, withValues);
      if (thread === undefined) continue;
      yield extract === undefined ? thread : { ...thread, extracted: extracted(thread, extract) };
    }
  }
  return { threads: shown(), total: found.total, next: found.more ? offset + limit : undefined };
}

/** Whether the response to a search contains the states of threads. States may be large, so otherwise they are not read. */
export function showsStates({
  select,
  extract,
}: {
  readonly select?: ThreadSearchQuery["select"] | undefined;
  readonly extract?: ThreadSearchQuery["extract"] | undefined;
}): boolean {
  const isExtracted = extract !== undefined && [...extract.values()].some(([first]) => first === "values");
  return isExtracted || select === undefined || select.length === 0 || select.includes("values");
}

export function countThreads(
  catalog: Catalog,
  reading: ThreadRecordReader,
  tenant: string,
  search: ThreadSearchFilter,
): Promise<number> {
  return catalog.countThreads(tenant, selected(reading, tenant, search));
}

function selected(
  reading: ThreadRecordReader,
  tenant: string,
  { values, permission, ...filter }: ThreadSearchFilter,
): ThreadSelection {
  if (permission !== undefined) {
    const search = values === undefined ? filter : { values, ...filter };
    return permitted(selected(reading, tenant, search), permission);
  }
  const names = Object.keys(values ?? {});
  if (names.length === 0) return filter;
  const keep = async (thread: ThreadRecord): Promise<boolean> => {
    if (thread.checkpoint === null) return false;
    // If the state cannot be read because the thread is being changed at this moment, the thread counts as no match.
    const state = await reading.values(tenant, thread, names).catch(() => null);
    return state !== null && contains(state, values);
  };
  return { ...filter, keep };
}

/**
 * The selection without the threads that the permission excludes. Conditions of the permission on metadata are added to the filter, so that
 * the search can use the metadata index for them.
 */
function permitted({ keep, ...filter }: ThreadSelection, permission: Permission): ThreadSelection {
  const permits = permitsOf(permission);
  return {
    ...filter,
    metadata: { ...permission.members, ...filter.metadata },
    keep: (thread) => permits?.(thread.metadata) !== false && (keep?.(thread) ?? true),
  };
}

function extracted(thread: JsonObject, extract: ReadonlyMap<string, ValuePath>): JsonObject {
  return Object.fromEntries([...extract].map(([name, path]) => [name, valueAtPath(thread, path)]));
}

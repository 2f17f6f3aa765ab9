import type { ItemKey, SearchOp } from "../../model/store-item.ts";
import type { BudgetShare } from "../../ports/time-budget.ts";
import type { ItemHead, ItemRecord, StoreItems } from "../../ports/store-items.ts";
import { refuseOperation } from "./item-limits.ts";
import { SortedPages } from "../sorted-pages.ts";
import { cosine } from "./embedding.ts";
import type { ItemTest } from "./item-filter.ts";
import type { ItemPermissionFilter } from "./item-permission.ts";

/** The largest total size of the values in one answer, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export interface ItemSearch {
  readonly tenant: string;
  readonly op: SearchOp;
  readonly now: number;
  /** The filter; undefined: none. */
  readonly test: ItemTest | undefined;
  /** The query's vector; undefined: no semantic search. */
  readonly vector: Float32Array | undefined;
  /** Filters out items that the caller may not reach; undefined: the caller may reach all items. */
  readonly gate: ItemPermissionFilter | undefined;
  /** The prefix that names the operation in an error, such as `ops[2].`. */
  readonly at: string;
  /** Makes the search yield to other work. */
  readonly share: BudgetShare;
}

export interface ItemMatch {
  readonly record: ItemRecord;
  readonly score: number | null;
}

interface Candidate {
  readonly head: ItemHead;
  readonly score: number | null;
}

/**
 * A page of the items under a prefix. With a query, the most similar items come first, followed by items without vectors. Without a query,
 * the items that were updated last come first.
 *
 * The scan reads items without their values, and keeps only a limited number of them in memory. Values are read afterwards, in the order of
 * the answer: only those of the page, or, with a filter or a permission, as many as are needed to fill the page. With a query, every vector
 * under the prefix is read and compared.
 */
export async function searchItems(items: StoreItems, search: ItemSearch): Promise<readonly ItemMatch[]> {
  const { tenant, op, now, test, gate, at, share } = search;
  const { limit = 10, offset = 0 } = op;
  const page: ItemMatch[] = [];
  if (limit < 1) return page;
  let bytes = 0;
  const candidates = await candidatesOf(items, search);
  // Without a filter and a permission, only the values of the page have to be read.
  const isFiltered = test !== undefined || gate !== undefined;
  let skip = isFiltered ? offset : 0;
  const found = isFiltered ? candidates.from(0) : candidates.from(offset, limit);
  for await (const { head, score } of found) {
    if (share.isSpent(head.bytes)) await share.next();
    const record = await items.find(tenant, head);
    // The item may have been deleted since the scan.
    if (record === undefined || !isUnexpired(record, now) || gate?.letsItem(record) === false) continue;
    if (test?.(record.value) === false) continue;
    if (skip-- > 0) continue;
    bytes += record.bytes;
    if (bytes > MAX_ANSWER_BYTES)
      refuseOperation(`${at}limit`, `is too many: their values have more than ${MAX_ANSWER_BYTES} bytes`);
    page.push({ record, score });
    if (page.length === limit) break;
  }
  return page;
}

async function candidatesOf(
  items: StoreItems,
  { tenant, op, now, vector }: ItemSearch,
): Promise<SortedPages<Candidate>> {
  const { namespace_prefix: prefix } = op;
  const scores = vector === undefined ? undefined : await scoresOf(items, tenant, prefix, vector);
  return new SortedPages(async function* scan() {
    for await (const head of items.heads(tenant, prefix)) {
      if (isUnexpired(head, now)) yield { head, score: scores?.get(itemName(head)) ?? null };
    }
  }, compare);
}

function compare({ head: a, score: of }: Candidate, { head: b, score: than }: Candidate): number {
  const first = descending(of ?? -2, than ?? -2) || descending(a.updated_at, b.updated_at);
  if (first !== 0) return first;
  const [one, other] = [itemName(a), itemName(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The best score among each item's vectors, by item name. */
async function scoresOf(
  items: StoreItems,
  tenant: string,
  prefix: ItemKey["namespace"],
  query: Float32Array,
): Promise<ReadonlyMap<string, number>> {
  const scores = new Map<string, number>();
  for await (const { vectors, ...place } of items.vectors(tenant, prefix)) {
    for (const vector of vectors) {
      const score = cosine(query, vector);
      if (score === undefined) continue;
      const name = itemName(place);
      scores.set(name, Math.max(score, scores.get(name) ?? -1));
    }
  }
  return scores;
}

const descending = (a: number, b: number): number => b - a;

const itemName = ({ namespace, key }: ItemKey): string => JSON.stringify([...namespace, key]);

export const isUnexpired = ({ expires_at }: ItemHead, now: number): boolean =>
  expires_at === null || expires_at > now;

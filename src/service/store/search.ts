import type { ItemPlace, SearchOp } from "../../model/item.ts";
import type { Share } from "../../ports/budget.ts";
import type { ItemHead, ItemRecord, Items } from "../../ports/items.ts";
import { refuse } from "./checks.ts";
import { cosine } from "./embedding.ts";
import type { Test } from "./filter.ts";

/** Bytes of values that one answer may hold. */
const MOST = 64 * 1024 * 1024;

export interface Search {
  readonly tenant: string;
  readonly op: SearchOp;
  readonly now: number;
  /** What the value has to pass. */
  readonly test: Test | undefined;
  /** The query's. */
  readonly vector: Float32Array | undefined;
  /** Names the operation in an error. */
  readonly at: string;
  /** What it goes on by. */
  readonly share: Share;
}

export interface Found {
  readonly record: ItemRecord;
  readonly score: number | null;
}

interface Candidate {
  readonly head: ItemHead;
  readonly score: number | null;
}

/**
 * A page of the items under a prefix: the nearest to the query first, then what is not indexed; else the last updated first.
 * Heads alone are looked through; values are read in the order of the answer, as far as the page (and a filter) needs. With a
 * query every vector under the prefix is read and compared.
 */
export async function searchItems(items: Items, search: Search): Promise<readonly Found[]> {
  const { tenant, op, now, test, at, share } = search;
  const candidates = await candidatesOf(items, search);
  const { limit = 10, offset = 0 } = op;
  const page: Found[] = [];
  let bytes = 0;
  // Without a filter their number is known before they are read.
  let skip = test === undefined ? 0 : offset;
  for (let i = test === undefined ? offset : 0; i < candidates.length && page.length < limit; i++) {
    const { head, score } = candidates[i] as Candidate;
    if (share.isSpent(head.bytes)) await share.next();
    const record = await items.find(tenant, head);
    // It may have been deleted since.
    if (record === undefined || !isAlive(record, now) || test?.(record.value) === false) continue;
    if (skip-- > 0) continue;
    bytes += record.bytes;
    if (bytes > MOST) refuse(`${at}limit`, `is too many: their values have more than ${MOST} bytes`);
    page.push({ record, score });
  }
  return page;
}

async function candidatesOf(
  items: Items,
  { tenant, op, now, vector }: Search,
): Promise<readonly Candidate[]> {
  const { namespace_prefix: prefix } = op;
  const scores = vector === undefined ? undefined : await scoresOf(items, tenant, prefix, vector);
  const candidates: Candidate[] = [];
  for await (const head of items.heads(tenant, prefix)) {
    if (isAlive(head, now)) candidates.push({ head, score: scores?.get(nameOf(head)) ?? null });
  }
  return candidates.sort(
    (a, b) => descending(a.score ?? -2, b.score ?? -2) || descending(a.head.updated_at, b.head.updated_at),
  );
}

/** The best of each item's vectors. */
async function scoresOf(
  items: Items,
  tenant: string,
  prefix: ItemPlace["namespace"],
  query: Float32Array,
): Promise<ReadonlyMap<string, number>> {
  const scores = new Map<string, number>();
  for await (const { vectors, ...place } of items.vectors(tenant, prefix)) {
    for (const vector of vectors) {
      const score = cosine(query, vector);
      if (score === undefined) continue;
      const name = nameOf(place);
      scores.set(name, Math.max(score, scores.get(name) ?? -1));
    }
  }
  return scores;
}

const descending = (a: number, b: number): number => b - a;

const nameOf = ({ namespace, key }: ItemPlace): string => JSON.stringify([...namespace, key]);

export const isAlive = ({ expires_at }: ItemHead, now: number): boolean =>
  expires_at === null || expires_at > now;

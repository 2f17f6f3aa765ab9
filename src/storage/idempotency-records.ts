import type { CompletedRequest } from "../ports/journal.ts";
import type { Committer } from "./committer.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { IDEMPOTENCY_EXPIRIES_RANGE, idempotencyRecordKey, parseIdempotencyExpiryKey } from "./keys.ts";
import { allEventually, andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import type { WriteOrder } from "./write-order.ts";

/** Reads the record of a request that was carried out with an idempotency key. */
export function readIdempotencyRecord(
  kv: KeyValueStore,
  tenant: string,
  name: string,
): Eventually<CompletedRequest | undefined> {
  return andThen(
    kv.get(idempotencyRecordKey(tenant, name)),
    (bytes) =>
      bytes && (decodeWithChecksum(bytes, { tenant, thread: "" }, `request ${name}`) as CompletedRequest),
  );
}

/** Deletes the records of requests that were made before the time `before`, at most `most` of them. Returns true when there may be more. */
export async function expireIdempotencyRecords(
  kv: KeyValueStore,
  committer: Committer,
  order: WriteOrder,
  before: number,
  most: number,
): Promise<boolean> {
  const expired: {
    readonly mark: string;
    readonly at: number;
    readonly tenant: string;
    readonly name: string;
  }[] = [];
  for await (const [mark] of kv.entries({ ...IDEMPOTENCY_EXPIRIES_RANGE, limit: most })) {
    const once = parseIdempotencyExpiryKey(mark);
    if (once.at >= before) break;
    expired.push({ mark, ...once });
  }
  if (expired.length === 0) return false;
  const keys = expired.map(({ tenant, name }) => idempotencyRecordKey(tenant, name));
  const submitted = order.run(keys, () =>
    andThen(
      allEventually(expired.map(({ tenant, name }) => readIdempotencyRecord(kv, tenant, name))),
      (found) => {
        const ops: WriteOperation[] = expired.map(({ mark }) => ({ key: mark, value: null }));
        // A record is deleted only if it has the same time as its index key (`mark`). A record with another time is newer: the idempotency
        // key was used again.
        for (const [i, { at }] of expired.entries())
          if (found[i]?.at === at) ops.push({ key: keys[i] as string, value: null });
        return { stored: committer.store(ops, false) };
      },
    ),
  );
  await (
    await submitted
  ).stored;
  return expired.length >= most;
}

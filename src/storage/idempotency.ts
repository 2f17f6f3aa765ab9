import type { CompletedRequest } from "../ports/journal.ts";
import { unseal } from "./envelope.ts";
import { ONCE_MARKS_RANGE, onceKey, parseOnce } from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";

/** The record of a request with an idempotency key that was carried out. */
export function readOnceRecord(
  kv: KeyValueStore,
  tenant: string,
  name: string,
): CompletedRequest | undefined {
  const bytes = kv.getSync(onceKey(tenant, name));
  return bytes && (unseal(bytes, { tenant, thread: "" }, `request ${name}`) as CompletedRequest);
}

/** Deletes the records of requests before `before`, at most `most`. Returns true when there may be more. */
export async function expireOnceRecords(
  kv: KeyValueStore,
  submit: (ops: readonly WriteOperation[]) => Promise<void>,
  before: number,
  most: number,
): Promise<boolean> {
  const ops: WriteOperation[] = [];
  let count = 0;
  for await (const [mark] of kv.entries({ ...ONCE_MARKS_RANGE, limit: most })) {
    const { at, tenant, name } = parseOnce(mark);
    if (at >= before) break;
    count++;
    ops.push({ key: mark, value: null });
    // The key may have been used again since.
    if (readOnceRecord(kv, tenant, name)?.at === at) ops.push({ key: onceKey(tenant, name), value: null });
  }
  if (ops.length > 0) await submit(ops);
  return count >= most;
}

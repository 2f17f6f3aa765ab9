import type { ThreadKey } from "../model/thread.ts";
import type { StoredRows, StoredSizes } from "../model/stored-sizes.ts";
import { prefixRange, threadPrefix, unescapeSegment } from "./keys.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";

type Kind = Exclude<keyof StoredSizes, "channels"> | "values";

/** The kinds of rows, by the first segment of their keys; see `keys.ts`. */
const KINDS: { readonly [segment: string]: Kind } = {
  h: "thread",
  j: "thread",
  r: "runs",
  k: "runs",
  o: "runs",
  s: "runs",
  c: "checkpoints",
  b: "values",
  l: "values",
  w: "writes",
  e: "events",
};

class Sum implements StoredRows {
  count = 0;
  bytes = 0;

  add(bytes: number): void {
    this.count++;
    this.bytes += bytes;
  }
}

const NO_ROWS: StoredRows = { count: 0, bytes: 0 };
export const NOTHING_STORED: StoredSizes = {
  checkpoints: NO_ROWS,
  channels: new Map(),
  writes: NO_ROWS,
  runs: NO_ROWS,
  events: NO_ROWS,
  thread: NO_ROWS,
};

/**
 * Adds up the stored rows of a thread, as they are at one moment. LevelDB can tell the size of a value only by reading it. So the whole
 * thread is read, page by page, within the tenant's part of the time budget, but no value is decoded.
 */
export async function sumThreadSizes(kv: KeyValueStore, key: ThreadKey): Promise<StoredSizes> {
  const [checkpoints, writes, runs, events, thread] = [new Sum(), new Sum(), new Sum(), new Sum(), new Sum()];
  const sums = { checkpoints, writes, runs, events, thread };
  const channels = new Map<string, Sum>();
  const prefix = threadPrefix(key);
  for await (const [at, value] of kv.entries(prefixRange(prefix))) {
    const [segment = "", , channel = "", task] = at.slice(prefix.length).split("/", 4);
    const kind = KINDS[segment];
    // A key without a task only marks that the checkpoint has writes.
    if (kind === undefined || (kind === "writes" && task === undefined)) continue;
    if (kind !== "values") {
      sums[kind].add(value.length);
      continue;
    }
    const name = unescapeSegment(channel);
    const known = channels.get(name);
    const sum = known ?? new Sum();
    if (known === undefined) channels.set(name, sum);
    sum.add(value.length);
  }
  return { ...sums, channels };
}

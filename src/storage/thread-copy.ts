import { ServiceError, threadNotFound } from "../model/errors.ts";
import { threadMapKey, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import { journalEntryKey, threadRecordKey, threadPrefix, prefixRange } from "./keys.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { type JournalEntry, threadRowConverter } from "./stored-records.ts";
import type { MarkedDeletions } from "./marked-deletions.ts";
import { MetadataIndexKeyCache } from "./metadata-index-keys.ts";
import { threadIndexOps } from "./thread-index.ts";
import type { ThreadHeads } from "./thread-heads.ts";
import type { WriteOrder } from "./write-order.ts";

interface Deps {
  readonly kv: KeyValueStore;
  readonly heads: ThreadHeads;
  readonly deletions: MarkedDeletions;
  readonly order: WriteOrder;
}

/** The kinds of keys that a copy includes: journal entries, checkpoints, values, pending writes. */
const COPIED_KEY_KINDS: ReadonlySet<string> = new Set(["j", "c", "b", "l", "w"]);

/** A piece of the copy is written when it has this many operations. */
const PIECE_OPS = 256;
/** A piece of the copy is also written when its values have this many bytes or more. */
const PIECE_BYTES = 256 * 1024;

/**
 * Copies a thread in the state of one moment. The copy may be too large for one batch, so it is written in pieces. An incomplete copy has
 * the mark of a thread that is being deleted: readers do not see it, and after a crash it is deleted. The last piece removes the mark and
 * adds the thread's record.
 */
export async function copyThread(
  deps: Deps,
  from: ThreadKey,
  to: ThreadKey,
  make: (thread: ThreadRecord) => ThreadRecord,
): Promise<ThreadRecord> {
  const { kv, deletions } = deps;
  await (
    await reserve(deps, to)
  ).stored;
  try {
    const origin = await copyRows(kv, deletions, from, to);
    const thread = make(origin);
    const { seq, epoch } = thread;
    const entry: JournalEntry = { kind: "copied", epoch };
    const prefix = threadPrefix(to);
    const ops: WriteOperation[] = [
      { key: threadRecordKey(prefix), value: encodeWithChecksum(threadRowConverter.row(thread)) },
      { key: journalEntryKey(prefix, seq), value: encodeWithChecksum(entry) },
    ];
    threadIndexOps(ops, to, undefined, thread, new MetadataIndexKeyCache());
    await deletions.publish(to, ops);
    return thread;
  } catch (cause) {
    // Deletes the pieces that were written. If that fails too, the next start of the server deletes them.
    await deletions.sweep(to, null).catch(() => undefined);
    throw cause;
  }
}

/**
 * Reserves the id of the copy.
 * @throws ServiceError `journal.conflict` if a thread with this id exists or is still being deleted
 */
function reserve(
  { heads, deletions, order }: Deps,
  to: ThreadKey,
): Eventually<{ readonly stored: Promise<void> }> {
  return order.run([threadMapKey(to)], () =>
    andThen(heads.peek(to)?.thread ?? heads.thread(to), (existing) => {
      if (existing !== undefined || deletions.refusesWrites(to))
        throw new ServiceError("journal.conflict", `There is a thread ${to.thread} already`);
      return { stored: deletions.reserve(to) };
    }),
  );
}

/** Copies the rows from one snapshot of the thread, so that the copied record matches the copied data. */
async function copyRows(
  kv: KeyValueStore,
  deletions: MarkedDeletions,
  from: ThreadKey,
  to: ThreadKey,
): Promise<ThreadRecord> {
  const [source, target] = [threadPrefix(from), threadPrefix(to)];
  let origin: ThreadRecord | undefined;
  let ops: WriteOperation[] = [];
  let bytes = 0;
  for await (const [key, value] of kv.entries(prefixRange(source))) {
    const rest = key.slice(source.length);
    if (key === threadRecordKey(source))
      origin = threadRowConverter.record(decodeWithChecksum(value, from, "its record"));
    if (!COPIED_KEY_KINDS.has(rest.split("/", 1)[0] ?? "")) continue;
    ops.push({ key: target + rest, value });
    bytes += value.length;
    if (ops.length < PIECE_OPS && bytes < PIECE_BYTES) continue;
    await deletions.writePiece(to, ops);
    [ops, bytes] = [[], 0];
  }
  if (origin === undefined || origin.temporary !== null) throw threadNotFound(from.thread);
  await deletions.writePiece(to, ops);
  return origin;
}

import type { ThreadKey } from "../model/thread.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import {
  CHECK_KEY,
  checkpointKey,
  escapeSegment,
  listSpanPrefix,
  threadPrefix,
  unescapeSegment,
  channelValueKey,
  prefixRange,
} from "./keys.ts";
import { parseOrdinal } from "./sortable-numbers.ts";
import type { ThreadHead } from "./thread-heads.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { checkpointRowConverter, type StoredCheckpoint } from "./stored-records.ts";
import { unpackRefs } from "./channel-ref-codec.ts";

/** The most deletions in one batch. */
const DELETIONS_PER_BATCH = 200;

type Write = (ops: readonly WriteOperation[], durable: boolean) => Promise<void>;

/**
 * Deletes all checkpoints except the latest of each namespace, and the data to which only the deleted ones refer.
 * Writes in pieces. The order of the deletions keeps every existing checkpoint readable after each piece:
 *
 * 1. The parents of the remaining checkpoints are set to null.
 * 2. The other checkpoints are deleted, newest first. The pending writes of each checkpoint are deleted before it.
 * 3. The values to which no remaining checkpoint refers are deleted.
 */
export async function pruneThread(
  kv: KeyValueStore,
  { key, prefix, thread, tail }: ThreadHead,
  write: Write,
): Promise<void> {
  if (thread === undefined) return;
  // Waits for writes in flight, so that their data is seen here and kept.
  await tail;
  const { kept, gone } = await sort(kv, key, thread.checkpoint);
  const cut = kept.filter(({ parent }) => parent !== null);
  const orphans = cut.map((made): WriteOperation => ({
    key: checkpointKey(prefix, made.ns, made.id),
    value: encodeWithChecksum(checkpointRowConverter.row({ ...made, parent: null })),
  }));
  if (orphans.length > 0) await write(orphans, true);
  const keptKeys = new Set(kept.map(({ ns, id }) => `${escapeSegment(ns)}/${escapeSegment(id)}`));
  await drop(kv, `${prefix}w/`, write, (rest) => keptKeys.has(rest.split("/", 2).join("/")));
  for (let i = 0; i < gone.length; i += DELETIONS_PER_BATCH) {
    const piece = gone.slice(i, i + DELETIONS_PER_BATCH);
    await write(
      piece.map((at) => ({ key: at, value: null })),
      false,
    );
  }
  const { wholes, spans } = valuesOf(prefix, kept);
  await drop(kv, `${prefix}b/`, write, (_, at) => wholes.has(at));
  await drop(kv, `${prefix}l/`, write, (_, at) => {
    const end = at.lastIndexOf("/") + 1;
    return parseOrdinal(at.slice(end)) < (spans.get(at.slice(0, end)) ?? 0);
  });
  // A synced write, which changes nothing, puts the deletions before it on the disk too.
  await write([{ key: CHECK_KEY, value: null }], true);
}

/** The latest checkpoint of each namespace, and the keys of all others, newest first. */
async function sort(kv: KeyValueStore, key: ThreadKey, root: string | null) {
  const prefix = threadPrefix(key);
  const kept = new Map<string, StoredCheckpoint>();
  const gone: string[] = [];
  for await (const [at, bytes] of kv.entries({ ...prefixRange(`${prefix}c/`), reverse: true })) {
    const [ns = "", id = ""] = at
      .slice(prefix.length + 2)
      .split("/")
      .map(unescapeSegment);
    const isLatest = ns === "" ? id === root : !kept.has(ns);
    if (isLatest)
      kept.set(ns, checkpointRowConverter.record(decodeWithChecksum(bytes, key, `checkpoint ${id}`)));
    else gone.push(at);
  }
  return { kept: [...kept.values()], gone };
}

/**
 * The values to which these checkpoints refer: the keys of whole values, and for each list span, by its key prefix, the end index that is
 * needed.
 */
function valuesOf(prefix: string, kept: readonly StoredCheckpoint[]) {
  const wholes = new Set<string>();
  const spans = new Map<string, number>();
  for (const { ns, changes } of kept) {
    for (const [channel, ref] of Object.entries(unpackRefs(changes.channels))) {
      if (ref.kind === "whole") wholes.add(channelValueKey(prefix, ns, channel, ref.at));
      if (ref.kind !== "list") continue;
      for (const { at, end } of ref.spans) {
        const span = listSpanPrefix(prefix, ns, channel, at);
        spans.set(span, Math.max(end, spans.get(span) ?? 0));
      }
    }
  }
  return { wholes, spans };
}

/** Deletes all keys under a prefix except those that are needed. */
async function drop(
  kv: KeyValueStore,
  under: string,
  write: Write,
  isNeeded: (rest: string, key: string) => boolean,
): Promise<void> {
  let ops: WriteOperation[] = [];
  for await (const [at] of kv.entries(prefixRange(under))) {
    if (isNeeded(at.slice(under.length), at)) continue;
    ops.push({ key: at, value: null });
    if (ops.length < DELETIONS_PER_BATCH) continue;
    await write(ops, false);
    ops = [];
  }
  if (ops.length > 0) await write(ops, false);
}

import type { NewCheckpoint } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { chunkEnd, type EventChunk } from "../model/run-event.ts";
import { isTerminal, type RunRecord } from "../model/run.ts";
import type { ThreadRecord } from "../model/thread.ts";
import { SmallMap } from "../model/small-map.ts";
import { andThen, andThenWith, forEachInOrder, runSteps, type Eventually } from "../ports/eventually.ts";
import type { Append, CompletedRequest, IdempotentRequest } from "../ports/journal.ts";
import { deriveChannelRefs } from "./channel-values.ts";
import { delayedIndexOps } from "./delayed-run-index.ts";
import type { AppendDraft } from "./append-draft.ts";
import { encodeFacts } from "./event-fact-codec.ts";
import { removeRuns } from "./run-removal.ts";
import { type ThreadHead, isUnsettled } from "./thread-heads.ts";
import {
  unsettledThreadKey,
  checkpointKey,
  journalEntryKey,
  eventsPrefix,
  threadRecordKey,
  kwargsKey,
  startedDelayedRunKey,
  idempotencyRecordKey,
  idempotencyExpiryKey,
  runOrderKey,
  runKey,
  deletionMarkKey,
  addedStepResultsKey,
  pendingWritesMarkKey,
  taskWritesKey,
} from "./keys.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import type { WriteOperation } from "../ports/key-value-store.ts";
import type { MetadataIndexKeyCache } from "./metadata-index-keys.ts";
import { deliveryOps } from "./key-value-outbox.ts";
import { admittedRunKeys, endedRunKey } from "./run-index.ts";
import { threadIndexKeys, threadIndexOps } from "./thread-index.ts";
import {
  HIDDEN_MARK,
  PRESENT_MARK,
  CHECKPOINTS_PER_APPEND,
  checkpointRow,
  checkpointRowConverter,
  runRowConverter,
  encodeNumberWithChecksum,
  threadRowConverter,
  type JournalEntry,
  type StoredTaskWrites,
} from "./stored-records.ts";
import { findDuplicateUpdates } from "./deduplicated-updates.ts";
import { unpackRefs, type ChannelRefs } from "./channel-ref-codec.ts";

/**
 * The most namespaces of a thread whose latest checkpoint is cached. With more, the cache is cleared, and a latest checkpoint that is not
 * cached is read from the store.
 */
const MAX_CACHED_NAMESPACES = 256;

/** The context of the functions that turn an append into write operations on the key-value store. */
export interface AppendWrite {
  readonly draft: AppendDraft;
  readonly append: Append;
  readonly memberKeys: MetadataIndexKeyCache;
  /** The last new checkpoint of this append in each namespace; undefined while there is none. */
  latest: SmallMap<string, LatestCheckpoint> | undefined;
}

type LatestCheckpoint = { readonly id: string; readonly refs: ChannelRefs };

/**
 * Adds the operations of an append to its draft. If a part of the append cannot be stored, throws, and nothing has changed. Nothing else
 * may be written to the thread until the call has returned or resolved. A caller that then submits the operations MUST also call
 * {@link updateThreadHead}.
 */
export function writeAppend(write: AppendWrite): Eventually<void> {
  const { forget = [] } = write.append;
  // Deletions come first, so that they do not affect what the same append writes.
  const removed = forget.length === 0 ? undefined : runSteps(removeRuns(write.draft, forget));
  return andThenWith(removed, write, writeThreadAndRuns);
}

function writeThreadAndRuns(_: void, write: AppendWrite): Eventually<void> {
  writeThread(write);
  const { runs } = write.append;
  const written = runs === undefined ? undefined : forEachInOrder(runs, write, writeRun);
  return andThenWith(written, write, writeCheckpoints);
}

function writeThread({ draft, append, memberKeys }: AppendWrite): void {
  const { head } = draft;
  const { key, thread } = append;
  draft.size = draft.put(threadRecordKey(head.prefix), threadRowConverter.row(thread));
  draft.put(journalEntryKey(head.prefix, thread.seq), entryOf(append));
  threadIndexOps(draft.ops, key, head.thread, thread, memberKeys);
  const isActive = isUnsettled(thread);
  if (isActive !== head.active) {
    if (isActive)
      draft.putSealed(unsettledThreadKey(key), thread.temporary === null ? PRESENT_MARK : HIDDEN_MARK);
    else draft.del(unsettledThreadKey(key));
  }
  const delayed = head.thread?.delayed ?? null;
  if (thread.delayed !== delayed) draft.ops.push(...delayedIndexOps(key, delayed, thread.delayed));
}

function writeRemaining(_: void, { draft, append }: AppendWrite): void {
  const { prefix } = draft.head;
  const { key, writes, steps, events, outbox, once } = append;
  const { seq } = append.thread;
  if (writes !== undefined)
    for (const left of writes) {
      draft.putSealed(pendingWritesMarkKey(prefix, left.ns, left.checkpoint), PRESENT_MARK);
      const row: StoredTaskWrites = { ...left, seq };
      draft.put(taskWritesKey(prefix, left.ns, left.checkpoint, left.task), row);
    }
  if (steps !== undefined)
    for (const added of steps)
      draft.put(addedStepResultsKey(prefix, added.ns, added.checkpoint, added.task, seq), added.steps);
  if (events !== undefined) writeEvents(draft, events);
  if (outbox !== undefined) for (const item of outbox) deliveryOps(draft.ops, key.tenant, item);
  if (once !== undefined) markOnce(draft, once);
}

/** Updates the thread's {@link ThreadHead} with an append whose operations are complete. */
export function updateThreadHead({ draft: { head, spanEnds }, append, latest }: AppendWrite): void {
  const { thread, runs = [], forget = [], events } = append;
  head.epoch = thread.epoch;
  head.seq = thread.seq;
  head.next_run = thread.next_run;
  head.active = isUnsettled(thread);
  head.thread = thread;
  for (const run of runs) {
    if (isTerminal(run.status)) head.kwargs.delete(run.run_id);
    else head.kwargs.set(run.run_id, run.kwargs);
  }
  if (forget.length > 0) {
    head.latest.clear();
    head.spanEnds.clear();
    for (const run of forget) {
      head.kwargs.delete(run);
      head.ends.delete(run);
    }
  }
  // The cache is limited, because every task of a subgraph has its own namespace.
  if (head.latest.size > MAX_CACHED_NAMESPACES) head.latest.clear();
  latest?.forEach((made, ns) => head.latest.set(ns, made));
  spanEnds?.forEach((end, span) => head.spanEnds.set(span, end));
  if (events !== undefined) head.ends.set(events.run_id, chunkEnd(events));
  for (const run of runs) if (isTerminal(run.status)) head.ends.delete(run.run_id);
}

/**
 * The operations that hide a thread from all reads. When they are stored, {@link MarkedDeletions} deletes the remaining keys of the thread.
 */
export function threadRemovalOps({ key, prefix, thread }: ThreadHead): readonly WriteOperation[] {
  const gone = [
    threadRecordKey(prefix),
    unsettledThreadKey(key),
    ...(thread === undefined ? [] : threadIndexKeys(key, thread)),
  ];
  return [
    ...gone.map((at) => ({ key: at, value: null })),
    ...delayedIndexOps(key, thread?.delayed ?? null, null),
    { key: deletionMarkKey(key, null), value: PRESENT_MARK },
  ];
}

/** Kinds of appends that are stored under an earlier name, because existing databases contain that name. */
const STORED_KINDS: ReadonlyMap<string, string> = new Map([
  ["parked", "left"],
  ["postponed", "kept"],
  ["due", "ripened"],
  ["deleted", "forgotten"],
  ["repaired", "mended"],
]);

function entryOf({ kind, thread, runs, checkpoints, writes, steps, forget }: Append): JournalEntry {
  const entry: { -readonly [K in keyof JournalEntry]: JournalEntry[K] } = {
    kind: STORED_KINDS.get(kind) ?? kind,
    epoch: thread.epoch,
  };
  if (runs !== undefined && runs.length > 0) entry.runs = runs.map((run) => run.run_id);
  if (checkpoints !== undefined && checkpoints.length > 0)
    entry.checkpoints = checkpoints.map(({ ns, id }) => [ns, id] as const);
  if (writes !== undefined && writes.length > 0)
    entry.writes = writes.map(({ ns, checkpoint, task }) => [ns, checkpoint, task] as const);
  if (steps !== undefined && steps.length > 0)
    entry.steps = steps.map(({ ns, checkpoint, task }) => [ns, checkpoint, task] as const);
  if (forget !== undefined && forget.length > 0) entry.forgot = forget;
  return entry;
}

function writeRun(run: RunRecord, { draft, append: { thread } }: AppendWrite): Eventually<void> {
  const order = draft.head.kwargs.has(run.run_id) ? undefined : writeOrder(draft, run, thread);
  return order instanceof Promise
    ? writeRunLater(order, draft, run, thread)
    : writeRunRecord(draft, run, thread);
}

async function writeRunLater(
  order: Promise<void>,
  ...record: Parameters<typeof writeRunRecord>
): Promise<void> {
  await order;
  await writeRunRecord(...record);
}

function writeRunRecord(
  draft: AppendDraft,
  run: RunRecord,
  { seq, temporary }: ThreadRecord,
): Eventually<void> {
  const { prefix, key, kwargs } = draft.head;
  const ended = temporary === null ? endedRunKey(key, run) : undefined;
  if (ended !== undefined) draft.putSealed(ended, PRESENT_MARK);
  // The record of a run is stored at each change of the run. The kwargs never change and may be large, so they are left out while they are
  // cached in `kwargs`.
  if (kwargs.get(run.run_id) !== run.kwargs) draft.put(kwargsKey(prefix, run.run_id), run.kwargs);
  draft.put(runKey(prefix, run.run_id), runRowConverter.row(run, "kwargs", null));
  if (run.due !== null && run.seq_base > 0) return writeLate(draft, run, seq);
}

/** Stores the number of the first journal entry that names the run: a rollback reads the journal from there. */
function writeOrder(draft: AppendDraft, run: RunRecord, { seq, temporary }: ThreadRecord): Eventually<void> {
  const { prefix, next_run, key } = draft.head;
  const order = runOrderKey(prefix, run.order, run.run_id);
  // Called only if the kwargs of the run are not cached. A run whose order number is not in use yet is new. A run with an earlier number
  // may have ended, or may have been stored before the thread was read into memory, so the store is read.
  if (run.order >= next_run) {
    if (temporary === null) for (const at of admittedRunKeys(key, run)) draft.putSealed(at, PRESENT_MARK);
    return draft.putSealed(order, encodeNumberWithChecksum(seq));
  }
  return writeEarlierOrder(draft, run, order, seq);
}

function writeEarlierOrder(draft: AppendDraft, run: RunRecord, order: string, seq: number): Eventually<void> {
  return andThen(refuseEnded(draft, run.run_id), () =>
    andThen(draft.get(order), (known) => {
      if (known === undefined) draft.putSealed(order, encodeNumberWithChecksum(seq));
    }),
  );
}

/** Refuses to change the record of a run that has ended. @throws ServiceError `journal.conflict` */
function refuseEnded(draft: AppendDraft, run: string): Eventually<void> {
  return andThen(draft.read(runKey(draft.head.prefix, run), `run ${run}`), (row) => {
    if (row === undefined || !isTerminal(runRowConverter.record(row).status)) return;
    throw new ServiceError("journal.conflict", `Run ${run} has ended: its record is not written again`);
  });
}

/**
 * Records the start of a delayed run under a key of its own. Other runs start in the order of their admission, so the list of admitted runs
 * is enough for them. A delayed run may start after runs that were admitted later.
 */
function writeLate(draft: AppendDraft, run: RunRecord, seq: number): Eventually<void> {
  const { prefix } = draft.head;
  const late = startedDelayedRunKey(prefix, run.seq_base, run.run_id);
  return andThen(draft.get(late), (known) => {
    if (known !== undefined) return;
    draft.putSealed(late, PRESENT_MARK);
    // Before its start the run has changed nothing, so a rollback need not read earlier journal entries.
    draft.put(runOrderKey(prefix, run.order, run.run_id), seq);
  });
}

function markOnce(draft: AppendDraft, once: IdempotentRequest): void {
  const { tenant, thread } = draft.head.key;
  const done: CompletedRequest = { ...once, thread };
  draft.put(idempotencyRecordKey(tenant, once.name), done);
  draft.putSealed(idempotencyExpiryKey(once.at, tenant, once.name), PRESENT_MARK);
}

const NO_REFS: ChannelRefs = Object.freeze({});

function writeCheckpoints(_: void, write: AppendWrite): Eventually<void> {
  const { checkpoints } = write.append;
  if (checkpoints === undefined) return writeRemaining(undefined, write);
  if (checkpoints.length > CHECKPOINTS_PER_APPEND) {
    throw new ServiceError(
      "journal.conflict",
      `An append holds at most ${CHECKPOINTS_PER_APPEND} checkpoints`,
    );
  }
  return andThenWith(forEachInOrder(checkpoints, write, writeCheckpoint), write, writeRemaining);
}

/** A checkpoint that is turned into operations. */
interface CheckpointWrite {
  readonly write: AppendWrite;
  readonly checkpoint: NewCheckpoint;
  /** The number of the checkpoint; see {@link deriveChannelRefs}. */
  readonly at: number;
}

function writeCheckpoint(checkpoint: NewCheckpoint, write: AppendWrite, index: number): Eventually<void> {
  const at = write.append.thread.seq * CHECKPOINTS_PER_APPEND + index;
  const one: CheckpointWrite = { write, checkpoint, at };
  const refs = andThenWith(parentRefs(write, checkpoint), one, refsOf);
  return andThenWith(refs, one, putCheckpoint);
}

function refsOf(parent: ChannelRefs, { write, checkpoint, at }: CheckpointWrite): Eventually<ChannelRefs> {
  return deriveChannelRefs(write.draft, checkpoint.ns, at, parent, checkpoint.changes);
}

function putCheckpoint(refs: ChannelRefs, { write, checkpoint, at }: CheckpointWrite): void {
  const { ns, id } = checkpoint;
  const shared = findDuplicateUpdates(write.draft, at, checkpoint);
  const row = checkpointRow(checkpoint, at, refs, shared);
  write.draft.put(checkpointKey(write.draft.head.prefix, ns, id), row);
  (write.latest ??= new SmallMap()).set(ns, { id, refs });
}

/** The channel references of the parent checkpoint. Nearly always the parent is the previous checkpoint, which is cached. */
function parentRefs({ draft, latest }: AppendWrite, { ns, parent }: NewCheckpoint): Eventually<ChannelRefs> {
  if (parent === null) return NO_REFS;
  const own = latest?.get(ns);
  if (own?.id === parent) return own.refs;
  const known = draft.head.latest.get(ns);
  if (known?.id === parent) return known.refs;
  return readParentRefs(draft, ns, parent);
}

function readParentRefs(draft: AppendDraft, ns: string, id: string): Eventually<ChannelRefs> {
  return andThen(draft.read(checkpointKey(draft.head.prefix, ns, id), `checkpoint ${id}`), (stored) => {
    if (stored !== undefined) return unpackRefs(checkpointRowConverter.record(stored).changes.channels);
    throw new ServiceError(
      "journal.conflict",
      `The parent ${id} of a new checkpoint is not stored in namespace "${ns}"`,
    );
  });
}

/**
 * Adds a chunk of events. The key of a chunk contains the id of its first event. Usually a chunk begins right after the last event of the
 * previous chunk, so a reader of one chunk can compute the key of the next chunk. The first chunk of a later attempt may begin at a higher
 * id; a reader then has to search for the chunk.
 */
export function writeEvents(draft: AppendDraft, chunk: EventChunk): void {
  const { head } = draft;
  const end = head.ends.get(chunk.run_id);
  if (!Number.isSafeInteger(chunk.first) || chunk.first < (end ?? 0)) {
    throw new ServiceError(
      "journal.conflict",
      `Events of run ${chunk.run_id} begin at ${chunk.first}, and those up to ${(end ?? 0) - 1} are stored`,
    );
  }
  draft.putSealed(
    eventsPrefix(head.prefix, chunk.run_id) + encodeOrdinal(chunk.first),
    encodeFacts(chunk.facts),
  );
}

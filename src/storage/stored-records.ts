import { andThen, type Eventually } from "../ports/eventually.ts";
import type { WeakCache } from "../model/weak-cache.ts";
import type { Checkpoint, CheckpointHead, NewCheckpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import type { RunKwargs, RunRecord } from "../model/run.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import { damagedError, encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import { checkpointKey, kwargsKey, runKey, threadPrefix } from "./keys.ts";
import { packRefs, unpackRefs, type ChannelRefs, type StoredRefs } from "./channel-ref-codec.ts";
import { createRecordRowConverter } from "./record-row-conversion.ts";
import {
  restoreDuplicateUpdates,
  type DeduplicatedUpdate,
  withoutDuplicateUpdates,
} from "./deduplicated-updates.ts";

/**
 * A journal entry: the list of what an append wrote, so that the data of a run can be deleted later. Entries are numbered without gaps,
 * which shows whether one is missing.
 */
export interface JournalEntry {
  /** The kind of change, for people who look at a database, and for the search for lost run ends. */
  readonly kind: string;
  readonly epoch: number;
  readonly runs?: readonly string[];
  /** Namespace and id of each new checkpoint. */
  readonly checkpoints?: readonly (readonly [ns: string, id: string])[];
  /** Namespace, checkpoint and task of each task's pending writes. */
  readonly writes?: readonly (readonly [ns: string, checkpoint: string, task: string])[];
  /** Namespace, checkpoint and task of step results that were added to pending writes. */
  readonly steps?: readonly (readonly [ns: string, checkpoint: string, task: string])[];
  readonly forgot?: readonly string[];
}

/** The pending writes of a task, with the number of the append that wrote them. Older versions of Heddle stored no number. */
export type StoredTaskWrites = PendingTaskWrites & { readonly seq?: number };

/** A run without its kwargs, which never change, and are stored under a key of their own. */
export type StoredRun = Omit<RunRecord, "kwargs"> & { readonly kwargs: null };

/** A checkpoint as it is stored: with references to the values of its channels instead of its changes. */
export type StoredCheckpoint = CheckpointHead & {
  readonly changes: {
    /** The number of the checkpoint, a part of the keys of the values that it wrote; see `channel-values.ts`. */
    readonly at: number;
    readonly channels: StoredRefs;
    /** The updates that have null in place of their value in `writes`; absent if there are none. */
    readonly shared?: readonly DeduplicatedUpdate[];
  };
};

export const threadRowConverter = createRecordRowConverter<ThreadRecord>()(
  [
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "rest",
    "error",
    "epoch",
    "seq",
    "active",
    "queue",
    "checkpoint",
    "interrupts",
    "next_event",
    "next_run",
    "temporary",
    "delayed",
    "rested_at",
    "ttl",
    "state_bytes",
    "timers",
  ],
  (thread) => [
    thread.thread_id,
    thread.created_at,
    thread.updated_at,
    thread.state_updated_at,
    thread.metadata,
    thread.config,
    thread.rest,
    thread.error,
    thread.epoch,
    thread.seq,
    thread.active,
    thread.queue,
    thread.checkpoint,
    thread.interrupts,
    thread.next_event,
    thread.next_run,
    thread.temporary,
    thread.delayed,
    thread.rested_at,
    thread.ttl,
    thread.state_bytes,
    thread.timers,
  ],
);

export const runRowConverter = createRecordRowConverter<StoredRun>()(
  [
    "run_id",
    "thread_id",
    "assistant_id",
    "graph_id",
    "created_at",
    "updated_at",
    "metadata",
    "status",
    "kwargs",
    "multitask_strategy",
    "order",
    "attempt",
    "parked",
    "cancel",
    "started_at",
    "ended_at",
    "error",
    "seq_base",
    "next_event",
    "event_mark",
    "boot",
    "base_checkpoint",
    "base_writes",
    "due",
    "cancel_reason",
    "origin",
    "usage",
    "slowest_node",
  ],
  (run) => [
    run.run_id,
    run.thread_id,
    run.assistant_id,
    run.graph_id,
    run.created_at,
    run.updated_at,
    run.metadata,
    run.status,
    run.kwargs,
    run.multitask_strategy,
    run.order,
    run.attempt,
    run.parked,
    run.cancel,
    run.started_at,
    run.ended_at,
    run.error,
    run.seq_base,
    run.next_event,
    run.event_mark,
    run.boot,
    run.base_checkpoint,
    run.base_writes,
    run.due,
    run.cancel_reason,
    run.origin,
    run.usage,
    run.slowest_node,
  ],
);

export const checkpointRowConverter = createRecordRowConverter<StoredCheckpoint>()(
  [
    "id",
    "parent",
    "ns",
    "step",
    "source",
    "created_at",
    "run_id",
    "metadata",
    "writes",
    "next",
    "engine",
    "graph",
    "changes",
  ],
  (made) => [
    made.id,
    made.parent,
    made.ns,
    made.step,
    made.source,
    made.created_at,
    made.run_id,
    made.metadata,
    made.writes,
    made.next,
    made.engine,
    made.graph,
    made.changes,
  ],
);

/** The value of keys whose presence alone has a meaning. */
export const PRESENT_MARK: Buffer = encodeWithChecksum(true);
/** The value of the mark under `!active/` of a temporary thread, which is hidden from clients. */
export const HIDDEN_MARK: Buffer = encodeWithChecksum(false);
/**
 * The value of the mark that the index of runs is complete. A new version that adds index keys to runs raises the number, so that the keys
 * are added to older data too.
 */
export const RUN_INDEX_MARK: Buffer = encodeWithChecksum(3);

/** The numbers below 256, encoded in advance. They are the most frequent ones: the numbers of each thread's first appends. */
const NUMBERS: readonly Buffer[] = Array.from({ length: 256 }, (_, n) => encodeWithChecksum(n));

export function encodeNumberWithChecksum(n: number): Buffer {
  return NUMBERS[n] ?? encodeWithChecksum(n);
}

export type GetValue = (key: string) => Eventually<Buffer | undefined>;

/**
 * The maximum number of checkpoints in an append. The number of a checkpoint is the append's `seq` times this constant, plus the index of
 * the checkpoint in the append.
 */
export const CHECKPOINTS_PER_APPEND = 4096;

/** If stored kwargs have this many bytes or more, readers share one decoded copy. */
const LARGE_KWARGS_BYTES = 64 * 1024;

/** Reads a run; undefined if it does not exist. `shared`: a cache of large kwargs that other readers have decoded. */
export function readRun(
  get: GetValue,
  key: ThreadKey,
  prefix: string,
  run: string,
  shared?: WeakCache<RunKwargs>,
): Eventually<RunRecord | undefined> {
  return andThen(readStoredRun(get, key, prefix, run), (stored) => {
    if (stored === undefined) return undefined;
    const name = kwargsKey(prefix, run);
    const known = shared?.get(name);
    if (known !== undefined) return { ...stored, kwargs: known };
    const what = `what run ${run} was created with`;
    return andThen(get(name), (bytes) => {
      if (bytes === undefined) {
        // Missing kwargs are damage, unless the run was deleted between the two reads.
        return andThen(get(runKey(prefix, run)), (still) => {
          if (still === undefined) return undefined;
          throw damagedError(key, `${what} is missing`);
        });
      }
      // Another reader may have decoded the kwargs during the read.
      const kwargs = shared?.get(name) ?? (decodeWithChecksum(bytes, key, what) as RunKwargs);
      if (bytes.length >= LARGE_KWARGS_BYTES) shared?.set(name, kwargs);
      return { ...stored, kwargs };
    });
  });
}

export function readStoredRun(
  get: GetValue,
  key: ThreadKey,
  prefix: string,
  run: string,
): Eventually<StoredRun | undefined> {
  return andThen(
    get(runKey(prefix, run)),
    (bytes) => bytes && runRowConverter.record(decodeWithChecksum(bytes, key, `run ${run}`)),
  );
}

export function checkpointRow(
  made: NewCheckpoint,
  at: number,
  refs: ChannelRefs,
  shared?: readonly DeduplicatedUpdate[],
): unknown[] {
  const channels = packRefs(refs);
  if (shared === undefined || made.writes === null)
    return checkpointRowConverter.row(made, "changes", { at, channels });
  const left = { ...made, writes: withoutDuplicateUpdates(made.writes, shared) };
  return checkpointRowConverter.row(left, "changes", { at, channels, shared });
}

/** True if the row of a checkpoint leaves out large updates, which {@link readCompleteCheckpoint} reads separately. */
export const isCheckpointPartial = ({ changes }: StoredCheckpoint): boolean => changes.shared !== undefined;

export function decodeCheckpoint(bytes: Buffer, key: ThreadKey, id: string): StoredCheckpoint {
  return checkpointRowConverter.record(decodeWithChecksum(bytes, key, `checkpoint ${id}`));
}

/**
 * The checkpoint of a row, with all its updates. Undefined if the checkpoint was deleted after its row was read.
 * @throws ServiceError `journal.damaged` if a value is missing or damaged
 */
export function readCompleteCheckpoint(
  stored: StoredCheckpoint,
  key: ThreadKey,
  get: GetValue,
): Eventually<Checkpoint | undefined> {
  const { changes, ...head } = stored;
  const { at, shared } = changes;
  const channels = unpackRefs(changes.channels);
  const { ns, id, writes } = head;
  if (shared === undefined || writes === null) return { channels, ...head };
  const prefix = threadPrefix(key);
  let isDeleted = false;
  const read = (from: string, channel: string): Eventually<unknown> =>
    andThen(get(from), (bytes) => {
      const what = `the value of channel ${channel}`;
      if (bytes !== undefined) return decodeWithChecksum(bytes, key, what);
      // A missing value is damage, unless the checkpoint was deleted between the two reads.
      return andThen(get(checkpointKey(prefix, ns, id)), (still) => {
        if (still !== undefined) throw damagedError(key, `${what} is missing`);
        isDeleted = true;
      });
    });
  return andThen(restoreDuplicateUpdates({ prefix, ns, at, writes, shared, read }), (restored) =>
    isDeleted ? undefined : { channels, ...head, writes: restored },
  );
}

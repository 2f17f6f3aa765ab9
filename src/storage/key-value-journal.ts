import { memorySizeOf } from "../model/memory-size.ts";
import { BoundedSet } from "../model/bounded-set.ts";
import { WeakCache } from "../model/weak-cache.ts";
import type { Checkpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { chunkEnd, type EventChunk } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunKwargs, RunRecord } from "../model/run.ts";
import { threadMapKey, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import { andThen, andThenWith, type Eventually } from "../ports/eventually.ts";
import type {
  Append,
  Damage,
  CompletedRequest,
  DelayedRunOfThread,
  TimerOfThread,
  Fence,
  HistoryQuery,
  Journal,
  RunsFilter,
  RunsQuery,
} from "../ports/journal.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { Committer } from "./committer.ts";
import { LARGE_VALUE_BYTES } from "./channel-values.ts";
import { copyThread } from "./thread-copy.ts";
import { AppendDraft } from "./append-draft.ts";
import { expireEvents } from "./event-expiry.ts";
import { fencedError, fenceErrorOf, checkFollowsFence, rejectAfterFlights } from "./fence-check.ts";
import type { ThreadHead, ThreadHeads } from "./thread-heads.ts";
import {
  UNSETTLED_THREADS_RANGE,
  checkpointKey,
  idempotencyRecordKey,
  parseThreadMark,
  threadPrefix,
  pendingWritesMarkKey,
  pendingWritesPrefix,
} from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { readDelayedRuns, readTimers } from "./delayed-run-index.ts";
import { expireIdempotencyRecords, readIdempotencyRecord } from "./idempotency-records.ts";
import type { KeyValueOutbox } from "./key-value-outbox.ts";
import { readHistory, readPendingWrites } from "./checkpoint-history.ts";
import { NOTHING_STORED, sumThreadSizes } from "./thread-size.ts";
import type { StoredSizes } from "../model/stored-sizes.ts";
import { MetadataIndexKeyCache } from "./metadata-index-keys.ts";
import { pruneThread } from "./thread-pruning.ts";
import { EventReader, type EventRead } from "./event-reader.ts";
import { readStateValues } from "./state-reader.ts";
import {
  readCompleteCheckpoint,
  decodeCheckpoint,
  isCheckpointPartial,
  readRun,
  type StoredCheckpoint,
} from "./stored-records.ts";
import { DecodedValuesCache } from "./decoded-values-cache.ts";
import { ThreadRunsReader } from "./thread-runs-reader.ts";
import type { MarkedDeletions } from "./marked-deletions.ts";
import type { IsDeleted } from "./stored-thread-check.ts";
import { verifyRecords } from "./record-verifier.ts";
import { storageUnavailableError } from "./abstract-level-store.ts";
import type { WriteOrder } from "./write-order.ts";
import {
  threadRemovalOps,
  updateThreadHead,
  writeAppend,
  writeEvents,
  type AppendWrite,
} from "./append-operations.ts";

/** The maximum number of keys that are remembered as slow to read. */
const MAX_SLOW_KEYS = 4096;

/**
 * Large decoded records, which concurrent readers share. A deleted record may stay in this object until it is garbage-collected. So the
 * journal replaces the object when it deletes a thread, a run or checkpoints.
 */
class SharedRecords {
  readonly kwargs = new WeakCache<RunKwargs>();
  readonly chunks = new WeakCache<EventChunk>();
  readonly checkpoints = new WeakCache<Checkpoint>();
  /** The reads of large checkpoints in progress, by key. */
  readonly checkpointReads = new Map<string, Promise<Checkpoint | undefined>>();
}

export class KeyValueJournal implements Journal {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #heads: ThreadHeads;
  readonly #deletions: MarkedDeletions;
  readonly #outbox: KeyValueOutbox;
  readonly #order: WriteOrder;
  readonly #budget: TimeBudget;
  readonly #sharedValues = new DecodedValuesCache();
  #shared = new SharedRecords();
  readonly #slowKeys = new BoundedSet<string>(MAX_SLOW_KEYS);
  readonly #memberKeys = new MetadataIndexKeyCache();

  constructor(
    kv: KeyValueStore,
    committer: Committer,
    heads: ThreadHeads,
    deletions: MarkedDeletions,
    outbox: KeyValueOutbox,
    order: WriteOrder,
    budget: TimeBudget,
  ) {
    this.#kv = kv;
    this.#committer = committer;
    this.#heads = heads;
    this.#deletions = deletions;
    this.#outbox = outbox;
    this.#order = order;
    this.#budget = budget;
    // Reads in progress add their records to the old object, where later reads do not find them.
    deletions.onHide = () => (this.#shared = new SharedRecords());
  }

  // --- threads ---

  thread(key: ThreadKey): Eventually<ThreadRecord | undefined> {
    return this.#heads.thread(key);
  }

  async *unsettled(): AsyncGenerator<ThreadKey> {
    for await (const [mark] of this.#kv.entries(UNSETTLED_THREADS_RANGE)) yield parseThreadMark(mark).key;
  }

  // --- runs ---

  run(key: ThreadKey, run: string): Eventually<RunRecord | undefined> {
    return this.#unlessDeleted(key, null, undefined, () => readRun(this.#get, key, threadPrefix(key), run));
  }

  sharedRun(key: ThreadKey, run: string): Eventually<RunRecord | undefined> {
    return this.#unlessDeleted(key, null, undefined, () =>
      readRun(this.#getValue, key, threadPrefix(key), run, this.#shared.kwargs),
    );
  }

  async runs(key: ThreadKey, query: RunsQuery): Promise<readonly RunRecord[]> {
    return this.#unlessDeleted(key, null, [], () => this.#runsOf(key).newest(query));
  }

  async countRuns(key: ThreadKey, filter: RunsFilter = {}): Promise<number> {
    return this.#unlessDeleted(key, null, 0, () => this.#runsOf(key).count(filter));
  }

  async started(key: ThreadKey, seq: number, limit: number): Promise<readonly RunRecord[]> {
    const { next_run = 0 } = (await this.thread(key)) ?? {};
    return this.#unlessDeleted(key, null, [], () => this.#runsOf(key).begun(seq, next_run - 1, limit));
  }

  delayedRuns(limit: number): Promise<readonly DelayedRunOfThread[]> {
    return readDelayedRuns(this.#kv, limit);
  }

  timers(limit: number): Promise<readonly TimerOfThread[]> {
    return readTimers(this.#kv, limit);
  }

  once(tenant: string, name: string): Eventually<CompletedRequest | undefined> {
    return readIdempotencyRecord(this.#kv, tenant, name);
  }

  #runsOf(key: ThreadKey): ThreadRunsReader {
    return new ThreadRunsReader(this.#kv, key, threadPrefix(key), this.#getValue, this.#shared.kwargs);
  }

  // --- checkpoints ---

  checkpoint(key: ThreadKey, ns: string, id: string): Eventually<Checkpoint | undefined> {
    return this.#unlessDeleted(key, null, undefined, () =>
      this.#readCheckpoint(key, id, checkpointKey(threadPrefix(key), ns, id)),
    );
  }

  /** Reads a checkpoint. Concurrent readers of a large checkpoint, such as one with a large input, share one read and one decoded copy. */
  #readCheckpoint(key: ThreadKey, id: string, at: string): Eventually<Checkpoint | undefined> {
    const complete = (stored: StoredCheckpoint) => readCompleteCheckpoint(stored, key, this.#getValue);
    if (!this.#slowKeys.has(at)) {
      return andThen(this.#getValue(at), (bytes) => {
        const stored = bytes && decodeCheckpoint(bytes, key, id);
        if (stored === undefined || !isCheckpointPartial(stored)) return stored && complete(stored);
        this.#slowKeys.add(at);
        return this.#readCheckpoint(key, id, at);
      });
    }
    const { checkpoints, checkpointReads } = this.#shared;
    const known = checkpoints.get(at) ?? checkpointReads.get(at);
    if (known !== undefined) return known;
    const read = Promise.resolve(this.#getValue(at))
      .then((bytes) => bytes && complete(decodeCheckpoint(bytes, key, id)))
      .then((found) => {
        if (found !== undefined) checkpoints.set(at, found);
        return found;
      })
      .finally(() => checkpointReads.delete(at));
    checkpointReads.set(at, read);
    return read;
  }

  async history(key: ThreadKey, query: HistoryQuery): Promise<readonly Checkpoint[]> {
    return this.#unlessDeleted(key, null, [], () => readHistory(this.#kv, key, query));
  }

  values(key: ThreadKey, checkpoint: Checkpoint): Eventually<JsonObject> {
    return this.#values(key, checkpoint);
  }

  sharedValues(key: ThreadKey, checkpoint: Checkpoint, channels?: readonly string[]): Eventually<JsonObject> {
    return this.#values(key, checkpoint, channels, this.#sharedValues);
  }

  #values(
    key: ThreadKey,
    checkpoint: Checkpoint,
    channels?: readonly string[],
    shared?: DecodedValuesCache,
  ): Eventually<JsonObject> {
    const { ns } = checkpoint;
    const source = { prefix: threadPrefix(key), key, ns, get: this.#getValue, slowKeys: this.#slowKeys };
    // A missing value is damage only if the checkpoint still exists. If not, both were deleted during the read.
    const missing = (cause: unknown): Eventually<never> => {
      const { id, ns } = checkpoint;
      return andThen(this.checkpoint(key, ns, id), (found) => {
        if (found !== undefined) throw cause;
        throw new ServiceError("checkpoint.not_found", `Checkpoint ${id} has been deleted`, { cause });
      });
    };
    try {
      const values = readStateValues(source, checkpoint, channels, this.#budget, shared);
      return values instanceof Promise ? values.catch(missing) : values;
    } catch (cause) {
      return missing(cause);
    }
  }

  writes(key: ThreadKey, ns: string, checkpoint: string): Eventually<readonly PendingTaskWrites[]> {
    const prefix = threadPrefix(key);
    return this.#unlessDeleted<readonly PendingTaskWrites[]>(key, null, [], () =>
      // Most checkpoints have no pending writes, and so no mark. The lookup of the mark saves a range scan, which would take a further turn
      // of the event loop.
      andThen(this.#kv.get(pendingWritesMarkKey(prefix, ns, checkpoint)), (mark) =>
        mark === undefined
          ? []
          : readPendingWrites(this.#kv, key, pendingWritesPrefix(prefix, ns, checkpoint)),
      ),
    );
  }

  async storedSizes(key: ThreadKey): Promise<StoredSizes> {
    return this.#unlessDeleted(key, null, NOTHING_STORED, () => sumThreadSizes(this.#kv, key));
  }

  // --- events ---

  events(key: ThreadKey, run: string, after: number, limit: number): Eventually<readonly EventChunk[]> {
    const share = this.#budget.share(key.tenant);
    const prefix = threadPrefix(key);
    const reader = new EventReader(this.#kv, key, prefix, run, share, this.#shared.chunks, this.#slowKeys);
    const found = this.#unlessDeleted<EventRead>(key, run, { chunks: [], isShareSpent: false }, () =>
      reader.from(Math.max(0, after + 1), Math.max(1, limit)),
    );
    // If the read has used up its share of this turn of the event loop, waits for a later turn. The chunks are returned even if they are
    // deleted during this wait.
    return andThen(found, ({ chunks, isShareSpent }) =>
      isShareSpent ? share.next().then(() => chunks) : chunks,
    );
  }

  nextEvent(key: ThreadKey, run: string): Eventually<number> {
    return this.#unlessDeleted(key, run, 0, () => {
      const known = this.#heads.peek(key)?.ends.get(run);
      return known ?? new EventReader(this.#kv, key, threadPrefix(key), run).next();
    });
  }

  // --- writing ---

  waitForCapacity(): Promise<void> | undefined {
    return this.#committer.waitForCapacity();
  }

  whenWritable(): Promise<void> | undefined {
    return this.#committer.whenWritable();
  }

  get refusal(): ServiceError | undefined {
    return this.#committer.refusal;
  }

  append(append: Append): Promise<void> {
    const { key, once } = append;
    const name = threadMapKey(key);
    const records = once === undefined ? [name] : [name, idempotencyRecordKey(key.tenant, once.name)];
    return this.#write(key, records, append, this.#writeAppend);
  }

  readonly #writeAppend = (head: ThreadHead, append: Append): Eventually<Submitted> => {
    const { key, fence, runs } = append;
    const stale = fenceErrorOf(head, fence) ?? checkFollowsFence(append);
    if (stale !== undefined) return { stored: rejectAfterFlights(head, stale) };
    if (runs !== undefined) for (const run of runs) this.#refuseSwept(key, run.run_id);
    const draft = new AppendDraft(head, this.#kv);
    const write: AppendWrite = { draft, append, memberKeys: this.#memberKeys, latest: undefined };
    const budget = this.#committer.waitForLargeWriteBudget(key.tenant, append, appendSize);
    return andThenWith(budget, write, this.#encodeAppend);
  };

  /** Makes the operations of an append. Called when the memory budget of large writes allows it. */
  readonly #encodeAppend = (_: void, write: AppendWrite): Eventually<Submitted> => {
    this.#refuseInvalid(write.draft.head);
    return andThenWith(writeAppend(write), write, this.#submitAppend);
  };

  /** Submits an append whose operations are complete. */
  readonly #submitAppend = (_: void, write: AppendWrite): Submitted => {
    const { draft, append } = write;
    const { key, forget, once } = append;
    this.#refuseInvalid(draft.head);
    updateThreadHead(write);
    if (forget !== undefined) for (const run of forget) this.#deletions.refuseWrites(key, run);
    const stored = this.#store(draft, append);
    // The expiry of idempotency records waits while this request's record is in flight. Without the wait, the expiry could read an older
    // record of the same key, and then delete the new one.
    if (once !== undefined) this.#order.hold([idempotencyRecordKey(key.tenant, once.name)], stored);
    const hasForgotten = forget !== undefined && forget.length > 0;
    return { stored: hasForgotten ? this.#storedAndSwept(stored, key, forget) : stored };
  };

  async #storedAndSwept(stored: Promise<void>, key: ThreadKey, forget: readonly string[]): Promise<void> {
    await stored;
    await this.#sweepRuns(key, forget);
  }

  /**
   * Deletes the events of deleted runs. Called only when the deletion of the runs is stored: before that, a crash may restore the runs, and
   * readers may still read their events.
   */
  async #sweepRuns(key: ThreadKey, runs: readonly string[]): Promise<void> {
    for (const run of runs) this.#deletions.hide(key, run);
    for (const run of runs) await this.#deletions.sweep(key, run);
  }

  publish(key: ThreadKey, epoch: number, chunk: EventChunk): Promise<void> {
    return this.#write(key, [threadMapKey(key)], undefined, (head) => {
      if (head.seq === 0 || head.epoch !== epoch) throw fencedError(head, epoch);
      this.#refuseSwept(key, chunk.run_id);
      const budget = this.#committer.waitForLargeWriteBudget(key.tenant, chunk.facts, factsSize);
      return andThen(budget, () => {
        this.#refuseInvalid(head);
        const draft = new AppendDraft(head, this.#kv);
        writeEvents(draft, chunk);
        head.ends.set(chunk.run_id, chunkEnd(chunk));
        return { stored: this.#committer.store(draft.ops, false, head.prefix) };
      });
    });
  }

  release(key: ThreadKey): void {
    // Waits its turn in the write order: earlier writes to the thread that are not submitted yet still need its {@link ThreadHead}.
    void this.#order.run([threadMapKey(key)], () => this.#heads.release(key));
  }

  remove(key: ThreadKey, fence: Fence): Promise<void> {
    return this.#write(key, [threadMapKey(key)], undefined, (head) => {
      const stale = fenceErrorOf(head, fence);
      if (stale !== undefined) return { stored: rejectAfterFlights(head, stale) };
      if (head.seq === 0) return { stored: Promise.resolve() };
      this.#deletions.refuseWrites(key, null);
      const ops = threadRemovalOps(head);
      const isIndexed = head.thread?.temporary === null;
      this.#heads.deletionSubmitted(head, ops);
      const stored = this.#committer.store(ops, true, head.prefix).then(() => {
        this.#deletions.hide(key, null);
        this.#heads.forget(head);
        return this.#deletions.sweep(key, null, isIndexed);
      });
      return { stored };
    });
  }

  prune(key: ThreadKey, fence: Fence): Promise<void> {
    return this.#write(key, [threadMapKey(key)], undefined, (head) => {
      const stale = fenceErrorOf(head, fence);
      if (stale !== undefined) return { stored: rejectAfterFlights(head, stale) };
      this.#heads.forget(head);
      const write = (ops: readonly WriteOperation[], durable: boolean) => this.#committer.store(ops, durable);
      const stored = pruneThread(this.#kv, head, write).finally(() => (this.#shared = new SharedRecords()));
      return { stored };
    });
  }

  copy(from: ThreadKey, to: ThreadKey, make: (thread: ThreadRecord) => ThreadRecord): Promise<ThreadRecord> {
    const deps = { kv: this.#kv, heads: this.#heads, deletions: this.#deletions, order: this.#order };
    return copyThread(deps, from, to, make);
  }

  // --- maintenance ---

  expireEvents(...[before, from, most, isRead = () => false]: Parameters<Journal["expireEvents"]>) {
    return expireEvents(this.#kv, this.#deletions, { before, from, most, isRead });
  }

  expireOnce(before: number, most: number): Promise<boolean> {
    return expireIdempotencyRecords(this.#kv, this.#committer, this.#order, before, most);
  }

  verify(key?: ThreadKey, onProgress?: OnProgress): AsyncIterable<Damage> {
    const isDeleted: IsDeleted = (of, run) => this.#deletions.isDeleted(of, run);
    return verifyRecords(this.#kv.unguarded ?? this.#kv, isDeleted, key, onProgress);
  }

  readonly #get = (key: string): Eventually<Buffer | undefined> => this.#kv.get(key);

  /** Reads a value. If an earlier read or write has shown that the value is large, it is read in another thread of the process. */
  readonly #getValue = (key: string): Eventually<Buffer | undefined> =>
    andThen(this.#kv.get(key, this.#slowKeys.has(key)), (bytes) => {
      if (bytes !== undefined && bytes.length > LARGE_VALUE_BYTES) this.#slowKeys.add(key);
      return bytes;
    });

  /** Reads data of a thread. Returns `none` if the thread, or the event log of `run`, is deleted before or during the read. */
  #unlessDeleted<T>(key: ThreadKey, run: string | null, none: T, read: () => Eventually<T>): Eventually<T> {
    return andThen(this.#deletions.isDeleted(key, run), (isDeleted) => {
      if (isDeleted) return none;
      const found = read();
      if (!(found instanceof Promise)) return found;
      const check = (settle: () => T) =>
        andThen(this.#deletions.isDeleted(key, run), (isGone) => (isGone ? none : settle()));
      return found.then(
        (value) => check(() => value),
        (cause: unknown) =>
          check(() => {
            throw cause;
          }),
      );
    });
  }

  /**
   * Submits a write to a thread, in the order of the calls. `submit` gets the thread's {@link ThreadHead}, and `context`. Until `submit`
   * has returned or its promise has settled, nothing else is written to these `records`, which include the thread. Resolves when the write
   * is stored.
   */
  #write<C>(
    key: ThreadKey,
    records: readonly string[],
    context: C,
    submit: (head: ThreadHead, context: C) => Eventually<Submitted>,
  ): Promise<void> {
    try {
      const request: WriteRequest<C> = { key, context, submit };
      const submitted = this.#order.runWith(records, request, this.#begin);
      return submitted instanceof Promise ? submitted.then(({ stored }) => stored) : submitted.stored;
    } catch (cause) {
      return Promise.reject(cause);
    }
  }

  readonly #begin = <C>(_: unknown, request: WriteRequest<C>): Eventually<Submitted> =>
    andThenWith(this.#open(request.key), request, this.#submitTo);

  readonly #submitTo = <C>(head: ThreadHead, request: WriteRequest<C>): Eventually<Submitted> => {
    this.#refuseInvalid(head);
    return request.submit(head, request.context);
  };

  /** The {@link ThreadHead} on which a write is based. @throws ServiceError if writes are refused at present */
  #open(key: ThreadKey): Eventually<ThreadHead> {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    if (this.#deletions.refusesWrites(key)) {
      throw new ServiceError("journal.conflict", `Thread ${key.thread} is still being deleted; try again`);
    }
    return this.#heads.get(key);
  }

  /** Refuses a write if another write has failed since `head` was read. @throws ServiceError `storage.unavailable` */
  #refuseInvalid(head: ThreadHead): void {
    const refusal = this.#committer.refuse();
    if (refusal !== undefined) throw refusal;
    if (!head.isValid) throw storageUnavailableError("a write failed", undefined);
  }

  #refuseSwept(key: ThreadKey, run: string): void {
    if (this.#deletions.refusesWrites(key, run)) {
      throw new ServiceError("journal.conflict", `Run ${run} is still being taken back; try again`);
    }
  }

  #store({ head, ops, size }: AppendDraft, { durable, thread, outbox }: Append): Promise<void> {
    this.#heads.appendSubmitted(head, ops);
    for (const { key, value } of ops)
      if (value !== null && value.length > LARGE_VALUE_BYTES) this.#slowKeys.add(key);
    const promise = new Promise<void>((resolve, reject) => {
      this.#committer.submit({
        ops,
        durable,
        thread: head.prefix,
        stored: () => {
          this.#heads.appendStored(head, thread, size);
          resolve();
          if (outbox !== undefined) this.#outbox.appendStored(outbox);
        },
        failed: reject,
      });
    });
    head.tail = promise;
    return promise;
  }
}

/** The bytes in memory of those parts of an append that may be large. */
const appendSize = ({ runs, checkpoints, writes, steps, events }: Append): number =>
  memorySizeOf([
    runs?.map(({ kwargs }) => kwargs),
    checkpoints?.map(({ changes }) => changes),
    writes,
    steps,
    events?.facts,
  ]);

const factsSize = (facts: EventChunk["facts"]): number => memorySizeOf(facts);

/**
 * A write that is not submitted yet. It waits for its turn among the writes to its thread, and then for the thread's {@link ThreadHead}.
 */
interface WriteRequest<C> {
  readonly key: ThreadKey;
  readonly context: C;
  readonly submit: (head: ThreadHead, context: C) => Eventually<Submitted>;
}

/**
 * A submitted write. `stored` resolves when the write is stored. The promise is wrapped in an object, because a promise that resolves with
 * another promise waits for it.
 */
interface Submitted {
  readonly stored: Promise<void>;
}

import { SharedObjects } from "../model/shared-objects.ts";
import type { Checkpoint, TaskWrites } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { chunkEnd, type EventChunk } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunKwargs, RunRecord } from "../model/run.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Eventually } from "../ports/eventually.ts";
import type {
  Append,
  Damage,
  CompletedRequest,
  KeyedDelayedRun,
  Fence,
  HistoryQuery,
  Journal,
  RunsFilter,
  RunsQuery,
} from "../ports/journal.ts";
import type { Committer } from "./committer.ts";
import { copyThread } from "./thread-copy.ts";
import { AppendDraft } from "./append-draft.ts";
import { expireEvents } from "./event-expiry.ts";
import { fencedError, fenceErrorOf, checkNumbers, rejectAfterFlights } from "./fence.ts";
import type { ThreadHead, WriteHeads } from "./write-heads.ts";
import {
  ACTIVE_RANGE,
  checkpointKey,
  parseThreadMark,
  threadPrefix,
  writesMark,
  writesPrefix,
} from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { readDelayed } from "./delayed-runs.ts";
import { expireOnceRecords, readOnceRecord } from "./idempotency.ts";
import type { KeyValueOutbox } from "./outbox.ts";
import { readHistory, readWrites } from "./checkpoint-history.ts";
import { MemberKeyCache } from "./metadata-keys.ts";
import { pruneThread } from "./thread-pruning.ts";
import { EventReader, readValues } from "./event-reader.ts";
import { readCheckpoint, readRun } from "./records.ts";
import { RunLists } from "./run-lists.ts";
import type { DeletionSweeper } from "./deletion-sweeper.ts";
import { verifyAll } from "./verify-all.ts";
import { removalOps, writeAppend, writeEvents } from "./append-writer.ts";

/** The journal over a key-value store. */
export class KeyValueJournal implements Journal {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #heads: WriteHeads;
  readonly #sweeper: DeletionSweeper;
  readonly #outbox: KeyValueOutbox;
  readonly #budget: TimeBudget;
  readonly #sharedKwargs = new SharedObjects<RunKwargs>();
  readonly #memberKeys = new MemberKeyCache();

  constructor(
    kv: KeyValueStore,
    committer: Committer,
    heads: WriteHeads,
    sweeper: DeletionSweeper,
    outbox: KeyValueOutbox,
    budget: TimeBudget,
  ) {
    this.#kv = kv;
    this.#committer = committer;
    this.#heads = heads;
    this.#sweeper = sweeper;
    this.#outbox = outbox;
    this.#budget = budget;
  }

  // --- threads ---

  thread(key: ThreadKey): ThreadRecord | undefined {
    return this.#heads.thread(key);
  }

  async *unsettled(): AsyncGenerator<ThreadKey> {
    for await (const [mark] of this.#kv.entries(ACTIVE_RANGE)) yield parseThreadMark(mark).key;
  }

  // --- runs ---

  run(key: ThreadKey, run: string): RunRecord | undefined {
    if (this.#sweeper.isDeleted(key)) return undefined;
    return readRun(this.#get, key, threadPrefix(key), run);
  }

  sharedRun(key: ThreadKey, run: string): RunRecord | undefined {
    if (this.#sweeper.isDeleted(key)) return undefined;
    return readRun(this.#get, key, threadPrefix(key), run, this.#sharedKwargs);
  }

  async runs(key: ThreadKey, query: RunsQuery): Promise<readonly RunRecord[]> {
    return this.#sweeper.isDeleted(key) ? [] : this.#lists(key).newest(query);
  }

  async countRuns(key: ThreadKey, filter: RunsFilter = {}): Promise<number> {
    return this.#sweeper.isDeleted(key) ? 0 : this.#lists(key).count(filter);
  }

  async started(key: ThreadKey, seq: number, limit: number): Promise<readonly RunRecord[]> {
    const { next_run = 0 } = this.thread(key) ?? {};
    if (this.#sweeper.isDeleted(key)) return [];
    return this.#lists(key).begun(seq, next_run - 1, limit, this.#sharedKwargs);
  }

  delayed(limit: number): Promise<readonly KeyedDelayedRun[]> {
    return readDelayed(this.#kv, limit);
  }

  once(tenant: string, name: string): CompletedRequest | undefined {
    return readOnceRecord(this.#kv, tenant, name);
  }

  #lists(key: ThreadKey): RunLists {
    return new RunLists(this.#kv, key, threadPrefix(key));
  }

  // --- checkpoints ---

  checkpoint(key: ThreadKey, ns: string, id: string): Checkpoint | undefined {
    if (this.#sweeper.isDeleted(key)) return undefined;
    const bytes = this.#kv.getSync(checkpointKey(threadPrefix(key), ns, id));
    return bytes && readCheckpoint(bytes, key, id);
  }

  async history(key: ThreadKey, query: HistoryQuery): Promise<readonly Checkpoint[]> {
    return this.#sweeper.isDeleted(key) ? [] : readHistory(this.#kv, key, query);
  }

  values(key: ThreadKey, checkpoint: Checkpoint, channels?: readonly string[]): Eventually<JsonObject> {
    const source = { prefix: threadPrefix(key), key, ns: checkpoint.ns, get: this.#get };
    // Data that was deleted during the read is no damage.
    const missing = (cause: unknown): never => {
      const { id, ns } = checkpoint;
      if (this.checkpoint(key, ns, id) !== undefined) throw cause;
      throw new ServiceError("checkpoint.not_found", `Checkpoint ${id} has been deleted`, { cause });
    };
    try {
      const values = readValues(source, checkpoint, channels, this.#budget);
      return values instanceof Promise ? values.catch(missing) : values;
    } catch (cause) {
      return missing(cause);
    }
  }

  writes(key: ThreadKey, ns: string, checkpoint: string): Eventually<readonly TaskWrites[]> {
    const prefix = threadPrefix(key);
    // Most checkpoints have no pending writes. The mark tells so in this turn; a range scan would cost another.
    if (this.#sweeper.isDeleted(key) || this.#kv.getSync(writesMark(prefix, ns, checkpoint)) === undefined)
      return [];
    return readWrites(this.#kv, key, writesPrefix(prefix, ns, checkpoint));
  }

  // --- events ---

  events(key: ThreadKey, run: string, after: number, limit: number): Eventually<readonly EventChunk[]> {
    if (this.#sweeper.isDeleted(key, run)) return [];
    return new EventReader(this.#kv, key, threadPrefix(key), run).from(
      Math.max(0, after + 1),
      Math.max(1, limit),
    );
  }

  nextEvent(key: ThreadKey, run: string): Eventually<number> {
    if (this.#sweeper.isDeleted(key, run)) return 0;
    const known = this.#heads.peek(key)?.ends.get(run);
    return known ?? new EventReader(this.#kv, key, threadPrefix(key), run).next();
  }

  // --- writing ---

  waitForCapacity(): Promise<void> | undefined {
    return this.#committer.waitForCapacity();
  }

  append(append: Append): Promise<void> {
    try {
      const head = this.#open(append.key);
      const stale = fenceErrorOf(head, append.fence) ?? checkNumbers(append);
      if (stale !== undefined) return rejectAfterFlights(head, stale);
      const draft = new AppendDraft(head, this.#kv);
      for (const run of append.runs ?? []) this.#refuseSwept(append.key, run.run_id);
      const updateHead = writeAppend(draft, append, this.#memberKeys);
      updateHead();
      const forgotten = append.forget ?? [];
      for (const run of forgotten) this.#sweeper.refuseWrites(append.key, run);
      const stored = this.#submitAppend(draft, append);
      if (forgotten.length === 0) return stored;
      return stored.then(async () => {
        // Only when it is stored: until then a crash may keep the run, and readers may read it.
        for (const run of forgotten) this.#sweeper.hide(append.key, run);
        for (const run of forgotten) await this.#sweeper.sweep(append.key, run);
      });
    } catch (cause) {
      return Promise.reject(cause);
    }
  }

  publish(key: ThreadKey, epoch: number, chunk: EventChunk): Promise<void> {
    try {
      const head = this.#open(key);
      if (head.seq === 0 || head.epoch !== epoch) return Promise.reject(fencedError(head, epoch));
      this.#refuseSwept(key, chunk.run_id);
      const draft = new AppendDraft(head, this.#kv);
      writeEvents(draft, chunk);
      head.ends.set(chunk.run_id, chunkEnd(chunk));
      return this.#submit(draft.ops, false, head.prefix);
    } catch (cause) {
      return Promise.reject(cause);
    }
  }

  release(key: ThreadKey): void {
    this.#heads.release(key);
  }

  remove(key: ThreadKey, fence: Fence): Promise<void> {
    try {
      const head = this.#open(key);
      const stale = fenceErrorOf(head, fence);
      if (stale !== undefined) return rejectAfterFlights(head, stale);
      if (head.seq === 0) return Promise.resolve();
      this.#sweeper.refuseWrites(key, null);
      const ops = removalOps(head);
      this.#heads.deletionSubmitted(head, ops);
      return this.#submit(ops, true, head.prefix).then(() => {
        this.#sweeper.hide(key, null);
        this.#heads.forget(head);
        return this.#sweeper.sweep(key, null);
      });
    } catch (cause) {
      return Promise.reject(cause);
    }
  }

  async prune(key: ThreadKey, fence: Fence): Promise<void> {
    const head = this.#open(key);
    const stale = fenceErrorOf(head, fence);
    if (stale !== undefined) return rejectAfterFlights(head, stale);
    this.#heads.forget(head);
    await pruneThread(this.#kv, head, (ops, durable) => this.#submit(ops, durable));
  }

  copy(from: ThreadKey, to: ThreadKey, make: (thread: ThreadRecord) => ThreadRecord): Promise<ThreadRecord> {
    return copyThread({ kv: this.#kv, sweeper: this.#sweeper }, from, to, make);
  }

  // --- care ---

  expireEvents(...[before, from, most, isRead = () => false]: Parameters<Journal["expireEvents"]>) {
    return expireEvents(this.#kv, this.#sweeper, { before, from, most, isRead });
  }

  expireOnce(before: number, most: number): Promise<boolean> {
    return expireOnceRecords(this.#kv, (ops) => this.#submit(ops, false), before, most);
  }

  verify(key?: ThreadKey): AsyncIterable<Damage> {
    return verifyAll(this.#kv.unguarded ?? this.#kv, (of, run) => this.#sweeper.isDeleted(of, run), key);
  }

  readonly #get = (key: string): Buffer | undefined => this.#kv.getSync(key);

  /** The head to write with. */
  #open(key: ThreadKey): ThreadHead {
    const { refusal } = this.#committer;
    if (refusal !== undefined) throw refusal;
    if (this.#sweeper.refusesWrites(key)) {
      throw new ServiceError("journal.conflict", `Thread ${key.thread} is still being deleted; try again`);
    }
    return this.#heads.get(key);
  }

  #refuseSwept(key: ThreadKey, run: string): void {
    if (this.#sweeper.refusesWrites(key, run)) {
      throw new ServiceError("journal.conflict", `Run ${run} is still being taken back; try again`);
    }
  }

  #submitAppend({ head, ops, size }: AppendDraft, { durable, thread, outbox }: Append): Promise<void> {
    head.inFlight.push(ops);
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

  #submit(ops: readonly WriteOperation[], durable: boolean, thread?: string): Promise<void> {
    const { refusal } = this.#committer;
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const of = thread === undefined ? {} : { thread };
      this.#committer.submit({ ops, durable, ...of, stored: resolve, failed: reject });
    });
  }
}

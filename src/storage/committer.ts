import type { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { storageUnavailableError } from "./abstract-level-store.ts";
import type { BatchNumbering } from "./batch-numbering.ts";
import { CHECK_KEY } from "./keys.ts";
import { LargeWriteQueue, type LargeWriteLimits } from "./large-write-queue.ts";
import { reopenStore } from "./reopen-store.ts";
import { WriteOutage } from "./write-outage.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { WriteAdmission } from "./write-admission.ts";
import { AcknowledgementBatcher } from "./acknowledgement-batcher.ts";

/**
 * The most operations in a batch, unless one write has more. About fifty runs make this many. Each batch has a fixed cost, so larger
 * batches are cheaper, but too many acknowledgements follow a very large one.
 */
const MAX_OPS = 1024;
const MAX_BYTES = 1024 * 1024;
/**
 * If this many bytes are queued, the next batch starts before the previous batch is acknowledged. Streaming runs write so much that the
 * disk would otherwise be idle during acknowledgements, and the event loop would be idle during writes. Fewer bytes are better collected in
 * one batch.
 */
const MIN_AHEAD_BYTES = 32 * 1024;

/** The most milliseconds for which large writes pause, so that other tenants can write. */
const MAX_LARGE_PAUSE_MS = 100;

/** Changes that are stored together or not at all. */
export interface PendingWrite {
  readonly ops: readonly WriteOperation[];
  /** True: the write must survive a power cut, so its batch is synced. False: it only has to survive the end of the process. */
  readonly durable: boolean;
  /**
   * The key prefix of the thread, if the write changes only one thread. Undefined: {@link BatchNumbering} finds out from the keys of the
   * operations what the write changes.
   */
  readonly thread?: string;
  stored(): void;
  failed(error: ServiceError): void;
}

export interface CommitStats {
  readonly batches: number;
  readonly synced: number;
  readonly ops: number;
  readonly bytes: number;
}

export interface CommitterListener {
  /** Called when a write failed, before any writer is notified. */
  failed(): void;
  /**
   * Called when the store is open again. The listener MUST read its cached data again, and MUST NOT reject. Writes are refused until the
   * promise resolves.
   */
  reopened(): Promise<void>;
  /** Called when writes are accepted again. */
  healed(): void;
}

export interface CommitterDeps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly logger: Logger;
  readonly largeWrites?: LargeWriteLimits;
}

/** Writes that are stored together, with the number of their operations and their bytes. */
interface Batch {
  readonly writes: readonly PendingWrite[];
  readonly ops: number;
  readonly bytes: number;
  /** True if the writes come from the queue of large writes. */
  readonly isLarge: boolean;
}

/**
 * Collects the writes of all threads in one queue and stores them in batches: while one batch is in flight, the next one fills. A batch is
 * synced if one of its writes is durable. Acknowledgements are batched too, and may overlap with the next batch.
 *
 * After a failed write, it is unknown what is stored, so all queued and new writes are refused. The store is closed and opened again,
 * because LevelDB stays broken after a full disk. Writes are accepted again once the store has stored a test write.
 */
export class Committer {
  readonly #kv: KeyValueStore;
  readonly #chain: BatchNumbering | undefined;
  readonly #deps: CommitterDeps;
  readonly #listener: CommitterListener;
  readonly #admission: WriteAdmission;
  readonly #acknowledgements: AcknowledgementBatcher;
  readonly #large: LargeWriteQueue;
  #queue: PendingWrite[] = [];
  /** The bytes of each write in the queue. */
  #sizes: number[] = [];
  /** The bytes of all writes in the queue. */
  #waiting = 0;
  /** The number of writes that were ever put into the queue. */
  #queued = 0;
  /** The number of writes that were ever taken from the queue. */
  #taken = 0;
  /** True if the batch that was taken last had large writes. Batches of large writes alternate with ordinary ones. */
  #wasLarge = false;
  /**
   * Milliseconds for which large writes pause next: as long as the last batch of them took, at most {@link MAX_LARGE_PAUSE_MS}. Undefined
   * if they have paused since that batch.
   */
  #pauseAfterLarge: number | undefined;
  #isLargePaused = false;
  /** Ends the wait in {@link #pauseEnd}; undefined while nothing waits there. */
  #go: (() => void) | undefined;
  /** The number of writes in the batch in flight, plus the writes of the previous batch that are not acknowledged yet. */
  #flying = 0;
  #busy = false;
  #outage: WriteOutage | undefined;
  #closing = false;
  readonly #stop = new AbortController();
  /** Resolves when the outage is over, or the committer is closed. Undefined while there is no outage. */
  #healing: Promise<void> | undefined;
  /** A test write in progress, shared by all callers. */
  #check: Promise<void> | undefined;
  #idle: (() => void)[] = [];
  #batches = 0;
  #synced = 0;
  #ops = 0;
  #bytes = 0;

  /**
   * `chain` numbers the batches, so that lost batches are noticed. Absent for a store in memory, and for a store whose batches are durable
   * elsewhere.
   */
  constructor(kv: KeyValueStore, deps: CommitterDeps, watch: CommitterListener, chain?: BatchNumbering) {
    this.#kv = kv;
    this.#chain = chain;
    this.#deps = deps;
    this.#listener = watch;
    this.#acknowledgements = new AcknowledgementBatcher(deps.clock, deps.scheduler);
    this.#large = new LargeWriteQueue(deps.scheduler, deps.largeWrites);
    this.#admission = new WriteAdmission(deps.scheduler, () => this.#queue.length + this.#flying);
  }

  get stats(): CommitStats {
    return { batches: this.#batches, synced: this.#synced, ops: this.#ops, bytes: this.#bytes };
  }

  /** The error with which every write fails at present; undefined when writes are accepted. */
  get refusal(): ServiceError | undefined {
    if (this.#closing) return storageUnavailableError("it is being closed", undefined);
    return this.#outage?.error;
  }

  /** Returns the {@link refusal} for a new write, and counts the refused write. Undefined: the write is accepted. */
  refuse(): ServiceError | undefined {
    this.#outage?.refused();
    return this.refusal;
  }

  /**
   * Undefined while writes are accepted. Otherwise a promise that resolves when they are accepted again, or the committer is closed. It
   * never rejects.
   */
  whenWritable(): Promise<void> | undefined {
    return this.#healing;
  }

  /**
   * Stores these operations, all of them or none. Resolves when they are stored. For `durable` and `thread`, see {@link PendingWrite}.
   * @throws ServiceError the {@link refusal}, or `storage.unavailable`
   */
  store(ops: readonly WriteOperation[], durable: boolean, thread?: string): Promise<void> {
    const refusal = this.refuse();
    if (refusal !== undefined) return Promise.reject(refusal);
    const of = thread === undefined ? {} : { thread };
    return new Promise((resolve, reject) => {
      this.submit({ ops, durable, ...of, stored: resolve, failed: reject });
    });
  }

  /** Queues a write. MUST NOT be called while there is a {@link refusal}. */
  submit(write: PendingWrite): void {
    const bytes = sizeOf(write.ops);
    if (this.#large.accepts(write, bytes)) this.#large.add(write, bytes, this.#queued);
    else {
      this.#queue.push(write);
      this.#resume();
      this.#sizes.push(bytes);
      this.#queued++;
      this.#waiting += bytes;
    }
    if (this.#busy) return;
    this.#busy = true;
    // The batch starts in the next turn of the event loop, so that other writes of this turn are in it too.
    this.#deps.scheduler.soon(this.#next);
  }

  /**
   * Waits for the capacity to start something new; see {@link WriteAdmission.wait}. When a write fails, all waiting callers are admitted;
   * their writes are then refused.
   */
  waitForCapacity(): Promise<void> | undefined {
    return this.#admission.wait();
  }

  /**
   * Waits until the budget for large writes has room for a write with this content. Returns undefined if the write can be
   * encoded at once. See {@link LargeWriteQueue.waitForBudget}.
   */
  waitForLargeWriteBudget<C>(
    tenant: string,
    content: C,
    sizeOf: (content: C) => number,
  ): Promise<void> | undefined {
    return this.#large.waitForBudget(tenant, content, sizeOf);
  }

  /** Resolves when a test write is stored. Only a stored write shows that the storage accepts writes. */
  check(): Promise<void> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    return (this.#check ??= new Promise<void>((resolve, reject) => {
      this.submit({ ...CHECK, stored: resolve, failed: reject });
    }).finally(() => (this.#check = undefined)));
  }

  /** Refuses new writes. Resolves when each write that was accepted before has been stored or has failed. */
  async close(): Promise<void> {
    // Some callers may still wait for the budget of large writes. Their writes were accepted too, so these are stored before the committer
    // closes.
    while (this.#large.isWaitedFor) await new Promise<void>(this.#later);
    this.#closing = true;
    this.#admission.admitAll();
    this.#stop.abort();
    await this.#healing;
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  readonly #next = (): void => {
    this.#acknowledgements.measure();
    void this.#commit();
  };

  async #commit(): Promise<void> {
    if (this.#isLargePaused) await this.#pauseEnd();
    let batch = this.#take();
    let flight = this.#store(batch);
    for (;;) {
      const since = this.#deps.clock.mono();
      const error = await flight;
      if (error !== undefined) return this.#fail(batch.writes, error);
      const { writes } = batch;
      if (batch.isLarge)
        this.#pauseAfterLarge = Math.min(this.#deps.clock.mono() - since, MAX_LARGE_PAUSE_MS);
      else if (this.#large.isOtherTenantIn(writes)) this.#pauseLarge();
      const ahead = this.#waiting + (this.#isLargePaused ? 0 : this.#large.queuedBytes) >= MIN_AHEAD_BYTES;
      if (ahead) {
        batch = this.#take();
        flight = this.#store(batch);
      }
      await this.#acknowledgements.acknowledge(writes.length, (index) => {
        this.#flying--;
        (writes[index] as PendingWrite).stored();
      });
      // Waits until the runs whose start was acknowledged have begun. Their first writes are then counted before new work is admitted, and
      // go into the next batch.
      await new Promise<void>(this.#afterBegins);
      this.#acknowledgements.measure();
      // The first writes of the admitted work go into the next batch too, so that there are fewer batches.
      if (this.#admission.admit() && !ahead) await new Promise<void>(this.#later);
      if (!ahead) {
        if (this.#queue.length === 0 && this.#large.isEmpty) break;
        if (this.#isLargePaused) await this.#pauseEnd();
        batch = this.#take();
        flight = this.#store(batch);
      }
    }
    this.#rest();
    this.#admission.admit();
  }

  /** Stores a batch. Resolves with the error, if there is one. */
  async #store({ writes, ops, bytes, isLarge }: Batch): Promise<ServiceError | undefined> {
    const sync = writes.some((write) => write.durable);
    try {
      const { failpoints } = this.#deps;
      const before = failpoints.hit("commit.before");
      if (before !== undefined) await before;
      await this.#kv.batch(this.#chain?.number(writes) ?? opsOf(writes), { sync });
      this.#chain?.stored(writes, sync, bytes);
      if (isLarge) this.#large.stored(bytes);
      const after = failpoints.hit("commit.after");
      if (after !== undefined) await after;
    } catch (cause) {
      return storageUnavailableError("a write failed", cause);
    }
    this.#batches++;
    if (sync) this.#synced++;
    this.#ops += ops;
    this.#bytes += bytes;
    return undefined;
  }

  readonly #later = (resolve: () => void): void => this.#deps.scheduler.soon(resolve);

  readonly #afterBegins = (resolve: () => void): void => this.#deps.scheduler.soon(resolve, true);

  /**
   * Pauses large writes once, for as long as the last batch of them took. Called when a write of another tenant than that of the last large
   * write was stored. The start of that tenant's run may have waited for a large write. Its end, a few milliseconds later, then does not
   * wait again.
   */
  #pauseLarge(): void {
    if (this.#pauseAfterLarge === undefined) return;
    const end = () => {
      this.#isLargePaused = false;
      this.#resume();
    };
    this.#isLargePaused = true;
    this.#deps.scheduler.after(this.#pauseAfterLarge, end, true);
    this.#pauseAfterLarge = undefined;
  }

  /** Waits until ordinary writes arrive, or the pause of large writes ends. */
  #pauseEnd(): Promise<void> | undefined {
    if (this.#queue.length > 0) return undefined;
    return new Promise((resolve) => (this.#go = resolve));
  }

  #resume(): void {
    this.#go?.();
    this.#go = undefined;
  }

  /** Takes the next batch. Batches of large writes alternate with ordinary ones, unless large writes are paused. */
  #take(): Batch {
    const isLargeNext =
      !this.#large.isEmpty && (this.#queue.length === 0 || (!this.#wasLarge && !this.#isLargePaused));
    const large = isLargeNext ? this.#large.take(this.#taken, MAX_BYTES) : [];
    this.#wasLarge = large.length > 0;
    const batch = this.#wasLarge ? largeBatch(large) : this.#takeOrdinary();
    this.#flying += batch.writes.length;
    return batch;
  }

  /** Takes as many ordinary writes as fit into a batch, but at least one, because a write cannot be split. */
  #takeOrdinary(): Batch {
    let ops = 0;
    let bytes = 0;
    let count = 0;
    for (const write of this.#queue) {
      const size = this.#sizes[count] as number;
      if (count > 0 && (ops + write.ops.length > MAX_OPS || bytes + size > MAX_BYTES)) break;
      ops += write.ops.length;
      bytes += size;
      count++;
    }
    this.#taken += count;
    this.#waiting -= bytes;
    if (count < this.#queue.length) {
      this.#sizes.splice(0, count);
      return { writes: this.#queue.splice(0, count), ops, bytes, isLarge: false };
    }
    const writes = this.#queue;
    this.#queue = [];
    this.#sizes = [];
    return { writes, ops, bytes, isLarge: false };
  }

  #fail(writes: readonly PendingWrite[], error: ServiceError): void {
    this.#flying = 0;
    const refused = [...writes, ...this.#queue];
    this.#taken += this.#queue.length;
    this.#queue = [];
    this.#sizes = [];
    this.#waiting = 0;
    refused.push(...this.#large.clear());
    const outage = new WriteOutage(error, refused.length, this.#deps);
    this.#outage = outage;
    this.#listener.failed();
    for (const write of refused) write.failed(error);
    this.#rest();
    this.#admission.admitAll();
    const { scheduler } = this.#deps;
    this.#healing = reopenStore(this.#kv, scheduler, outage, this.#stop.signal, () => this.#test()).then(
      async (open) => {
        if (open) await this.#listener.reopened();
        this.#healing = undefined;
        if (!open) return;
        this.#outage = undefined;
        outage.ended();
        this.#listener.healed();
      },
    );
  }

  /** Stores a test write while all other writes are refused. @throws ServiceError `storage.unavailable` */
  async #test(): Promise<void> {
    const write = { ...CHECK, stored: () => undefined, failed: () => undefined };
    const error = await this.#store({
      writes: [write],
      ops: write.ops.length,
      bytes: sizeOf(write.ops),
      isLarge: false,
    });
    if (error !== undefined) throw error;
  }

  #rest(): void {
    this.#busy = false;
    this.#acknowledgements.skipMeasure();
    const idle = this.#idle;
    this.#idle = [];
    for (const onIdle of idle) onIdle();
  }
}

/** The test write, which changes nothing. */
const CHECK = { ops: [{ key: CHECK_KEY, value: null }], durable: true } as const;

function opsOf(writes: readonly PendingWrite[]): readonly WriteOperation[] {
  if (writes.length === 1) return (writes[0] as PendingWrite).ops;
  const all: WriteOperation[] = [];
  // `flatMap` is slower than these loops.
  for (const { ops } of writes) for (const op of ops) all.push(op);
  return all;
}

function largeBatch(writes: readonly PendingWrite[]): Batch {
  let ops = 0;
  let bytes = 0;
  for (const write of writes) {
    ops += write.ops.length;
    bytes += sizeOf(write.ops);
  }
  return { writes, ops, bytes, isLarge: true };
}

/** The size of all keys and values in bytes. Keys are ASCII. */
function sizeOf(ops: readonly WriteOperation[]): number {
  let bytes = 0;
  for (const { key, value } of ops) bytes += key.length + (value === null ? 0 : value.length);
  return bytes;
}

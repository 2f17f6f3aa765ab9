import { type ServiceError, withCauses } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { unavailable } from "./abstract-level-store.ts";
import type { BatchChain } from "./batch-chain.ts";
import { CHECK_KEY } from "./keys.ts";
import { reopen } from "./reopen.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { AdmissionControl } from "./new-work-queue.ts";
import { AcknowledgementQueue } from "./acknowledgement-queue.ts";

/**
 * Operations of a batch at most; those of about fifty runs. Each batch has a fixed cost, but the acknowledgements of a larger one would
 * make a long turn.
 */
const MAX_OPS = 1024;
const MAX_BYTES = 1024 * 1024;
/**
 * Bytes in the queue from which on the next batch starts before the last one is acknowledged. Streaming runs write so much that otherwise
 * the disk idles during acknowledgements, and the event loop during writes. Runs that write a few hundred bytes are better collected in one
 * batch.
 */
const AHEAD = 32 * 1024;

/** Changes that are stored together or not at all. */
export interface PendingWrite {
  readonly ops: readonly WriteOperation[];
  /** Whether the write must survive a power cut: its batch is synced. Otherwise it only survives the end of the process. */
  readonly durable: boolean;
  /** Prefix of the keys of the one thread that it is about; undefined: the scopes are found by its keys. */
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
  /** A write failed. Called before any writer is informed. */
  failed(): void;
  /** The store is open again. Its contents MUST be read anew. */
  healed(): void;
}

export interface CommitterDeps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly logger: Logger;
}

/**
 * Collects the writes of all threads in one queue and stores them in batches: while one batch is in flight, the next one fills. A batch is
 * synced if one of its writes is durable. Acknowledgements are batched too, and may overlap with the next batch.
 *
 * After a failed write it is unknown what is stored. All queued and new writes are refused until the store has been closed and opened
 * again: LevelDB's handle stays broken after a full disk.
 */
export class Committer {
  readonly #kv: KeyValueStore;
  readonly #chain: BatchChain | undefined;
  readonly #deps: CommitterDeps;
  readonly #listener: CommitterListener;
  readonly #admission: AdmissionControl;
  readonly #acknowledgements: AcknowledgementQueue;
  #queue: PendingWrite[] = [];
  /** Bytes in the queue. */
  #waiting = 0;
  /** Writes of the batch in flight, and writes of the last batch that are not acknowledged yet. */
  #flying = 0;
  #busy = false;
  #broken: ServiceError | undefined;
  #closing = false;
  readonly #stop = new AbortController();
  #healing: Promise<void> | undefined;
  /** A check in progress, shared by all callers. */
  #check: Promise<void> | undefined;
  #idle: (() => void)[] = [];
  #batches = 0;
  #synced = 0;
  #ops = 0;
  #bytes = 0;

  /** `chain` numbers the batches; only for stores that may lose some. */
  constructor(kv: KeyValueStore, deps: CommitterDeps, watch: CommitterListener, chain?: BatchChain) {
    this.#kv = kv;
    this.#chain = chain;
    this.#deps = deps;
    this.#listener = watch;
    this.#acknowledgements = new AcknowledgementQueue(deps.clock, deps.scheduler);
    this.#admission = new AdmissionControl(deps.scheduler, () => this.#queue.length + this.#flying);
  }

  get stats(): CommitStats {
    return { batches: this.#batches, synced: this.#synced, ops: this.#ops, bytes: this.#bytes };
  }

  /** The error of every write at present; undefined when writes are accepted. */
  get refusal(): ServiceError | undefined {
    if (this.#closing) return unavailable("it is being closed", undefined);
    return this.#broken;
  }

  /** Queues a write. MUST NOT be called while there is a {@link refusal}. */
  submit(write: PendingWrite): void {
    this.#queue.push(write);
    this.#waiting += sizeOf(write.ops);
    if (this.#busy) return;
    this.#busy = true;
    // Deferred to the next turn: other writes of this turn share the batch.
    this.#deps.scheduler.soon(this.#next);
  }

  /**
   * Waits for the capacity to start something new, see {@link AdmissionControl.wait}. When writes fail, all callers are admitted, and then get the
   * refusal.
   */
  waitForCapacity(): Promise<void> | undefined {
    return this.#admission.wait();
  }

  /** Resolves when an empty write is stored: only a write proves that the next one will succeed. */
  check(): Promise<void> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    return (this.#check ??= new Promise<void>((resolve, reject) => {
      const ops = [{ key: CHECK_KEY, value: null }];
      this.submit({ ops, durable: true, stored: resolve, failed: reject });
    }).finally(() => (this.#check = undefined)));
  }

  /** Refuses new writes. Resolves when all accepted ones are stored or refused. */
  async close(): Promise<void> {
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
    let writes = this.#take();
    let flight = this.#store(writes);
    for (;;) {
      const error = await flight;
      if (error !== undefined) return this.#fail(writes, error);
      const told = writes;
      const ahead = this.#waiting >= AHEAD;
      if (ahead) {
        writes = this.#take();
        flight = this.#store(writes);
      }
      await this.#acknowledgements.acknowledge(told.length, (index) => {
        this.#flying--;
        (told[index] as PendingWrite).stored();
      });
      // Runs whose start is stored begin in this turn. Waits, so that their writes are counted before others are admitted.
      await new Promise<void>(this.#later);
      this.#acknowledgements.measure();
      if (!ahead) break;
      this.#admission.admit();
    }
    if (this.#queue.length > 0) {
      // After the callbacks of these writes, so that the writes they make share the batch.
      this.#deps.scheduler.soon(this.#next);
    } else this.#rest();
    this.#admission.admit();
  }

  /** Stores a batch. Resolves with the error, if there is one. */
  async #store(writes: readonly PendingWrite[]): Promise<ServiceError | undefined> {
    const ops = opsOf(writes);
    const sync = writes.some((write) => write.durable);
    try {
      const { failpoints } = this.#deps;
      const before = failpoints.hit("commit.before");
      if (before !== undefined) await before;
      await this.#kv.batch(this.#chain?.number(writes) ?? ops, { sync });
      this.#chain?.stored(writes, sync, sizeOf(ops));
      const after = failpoints.hit("commit.after");
      if (after !== undefined) await after;
    } catch (cause) {
      return unavailable("a write failed", cause);
    }
    this.#batches++;
    if (sync) this.#synced++;
    this.#ops += ops.length;
    return undefined;
  }

  readonly #later = (resolve: () => void): void => this.#deps.scheduler.soon(resolve);

  /** Takes the next batch: as many writes as fit, at least one, since a write cannot be split. */
  #take(): readonly PendingWrite[] {
    let ops = 0;
    let bytes = 0;
    let count = 0;
    for (const write of this.#queue) {
      const size = sizeOf(write.ops);
      if (count > 0 && (ops + write.ops.length > MAX_OPS || bytes + size > MAX_BYTES)) break;
      ops += write.ops.length;
      bytes += size;
      count++;
    }
    this.#bytes += bytes;
    this.#waiting -= bytes;
    this.#flying += count;
    if (count < this.#queue.length) return this.#queue.splice(0, count);
    const all = this.#queue;
    this.#queue = [];
    return all;
  }

  #fail(writes: readonly PendingWrite[], error: ServiceError): void {
    const { logger, scheduler } = this.#deps;
    logger.error("a write to the storage failed; it will be opened again", { error: withCauses(error) });
    this.#broken = error;
    this.#flying = 0;
    const refused = [...writes, ...this.#queue];
    this.#queue = [];
    this.#waiting = 0;
    this.#listener.failed();
    for (const write of refused) write.failed(error);
    this.#rest();
    this.#admission.admitAll();
    this.#healing = reopen(this.#kv, scheduler, logger, this.#stop.signal).then((open) => {
      this.#healing = undefined;
      if (!open) return;
      this.#broken = undefined;
      this.#listener.healed();
    });
  }

  #rest(): void {
    this.#busy = false;
    this.#acknowledgements.skipMeasure();
    const idle = this.#idle;
    this.#idle = [];
    for (const told of idle) told();
  }
}

function opsOf(writes: readonly PendingWrite[]): readonly WriteOperation[] {
  if (writes.length === 1) return (writes[0] as PendingWrite).ops;
  const all: WriteOperation[] = [];
  // Loops, because `flatMap` is slow: it handles every element in the runtime.
  for (const { ops } of writes) for (const op of ops) all.push(op);
  return all;
}

/** The size in bytes. Keys are ASCII. */
function sizeOf(ops: readonly WriteOperation[]): number {
  let bytes = 0;
  for (const { key, value } of ops) bytes += key.length + (value === null ? 0 : value.length);
  return bytes;
}

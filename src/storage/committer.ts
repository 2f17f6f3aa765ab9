import { type ServiceError, withCauses } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { unavailable } from "./abstract-kv.ts";
import type { BatchChain } from "./batch-chain.ts";
import { CHECK_KEY } from "./keys.ts";
import { heal } from "./reopen.ts";
import type { Kv, Op } from "./kv.ts";
import { Newcomers } from "./admission-control.ts";
import { Telling } from "./acknowledgement-queue.ts";

/** Of some fifty runs: a batch has a price of its own, and what follows on a larger one would be a long turn. */
const MAX_OPS = 1024;
const MAX_BYTES = 1024 * 1024;
/**
 * Bytes that wait from which on they set out before the writers of the last batch are told: streams write so much that the disk would
 * else have no work while those go on, nor the loop while the disk works. Runs of a few hundred bytes fill one batch better.
 */
const AHEAD = 32 * 1024;

/** Changes that are stored together or not at all. */
export interface Write {
  readonly ops: readonly Op[];
  /** To survive a power cut: the batch that holds it is synced. Otherwise the end of the process. */
  readonly durable: boolean;
  /** Prefix of the keys of the thread that all of it is about; undefined: its keys tell. */
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

export interface Watch {
  /** A write failed. Told before anyone whose write it took. */
  failed(): void;
  /** The store is open again; what is in it has to be read anew. */
  healed(): void;
}

export interface CommitterDeps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly logger: Logger;
}

/**
 * Gathers the writes of all threads: one queue, one order; while one batch is in flight, the next fills. A batch of
 * streamed writes alone is not synced. Writers are told batch by batch, also while the next one is in flight.
 *
 * When a write fails, nobody knows what is stored. All that waits is refused, and so is what comes, until the store has
 * been closed and opened again: LevelDB's handle stays broken after a full disk.
 */
export class Committer {
  readonly #kv: Kv;
  readonly #chain: BatchChain | undefined;
  readonly #deps: CommitterDeps;
  readonly #watch: Watch;
  readonly #newcomers: Newcomers;
  readonly #telling: Telling;
  #queue: Write[] = [];
  /** Bytes of the queue. */
  #waiting = 0;
  /** Writes of the batch in flight, and those of the last one that have not been told. */
  #flying = 0;
  #busy = false;
  #broken: ServiceError | undefined;
  #closing = false;
  readonly #stop = new AbortController();
  #healing: Promise<void> | undefined;
  /** A check under way, shared by all who ask meanwhile. */
  #check: Promise<void> | undefined;
  #idle: (() => void)[] = [];
  #batches = 0;
  #synced = 0;
  #ops = 0;
  #bytes = 0;

  /** `chain`: numbers the batches, where they may get lost. */
  constructor(kv: Kv, deps: CommitterDeps, watch: Watch, chain?: BatchChain) {
    this.#kv = kv;
    this.#chain = chain;
    this.#deps = deps;
    this.#watch = watch;
    this.#telling = new Telling(deps.clock, deps.scheduler);
    this.#newcomers = new Newcomers(deps.scheduler, () => this.#queue.length + this.#flying);
  }

  get stats(): CommitStats {
    return { batches: this.#batches, synced: this.#synced, ops: this.#ops, bytes: this.#bytes };
  }

  /** Why nothing can be written now. */
  get refusal(): ServiceError | undefined {
    if (this.#closing) return unavailable("it is being closed", undefined);
    return this.#broken;
  }

  /** Takes a write. MUST NOT be called while there is a {@link refusal}. */
  submit(write: Write): void {
    this.#queue.push(write);
    this.#waiting += sizeOf(write.ops);
    if (this.#busy) return;
    this.#busy = true;
    // Not at once: what the same turn goes on to write shares the batch.
    this.#deps.scheduler.soon(this.#next);
  }

  /** Room to begin something new: see {@link Newcomers.wait}. Who waits when nothing can be written any more is let in, to be told. */
  room(): Promise<void> | undefined {
    return this.#newcomers.wait();
  }

  /** Resolves once a write of nothing that counts is stored: only a write tells that the next one will be. */
  check(): Promise<void> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    return (this.#check ??= new Promise<void>((resolve, reject) => {
      const ops = [{ key: CHECK_KEY, value: null }];
      this.submit({ ops, durable: true, stored: resolve, failed: reject });
    }).finally(() => (this.#check = undefined)));
  }

  /** Refuses what comes, and resolves once all that was taken is stored or refused. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#newcomers.letInAll();
    this.#stop.abort();
    await this.#healing;
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  readonly #next = (): void => {
    this.#telling.turned();
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
      await this.#telling.tell(told.length, (index) => {
        this.#flying--;
        (told[index] as Write).stored();
      });
      // Runs whose start is stored begin in this turn: what they write counts as under way before others are let in.
      await new Promise<void>(this.#later);
      this.#telling.turned();
      if (!ahead) break;
      this.#newcomers.letIn();
    }
    if (this.#queue.length > 0) {
      // After the callbacks of these writes: what they go on to write comes along.
      this.#deps.scheduler.soon(this.#next);
    } else this.#rest();
    this.#newcomers.letIn();
  }

  /** Resolves with what went wrong, if anything did. */
  async #store(writes: readonly Write[]): Promise<ServiceError | undefined> {
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

  /** The next batch: as much as fits, at least one write, since a write cannot be torn. */
  #take(): readonly Write[] {
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

  #fail(writes: readonly Write[], error: ServiceError): void {
    const { logger, scheduler } = this.#deps;
    logger.error("a write to the storage failed; it will be opened again", { error: withCauses(error) });
    this.#broken = error;
    this.#flying = 0;
    const refused = [...writes, ...this.#queue];
    this.#queue = [];
    this.#waiting = 0;
    this.#watch.failed();
    for (const write of refused) write.failed(error);
    this.#rest();
    this.#newcomers.letInAll();
    this.#healing = heal(this.#kv, scheduler, logger, this.#stop.signal).then((open) => {
      this.#healing = undefined;
      if (!open) return;
      this.#broken = undefined;
      this.#watch.healed();
    });
  }

  #rest(): void {
    this.#busy = false;
    this.#telling.rested();
    const idle = this.#idle;
    this.#idle = [];
    for (const told of idle) told();
  }
}

function opsOf(writes: readonly Write[]): readonly Op[] {
  if (writes.length === 1) return (writes[0] as Write).ops;
  const all: Op[] = [];
  // By hand: `flatMap` makes every element by way of the runtime.
  for (const { ops } of writes) for (const op of ops) all.push(op);
  return all;
}

/** Keys are ASCII. */
function sizeOf(ops: readonly Op[]): number {
  let bytes = 0;
  for (const { key, value } of ops) bytes += key.length + (value === null ? 0 : value.length);
  return bytes;
}

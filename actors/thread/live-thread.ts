import type { AnyActorRef } from "../xstate.ts";
import type { CheckpointHead, TaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { Few } from "../../src/model/small-map.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { changeThread, hasWork, type ThreadKey, type ThreadRecord } from "../../src/model/thread.ts";
import type { Position, Source } from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { Append } from "../../src/ports/journal.ts";
import type { Ongoing } from "../run/attempt-handle.ts";
import type { Delays } from "../delayed-runs.ts";
import type { Gate } from "../concurrency-limiter.ts";
import type { Place } from "../idle-threads.ts";
import type { RunEnd, SystemDeps } from "../thread-system.ts";
import type { StartQueue } from "../start-queue.ts";
import type { Tally } from "../run-counters.ts";
import { CheckpointIds } from "./checkpoint-ids.ts";
import { findInconsistency, REFUSED } from "./consistency.ts";

/** What one append changes, beside the thread's record. */
export type Change = Omit<Append, "key" | "fence" | "thread">;

/** What a cell tells the registry. */
export interface CellOwner {
  /** The server stops: no run goes beyond the superstep that it is in. */
  readonly draining: boolean;
  /** Says which run may start. */
  readonly gate: Gate;
  /** Runs that are about to begin. */
  readonly starts: StartQueue;
  /** Where it is counted what becomes of runs. */
  readonly tally: Tally;
  /** When runs start that wait for their time. */
  readonly delays: Delays;
  /** A run is to wait. @throws ServiceError `server.busy` when too many do, unless it `isTaken`: promised earlier */
  queued(key: ThreadKey, run: string, isTaken?: boolean): void;
  /** It waits no longer: an attempt of it starts. */
  begun(run: string): void;
  /** A stop has brought the run in progress to a halt: no node of it is at work, and none begins. */
  halted(cell: Cell): void;
  /** A run has ended, and that is stored. `isRead`: is somebody still reading its stream? */
  concluded(cell: Cell, run: string, end: RunEnd, isRead?: boolean): void;
  /** The thread may have come to rest, or have left it. */
  rested(cell: Cell): void;
  /** Drops the cell from memory, unless a run or a write in flight needs it there. */
  passivate(cell: Cell): void;
  /** A write failed or an actor broke: the cell is dead, its thread has to be taken up from the records. */
  broken(cell: Cell, cause: unknown): void;
}

/**
 * All that belongs to one live thread and is no message: its record, its runs that have not ended, the state of its latest
 * checkpoint, its actor. The one writer of its thread.
 */
export class Cell {
  readonly key: ThreadKey;
  readonly deps: SystemDeps;
  readonly owner: CellOwner;
  /** As it will be once every write in flight is stored. */
  record: ThreadRecord;
  /** The runs that have not ended, but for those that wait for their time. */
  readonly runs = new Few<string, RunRecord>();
  /** The runs that wait for their time. They keep the thread from nothing. */
  readonly delayed = new Few<string, RunRecord>();
  actor: AnyActorRef | undefined;
  attempt: Ongoing | null = null;
  alive = true;
  /** A write failed or its actor broke. Another cell that is not alive was let go of: its thread is served by the next one. */
  isBroken = false;
  /** Writes in flight: the actor must not be let go before they end. */
  inFlight = 0;
  /** Settles with the last of them. */
  tail: Promise<void> | undefined;
  /** Its place among those at rest, while it is. */
  atRest: Place<Cell> | null = null;
  #hot: Position | null = null;
  readonly #ids: CheckpointIds;

  constructor(key: ThreadKey, record: ThreadRecord, deps: SystemDeps, owner: CellOwner) {
    this.key = key;
    this.record = record;
    this.deps = deps;
    this.owner = owner;
    this.#ids = new CheckpointIds(deps.clock, deps.random);
    if (record.checkpoint !== null) this.#ids.saw(record.checkpoint);
  }

  /**
   * Appends to the thread's journal. Resolves once stored; a failure gives the whole cell up, and rejects. `unseen`: the thread
   * counts as unchanged.
   */
  write(change: Change, update: (thread: ThreadRecord) => ThreadRecord, unseen = false): Promise<void> {
    if (!this.alive) return Promise.reject(gone());
    const before = this.record;
    const updated_at = unseen ? before.updated_at : this.deps.clock.now();
    const updated = update(before);
    const rested_at = unseen || hasWork(updated) ? before.rested_at : updated_at;
    const thread = changeThread(updated, { seq: before.seq + 1, updated_at, rested_at });
    const wrong = findInconsistency(before, thread, change);
    if (wrong !== undefined) return this.#refuse(change.kind, wrong);
    this.record = thread;
    this.inFlight++;
    const fence = { epoch: before.epoch, seq: before.seq };
    const { kind, durable, runs, checkpoints, writes, events, forget, once, outbox } = change;
    const append = {
      key: this.key,
      fence,
      kind,
      durable,
      thread,
      runs,
      checkpoints,
      writes,
      events,
      forget,
      once,
      outbox,
    };
    const stored = this.deps.journal.append(append).then(
      () => {
        if (--this.inFlight === 0) this.tail = undefined;
      },
      (cause: unknown) => {
        this.inFlight--;
        this.giveUp(cause);
        throw cause;
      },
    );
    this.tail = stored;
    return stored;
  }

  /** Storing it would damage the thread. What is stored is whole: it is taken up from there. */
  #refuse(kind: string, why: string): Promise<never> {
    this.deps.logger.error(REFUSED, { thread: this.key.thread, kind, why });
    const cause = new ServiceError("journal.conflict", `Thread ${this.key.thread}: ${why}`);
    this.giveUp(cause);
    return Promise.reject(cause);
  }

  /** What an execution of one of its runs asks for. */
  source(): Source {
    return {
      tenant: this.key.tenant,
      now: () => this.deps.clock.now(),
      checkpointId: (step, made) => (made === undefined ? this.#ids.next(step) : this.#ids.above(made, step)),
    };
  }

  /** A checkpoint of a subgraph, or of another branch, may be newer than the latest one. */
  saw(checkpoint: string): void {
    this.#ids.saw(checkpoint);
  }

  /** Where the next run starts from: kept from the last one, or read. */
  position(): Eventually<Position> {
    if (this.#hot !== null) return this.#hot;
    const id = this.record.checkpoint;
    if (id === null) return { head: null, values: {}, writes: [] };
    return andThen(this.at(id), (position) => {
      if (position !== undefined) return position;
      // Its run was deleted while it was being read.
      if (this.record.checkpoint !== id) return this.position();
      throw new ServiceError("journal.damaged", `Checkpoint ${id} of thread ${this.key.thread} is missing`);
    });
  }

  /** The state at one of its checkpoints, undefined where there is none of that id. */
  at(id: string, ns = ""): Eventually<Position | undefined> {
    const { journal } = this.deps;
    const read = (): Eventually<Position | undefined> =>
      andThen(journal.checkpoint(this.key, ns, id), (head) => {
        if (head === undefined) return undefined;
        return andThen(journal.values(this.key, head), (values) =>
          andThen(journal.writes(this.key, ns, id), (writes) => ({ head, values, writes })),
        );
      });
    // The journal shows what is stored, and the checkpoint may still be on its way there.
    return this.tail === undefined ? read() : this.tail.then(read);
  }

  /** The state as far as it is in memory; null: it would have to be read. */
  get values(): JsonObject | null {
    return this.attempt?.values ?? this.#hot?.values ?? null;
  }

  /** Keeps the state of the latest checkpoint, so that the next run need not read it. */
  keep(head: CheckpointHead | null, values: JsonObject, writes: readonly TaskWrites[]): void {
    this.#hot = { head, values, writes };
  }

  /** What tasks of the latest checkpoint have left is now this, where it is theirs. */
  left(writes: readonly TaskWrites[]): void {
    if (this.#hot === null) return;
    const { id } = this.#hot.head ?? {};
    const now = new Map(this.#hot.writes.map((one) => [one.task, one]));
    for (const one of writes) if (one.ns === "" && one.checkpoint === id) now.set(one.task, one);
    this.#hot = { ...this.#hot, writes: [...now.values()] };
  }

  /** The state was changed by other means than a run, or taken back. */
  forget(): void {
    this.#hot = null;
  }

  /** The records are the truth: after a failed write nobody knows what is stored, so all that is live is dropped. */
  giveUp(cause: unknown): void {
    if (!this.alive) return;
    this.alive = false;
    this.isBroken = true;
    this.attempt?.revoke();
    this.attempt?.sink.abandon();
    this.owner.broken(this, cause);
  }
}

export function gone(): ServiceError {
  return new ServiceError("storage.unavailable", "The thread's storage failed; try again");
}

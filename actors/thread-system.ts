import { noConcurrencyLimits, type ConcurrencyLimits } from "./concurrency-limiter.ts";
import type { CheckpointHead } from "../src/model/checkpoint.ts";
import type {
  CancelAction,
  MultitaskStrategy,
  RunKwargs,
  RunOrigin,
  RunRecord,
  TerminalStatus,
} from "../src/model/run.ts";
import type { Interrupt } from "../src/model/interrupt.ts";
import type { JsonObject } from "../src/model/json.ts";
import type { Permits } from "../src/model/permission.ts";
import type { Timer } from "../src/model/machine-timer.ts";
import type { ThreadKey, ThreadLifetime, ThreadRecord, ThreadCreation } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Engine } from "../src/ports/engine.ts";
import type { StateWrite } from "../src/ports/state-update.ts";
import type { Failpoints } from "../src/ports/failpoints.ts";
import type { ReadHeap } from "../src/ports/heap.ts";
import type { Host } from "../src/ports/node-host.ts";
import type { Inspector, InspectScope, LiveThreadList } from "../src/ports/inspector.ts";
import type { Journal, IdempotentRequest } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Random } from "../src/ports/random.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";
import type { Sinks } from "../src/ports/sink.ts";
import type { Store } from "../src/ports/store.ts";
import type { RunWithLostEnd } from "../src/ports/lost-run-ends.ts";
import type { ActorMetrics } from "./run-totals.ts";
import type { Interpreter } from "./statechart-interpreter.ts";

/** A run that a client requests. */
export interface RunDraft {
  readonly run_id: string;
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly metadata: JsonObject;
  readonly kwargs: RunKwargs;
  readonly multitask_strategy: MultitaskStrategy;
  readonly origin: RunOrigin;
  /** Members of the run's config to store in the thread's record, for people to see; undefined: none. */
  readonly config?: JsonObject;
  /** How to create the thread, in the same append, if it does not exist. Without it, the thread must exist. */
  readonly create?: ThreadCreation;
  /** Milliseconds to wait before the run asks to start; undefined: none. */
  readonly delay?: number;
  /**
   * It takes an event of a machine, its answer or that of a timer: for what the thread waits for when the run's turn comes, and not for an interrupt that waits now. Runs before it
   * may therefore answer that one.
   */
  readonly isEvent?: boolean;
  /** Idempotency key, stored with the run, so that a repeated request is recognised. */
  readonly once?: IdempotentRequest;
}

/**
 * Admits a run that takes the event of a timer that is due. Resolves with false when the thread does not list the timer
 * any more.
 */
export type AdmitTimerRun = (key: ThreadKey, timer: Timer) => Promise<boolean>;

/** An update of a thread's state by a client, not by a run. */
export interface UpdateDraft {
  /** The checkpoint to start from; null: the latest one. */
  readonly from: string | null;
  /** The namespace: `""` for the root graph, or that of the subgraph whose state to change. */
  readonly ns: string;
  /** The writes of each superstep; at least one superstep. All are stored, or none. */
  readonly supersteps: readonly (readonly StateWrite[])[];
}

export interface ThreadDraft {
  readonly metadata: JsonObject;
  /** The supersteps that make its first state; absent: it has no state. The metadata's `graph_id` names the graph. */
  readonly supersteps?: UpdateDraft["supersteps"];
  readonly ttl?: ThreadLifetime | null;
  /** What to do when the thread exists: `raise` throws `thread.exists`, `do_nothing` returns it unchanged. */
  readonly if_exists: "raise" | "do_nothing";
  /** Which thread `do_nothing` may return; absent: any. */
  readonly permits?: Permits;
}

/** A change of a thread's metadata or lifetime. */
export interface ThreadChange {
  /** Members to set; other members stay. */
  readonly metadata?: JsonObject;
  /** The new lifetime; null: unlimited. */
  readonly ttl?: ThreadLifetime | null;
}

export interface RunEnd {
  /** The run's record; undefined: the run is unknown, or was rolled back. */
  readonly run: RunRecord | undefined;
  /**
   * The final state, when an actor of this process has just ended the run; else it has to be read. `waiting`: the
   * interrupts that wait for an answer, empty at a breakpoint; null when the run did not pause.
   */
  readonly left?: { readonly values: JsonObject; readonly waiting: readonly Interrupt[] | null };
  /** Set when the run ended while its thread was being deleted: resolves with whether the thread was deleted. */
  readonly isThreadDeleted?: Promise<boolean>;
}

/**
 * Administration of threads: changing, copying, deleting and pruning them. While one of these is in progress, the
 * admission of a run to the thread waits. Temporary threads count as unknown. All methods throw ServiceError
 * `thread.not_found`, `server.draining`, `storage.unavailable`.
 */
export interface ThreadOperations {
  /** Changes a thread, busy or idle. Resolves with the thread when the change is stored. */
  update(key: ThreadKey, change: ThreadChange): Promise<ThreadRecord>;
  /**
   * Creates a thread `to` with the state and the history of `from`, without its runs. `metadata`: that of the copy
   * instead of the thread's own. Resolves when it is stored.
   */
  copy(from: ThreadKey, to: ThreadKey, metadata?: JsonObject): Promise<ThreadRecord>;
  /**
   * Cancels the runs of a thread, so that their webhooks learn of it, and deletes the thread with everything that belongs to it. Those who
   * read a run or wait for it learn that the thread was deleted. A run admitted meanwhile finds no thread.
   */
  remove(key: ThreadKey): Promise<void>;
  /**
   * Deletes all checkpoints of a thread except the latest of each graph in it. False: the thread is busy, and nothing
   * is deleted.
   */
  prune(key: ThreadKey): Promise<boolean>;
  /** Applies the thread's `ttl` if its time is up; else stores when to look again. */
  expire(key: ThreadKey): Promise<void>;
}

/** How a run without a stored end was ended; undefined: it was not, because it has ended by now or is still queued. */
export type RestoredEnd = TerminalStatus | "forgotten" | undefined;

/**
 * The interface of the actor system, and the only way to reach the actors: a thread is named by its id, never by a
 * reference.
 */
export interface ThreadSystem {
  /**
   * Creates a thread. Resolves when it is stored.
   * @throws ServiceError `thread.exists`, `server.draining`, `storage.unavailable`; with supersteps also as {@link
   *   ThreadSystem.update}
   */
  create(key: ThreadKey, draft: ThreadDraft): Promise<ThreadRecord>;
  readonly threads: ThreadOperations;
  /**
   * Admits a run by the multitask rules, atomically for its thread. Resolves when the run is stored, and with it its
   * thread if that is created. A temporary thread takes only its own run: for another one it counts as unknown.
   * @throws ServiceError `thread.not_found`, `run.conflict`, `resume.*`, `server.busy`, `server.draining`,
   *   `storage.unavailable`
   */
  admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord>;
  /**
   * Admits runs, each to a new thread of its own. All are admitted in one turn; if one is refused, none is, no node
   * of the others runs, and the result of `refused` is thrown. Resolves when all are stored.
   */
  admitAll(
    runs: readonly { readonly key: ThreadKey; readonly draft: RunDraft }[],
    refused: (index: number, cause: unknown) => unknown,
  ): Promise<readonly RunRecord[]>;
  /**
   * Changes the state of an idle thread, atomically, in one append. The thread's status is then `interrupted` where
   * tasks are left to run, else `idle`. Resolves with the last new checkpoint when it is stored.
   * @throws ServiceError `thread.not_found`, `thread.busy`, `thread.no_graph`, `checkpoint.not_found`, errors of the
   *   engine, `server.draining`, `storage.unavailable`
   */
  update(key: ThreadKey, draft: UpdateDraft): Promise<CheckpointHead>;
  /**
   * Resolves with the run's record when the run has ended and its end is stored; with undefined when the run is
   * unknown or was rolled back. Loads no thread.
   */
  settled(key: ThreadKey, run: string): Promise<RunRecord | undefined>;
  /** The same, with the final state of the run. */
  ended(key: ThreadKey, run: string): Promise<RunEnd>;
  /**
   * Cancels a run. Resolves when the request is stored, or at once when the run has ended. `reason` is stored with
   * it.
   * @throws ServiceError `run.not_found`
   */
  cancel(key: ThreadKey, run: string, action: CancelAction, reason?: string): Promise<void>;
  /**
   * Registers that the client wants the run to end with its connection. A shutdown closes that connection: then the
   * next start ends the run instead of continuing it. Does nothing for a run that has ended.
   */
  cancelOnDisconnect(key: ThreadKey, run: string): void;
  /**
   * Deletes a run that has ended, with its events and its checkpoints. If the thread's latest checkpoint is one of
   * them, the thread returns to the one before. Resolves when the change is stored.
   * @throws ServiceError `run.not_found`, `run.conflict` (it has not ended), `thread.busy` (another is in progress)
   */
  forget(key: ThreadKey, run: string): Promise<void>;
  /**
   * Keeps the thread, if it is a temporary one, until the returned function is called: a request is about to read the run, and the reads
   * before that may take time. Afterwards the thread is deleted as if the run had ended then.
   */
  keepTemporary(key: ThreadKey): () => void;
  /** True when an actor executes this run now. Clients see `running` for such a run, whose record says `pending`. */
  isRunning(key: ThreadKey, run: string): boolean;
  /**
   * The position of a waiting run, counted from 1: among its tenant's runs that wait for a slot, or in its thread's
   * queue.
   */
  positionOf(key: ThreadKey, run: string): number | undefined;
  /**
   * Shows the inspector every live actor of the scope, and from then on all that happens to them, until the returned
   * function is called. It loads no thread. While nobody inspects, no actor has a hook.
   */
  inspect(scope: InspectScope, inspector: Inspector): () => void;
  readonly live: LiveThreadList;
  /**
   * Continues every unended run that a shutdown or a crash interrupted. Called once, before the server accepts
   * requests.
   */
  recover(): Promise<void>;
  /** Sets what takes the timers that are due. Called before {@link ThreadSystem.recover}. */
  onTimer(admit: AdmitTimerRun): void;
  /** Ends a run whose record has no end although no thread lists it. Resolves with its outcome when that is stored. */
  restoreRunEnd(found: RunWithLostEnd): Promise<RestoredEnd>;
  /** Refuses new runs, waits up to `ms` milliseconds for running supersteps, and parks the rest for the next start. */
  drain(ms: number): Promise<void>;
  readonly counts: { readonly live: number; readonly busy: number };
  /** All metrics, for periodic readers. */
  readonly figures: ActorMetrics;
}

export interface SystemDeps {
  readonly journal: Journal;
  readonly engine: Engine;
  readonly host: Host;
  readonly sinks: Sinks;
  /** The key-value store that nodes use across threads. */
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly heap: ReadHeap;
  readonly logger: Logger;
  /** Identifies the machine's boot, see `RunRecord.boot`. */
  readonly boot: string;
  readonly limits: SystemLimits;
  /** The interpreter of the statecharts. Default: `interpretStatechart`. */
  readonly interpret?: Interpreter | undefined;
}

export interface SystemLimits {
  /** Milliseconds that a thread is idle before it is removed from memory. */
  readonly idle: number;
  /**
   * The largest number of idle threads in memory. Loading one takes some 20 us; thousands of them would make every
   * garbage collection slower.
   */
  readonly maxIdle: number;
  /** Bytes of the states of idle threads in memory, at most: those that have been idle longest are removed. One state may exceed it. */
  readonly maxIdleBytes: number;
  /** Bytes: a state or an input of a run of this size or more counts as large. */
  readonly largeState: number;
  /** Bytes of the large states and inputs of runs in progress: at this size further large runs wait. A single run may exceed it. */
  readonly maxStateBytes: number;
  /** Milliseconds that a temporary thread is kept for readers that have not reached its end or may come back. */
  readonly linger: number;
  /** Milliseconds that a cancelled task has to stop by itself. */
  readonly grace: number;
  /** The number of attempts that a run may have. */
  readonly attempts: number;
  /** Milliseconds that an attempt of a run may take, where the run sets no limit itself; Infinity: no limit. */
  readonly timeout: number;
  /** Runs that may be in progress at once. */
  readonly concurrent: ConcurrencyLimits;
  /** Runs that may wait: of all threads, and of one tenant. */
  readonly maxQueued: number;
  readonly maxQueuedPerTenant: number;
  /** Bytes of the inputs of runs that wait: of all threads, and of one tenant. */
  readonly maxQueuedBytes: number;
  readonly maxQueuedBytesPerTenant: number;
}

export const defaultSystemLimits: SystemLimits = {
  idle: 30_000,
  maxIdle: 128,
  maxIdleBytes: 32 * 1024 * 1024,
  largeState: 64 * 1024,
  maxStateBytes: 256 * 1024 * 1024,
  linger: 60_000,
  grace: 500,
  attempts: 3,
  timeout: Infinity,
  concurrent: noConcurrencyLimits,
  maxQueued: 100_000,
  maxQueuedPerTenant: Infinity,
  maxQueuedBytes: 256 * 1024 * 1024,
  maxQueuedBytesPerTenant: Infinity,
};

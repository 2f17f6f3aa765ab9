import { unlimitedConcurrency, type ConcurrencyLimits } from "./concurrency-limiter.ts";
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
import type { Permits } from "../src/model/permitted-resources.ts";
import type { Timer } from "../src/model/machine-timer.ts";
import type { ThreadKey, ThreadLifetime, ThreadRecord, NewThreadValues } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Engine } from "../src/ports/engine.ts";
import type { StateWrite } from "../src/ports/state-update.ts";
import type { Failpoints } from "../src/ports/failpoints.ts";
import type { ReadHeapUsage } from "../src/ports/heap-usage.ts";
import type { NodeExecutor } from "../src/ports/node-executor.ts";
import type { Inspector, InspectScope, LiveThreadList } from "../src/ports/inspector.ts";
import type { Journal, IdempotentRequest } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Random } from "../src/ports/random.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";
import type { RunEventSinks } from "../src/ports/event-sink.ts";
import type { Store } from "../src/ports/store.ts";
import type { RunWithLostEnd } from "../src/ports/lost-run-ends.ts";
import type { ActorMetrics } from "./run-totals.ts";
import type { Interpreter } from "./statechart-interpreter.ts";

/** A run that a client requests, before it is admitted. */
export interface RunDraft {
  readonly run_id: string;
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly metadata: JsonObject;
  readonly kwargs: RunKwargs;
  readonly multitask_strategy: MultitaskStrategy;
  readonly origin: RunOrigin;
  /** The members of the run's config to store in the thread's record, where clients can read them; undefined: none. */
  readonly config?: JsonObject;
  /** The settings of the thread, which is created in the append that stores the run if it does not exist. Absent: the thread must exist. */
  readonly create?: NewThreadValues;
  /** Milliseconds after which the run may start; undefined: no delay. */
  readonly delay?: number;
  /** Idempotency key, stored with the run, so that a repeated request is recognised. */
  readonly once?: IdempotentRequest;
}

/**
 * Admits a run that sends the event of a timer that is due. Resolves with false when the thread does not list the timer
 * any more.
 */
export type AdmitTimerRun = (key: ThreadKey, timer: Timer) => Promise<boolean>;

/** An update of a thread's state by a client, not by a run. */
export interface UpdateDraft {
  /** The checkpoint to start from; null: the latest one. */
  readonly from: string | null;
  /** The namespace of the graph whose state to change: `""` for the root graph, or the namespace of a subgraph. */
  readonly ns: string;
  /** The writes of each superstep; there is at least one superstep. All supersteps are stored, or none. */
  readonly supersteps: readonly (readonly StateWrite[])[];
  /** Metadata of the new checkpoints, in addition to the metadata that all updates have; absent: none. */
  readonly metadata?: JsonObject;
  /**
   * True: the update is refused unless `from` is the latest checkpoint. Absent: an update from another checkpoint
   * begins a new branch.
   */
  readonly isLatestRequired?: boolean;
}

export interface ThreadDraft {
  readonly metadata: JsonObject;
  /**
   * The supersteps that make the thread's first state; absent: the thread has no state at first. `graph_id` in the
   * metadata names the graph.
   */
  readonly supersteps?: UpdateDraft["supersteps"];
  readonly ttl?: ThreadLifetime | null;
  /**
   * The behaviour when the thread exists: `raise` throws `thread.exists`, `do_nothing` returns the thread unchanged.
   */
  readonly if_exists: "raise" | "do_nothing";
  /** Decides whether `do_nothing` may return the existing thread; absent: it may. */
  readonly permits?: Permits;
}

/** A change of a thread's metadata or lifetime: the body of `PATCH /threads/{id}`. */
export interface ThreadPatch {
  /** Members to set; other members stay. */
  readonly metadata?: JsonObject;
  /** The new lifetime; null: unlimited. */
  readonly ttl?: ThreadLifetime | null;
}

export interface RunEnd {
  /** The run's record; undefined: the run is unknown, or was rolled back. */
  readonly run: RunRecord | undefined;
  /**
   * The final state. Present only when an actor of this process has just ended the run; otherwise the caller has to
   * read it. `waiting`: the interrupts that wait for an answer, empty at a breakpoint; null when the run did not pause.
   */
  readonly left?: { readonly values: JsonObject; readonly waiting: readonly Interrupt[] | null };
  /** Present if the run ended while its thread was being deleted. Resolves with whether the thread was deleted. */
  readonly isThreadDeleted?: Promise<boolean>;
}

/**
 * Administration of threads: changing, copying, deleting and pruning them. While one of these operations is in progress, the admission of a
 * run to the thread (for a copy: to the new thread) waits. Temporary threads count as unknown. All methods may reject with a ServiceError:
 * `thread.not_found`, `server.draining`, `storage.unavailable`.
 */
export interface ThreadOperations {
  /** Changes a thread, busy or idle. Resolves with the thread when the change is stored. */
  update(key: ThreadKey, change: ThreadPatch): Promise<ThreadRecord>;
  /**
   * Creates a thread `to` with the state and the history of `from`, without its runs. `metadata` replaces the metadata of
   * `from` in the copy. Resolves when the copy is stored.
   */
  copy(from: ThreadKey, to: ThreadKey, metadata?: JsonObject): Promise<ThreadRecord>;
  /**
   * Cancels the runs of a thread, so that their webhooks are sent, and deletes the thread with all its data. Clients that read a run or wait for
   * its end learn that the thread was deleted. A run that is requested in the meantime finds no thread.
   */
  remove(key: ThreadKey): Promise<void>;
  /**
   * Deletes all checkpoints of a thread except the latest of each graph in it. Resolves with false when the thread is busy:
   * then nothing is deleted.
   */
  prune(key: ThreadKey): Promise<boolean>;
  /** Deletes or prunes the thread as its `ttl` says, if it has expired. Otherwise stores when to check again. */
  expire(key: ThreadKey): Promise<void>;
}

/**
 * The outcome of restoring the end of a run whose end was missing in storage. A status: the run was ended with this status. `forgotten`:
 * the run had been rolled back, so it was deleted. Undefined: nothing was changed, because the run has ended by now or its thread still has
 * it.
 */
export type RestoredEnd = TerminalStatus | "forgotten" | undefined;

/**
 * The interface of the actor system, and the only way to reach the actors: a thread is named by its id, never by a
 * reference.
 */
export interface ThreadSystem {
  /**
   * Creates a thread, and resolves when it is stored. If the thread exists already, `draft.if_exists` decides.
   * @throws ServiceError `thread.exists`, `server.draining`, `storage.unavailable`; with supersteps also the errors of
   * {@link ThreadSystem.update}
   */
  create(key: ThreadKey, draft: ThreadDraft): Promise<ThreadRecord>;
  readonly threads: ThreadOperations;
  /**
   * Admits a run by the multitask rules, atomically for its thread. Resolves when the run is stored, together with its
   * thread if that is new. A temporary thread accepts only the run for which it was made: for other runs it counts as
   * unknown.
   * @throws ServiceError `thread.not_found`, `run.conflict`, `resume.*`, `server.busy`, `server.draining`,
   *   `storage.unavailable`
   */
  admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord>;
  /**
   * Admits runs, each to a new thread of its own, all in one turn of the event loop. Resolves when all are stored. If
   * one run is refused, no run is admitted, no node runs, and the result of `refused` is thrown.
   */
  admitAll(
    runs: readonly { readonly key: ThreadKey; readonly draft: RunDraft }[],
    refused: (index: number, cause: unknown) => unknown,
  ): Promise<readonly RunRecord[]>;
  /**
   * Changes the state of an idle thread, atomically, in one append. If the state is that of the root graph, the
   * thread's status is then `interrupted` if there are next tasks, else `idle`. Resolves with the last new checkpoint
   * when it is stored.
   * @throws ServiceError `thread.not_found`, `thread.busy`, `thread.no_graph`, `checkpoint.not_found`,
   * `checkpoint.outdated`, `server.draining`, `storage.unavailable`, and the errors of the engine
   */
  update(key: ThreadKey, draft: UpdateDraft): Promise<CheckpointHead>;
  /**
   * Resolves with the run's record when the run has ended and its end is stored; with undefined when the run is
   * unknown or was rolled back. Loads no thread.
   */
  settled(key: ThreadKey, run: string): Promise<RunRecord | undefined>;
  /** Like {@link settled}, but also gives the final state of the run, if this process has just ended the run. */
  ended(key: ThreadKey, run: string): Promise<RunEnd>;
  /**
   * Rejects all waits for the end of a run, and all further ones, with `server.draining`. Called after {@link drain} when another process
   * continues the threads, so that the waits can be sent to that process at once.
   */
  endWaits(): void;
  /**
   * Cancels a run. Resolves when the request is stored, or at once when the run has ended. `reason` is stored with the
   * request.
   * @throws ServiceError `run.not_found`
   */
  cancel(key: ThreadKey, run: string, action: CancelAction, reason?: string): Promise<void>;
  /**
   * Registers that the client wants the run to end with its connection. A shutdown, which closes the connection, then ends the run instead
   * of continuing it: a waiting run at once, a run in progress at the next start of the server. Does nothing for a run that has ended.
   */
  cancelOnDisconnect(key: ThreadKey, run: string): void;
  /**
   * Deletes a run that has ended, with its events and its checkpoints. If the run made the thread's latest checkpoint,
   * the thread returns to the checkpoint before the run. Resolves when the change is stored.
   * @throws ServiceError `run.not_found`, `run.conflict` if the run has not ended, `thread.busy` if another run is in
   *   progress
   */
  forget(key: ThreadKey, run: string): Promise<void>;
  /**
   * Keeps the thread, if it is temporary, until the returned function is called. A request calls this when it has to
   * read other data before it reads the run. If the run has ended before the returned function is called, the thread is
   * then deleted as if the run had just ended.
   */
  keepTemporary(key: ThreadKey): () => void;
  /** True when an actor executes this run now. Clients see the status `running` for this run, although its record says `pending`. */
  isRunning(key: ThreadKey, run: string): boolean;
  /**
   * The position of a run, from 1, in the queue of its thread; undefined if the queue does not contain the run. If the first run of the
   * queue waits for a slot, the tenant's runs that wait ahead of that first run count too.
   */
  positionOf(key: ThreadKey, run: string): number | undefined;
  /**
   * Shows the inspector every live actor of the scope, and from then on everything that happens to them, until the returned function is
   * called. Loads no threads.
   */
  inspect(scope: InspectScope, inspector: Inspector): () => void;
  readonly live: LiveThreadList;
  /**
   * Continues every unended run that a shutdown or a crash interrupted. Called once, before the server accepts
   * requests.
   */
  recover(): Promise<void>;
  /** Sets the function that admits runs for timers that are due. Called before {@link ThreadSystem.recover}. */
  onTimer(admit: AdmitTimerRun): void;
  /** Sets the function that is called when the end of a run is stored. Called before {@link ThreadSystem.recover}. */
  onRunEnd(listener: (key: ThreadKey, run: RunRecord) => void): void;
  /** Ends a run whose record has no end although no thread lists the run. Resolves when the end is stored. */
  restoreRunEnd(found: RunWithLostEnd): Promise<RestoredEnd>;
  /**
   * Stops the work of the system. Refuses new runs, and waits up to `ms` milliseconds for running supersteps. Then it
   * marks the unended runs as parked, so that the next start continues them.
   */
  drain(ms: number): Promise<void>;
  readonly counts: { readonly live: number; readonly busy: number };
  /** All metrics of the actor system, for code that reads them periodically. */
  readonly figures: ActorMetrics;
}

export interface SystemDeps {
  readonly journal: Journal;
  readonly engine: Engine;
  readonly executor: NodeExecutor;
  readonly sinks: RunEventSinks;
  /** The long-term store, which the nodes of all threads share. */
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly heap: ReadHeapUsage;
  readonly logger: Logger;
  /** Identifies the boot of the computer, see `RunRecord.boot`. */
  readonly boot: string;
  readonly limits: SystemLimits;
  /** The interpreter of the statecharts. Default: `interpretStatechart`. */
  readonly interpret?: Interpreter | undefined;
}

export interface SystemLimits {
  /** Milliseconds that a thread is idle before it is removed from memory. */
  readonly idle: number;
  /**
   * The largest number of idle threads in memory. Loading a thread takes some 20 us; thousands of idle threads would
   * make every garbage collection slower.
   */
  readonly maxIdle: number;
  /**
   * The most bytes of idle threads' states in memory. Above this limit, the threads that have been idle longest are
   * removed. A single state may exceed the limit.
   */
  readonly maxIdleBytes: number;
  /** A state or an input of this many bytes or more counts as large. */
  readonly largeState: number;
  /**
   * When the large states and inputs of runs in progress take this many bytes, further large runs wait. A run that begins below the limit
   * may exceed it.
   */
  readonly maxStateBytes: number;
  /** Milliseconds that a temporary thread is kept for readers that have not reached the run's end or may come back. */
  readonly linger: number;
  /** Milliseconds in which a cancelled task may stop by itself. */
  readonly grace: number;
  /** The most attempts of a run in a row that end without a stored step. Parked attempts are not counted. */
  readonly attempts: number;
  /** Milliseconds that an attempt of a run may take, if the run itself sets no limit; Infinity: no limit. */
  readonly timeout: number;
  /** The limits of how many runs may be in progress at once. */
  readonly concurrent: ConcurrencyLimits;
  /** The most runs that may wait. */
  readonly maxQueued: number;
  /** The most runs of one tenant that may wait. */
  readonly maxQueuedPerTenant: number;
  /** The most bytes of the inputs of waiting runs. */
  readonly maxQueuedBytes: number;
  /** The most bytes of the inputs of one tenant's waiting runs. */
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
  concurrent: unlimitedConcurrency,
  maxQueued: 100_000,
  maxQueuedPerTenant: Infinity,
  maxQueuedBytes: 256 * 1024 * 1024,
  maxQueuedBytesPerTenant: Infinity,
};

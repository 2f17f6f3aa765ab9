import { noLimits, type GateLimits } from "./concurrency-limiter.ts";
import type { CheckpointHead } from "../src/model/checkpoint.ts";
import type {
  CancelAction,
  MultitaskStrategy,
  RunKwargs,
  RunRecord,
  TerminalStatus,
} from "../src/model/run.ts";
import type { Interrupt } from "../src/model/interrupt.ts";
import type { JsonObject } from "../src/model/json.ts";
import type { ThreadKey, ThreadLifetime, ThreadRecord, ThreadStart } from "../src/model/thread.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Engine } from "../src/ports/engine.ts";
import type { StateWrite } from "../src/ports/state-update.ts";
import type { Failpoints } from "../src/ports/failpoints.ts";
import type { Host } from "../src/ports/node-host.ts";
import type { Inspector, InspectScope, LiveThreads } from "../src/ports/inspector.ts";
import type { Journal, Once } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Random } from "../src/ports/random.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";
import type { Sinks } from "../src/ports/sink.ts";
import type { Store } from "../src/ports/store.ts";
import type { UnendedRun } from "../src/ports/unended-runs.ts";
import type { Figures } from "./run-counters.ts";

/** A run that a client asks for. */
export interface RunDraft {
  readonly run_id: string;
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly metadata: JsonObject;
  readonly kwargs: RunKwargs;
  readonly multitask_strategy: MultitaskStrategy;
  /** What the thread's record is to keep of the run's config, for people to see; undefined: nothing new. */
  readonly config?: JsonObject;
  /** How to make the thread, in the same append, where there is none. Without it, there has to be one. */
  readonly create?: ThreadStart;
  /** Milliseconds that it is to wait before it asks to start; undefined: none. */
  readonly delay?: number;
  /** Stored with it, so that the same request is known when it comes again. */
  readonly once?: Once;
}

/** A change of a thread's state that no run makes. */
export interface UpdateDraft {
  /** The checkpoint that it starts from; null: the latest one. */
  readonly from: string | null;
  /** `""`, or the subgraph whose state it is. */
  readonly ns: string;
  /** At least one superstep, each by its writes. All are stored, or none. */
  readonly supersteps: readonly (readonly StateWrite[])[];
}

export interface ThreadDraft {
  readonly metadata: JsonObject;
  /** How its state comes about; absent: it has none yet. The metadata's `graph_id` says of which graph. */
  readonly supersteps?: UpdateDraft["supersteps"];
  readonly ttl?: ThreadLifetime | null;
  /** What to do when the thread exists: `raise` throws `thread.exists`, `do_nothing` answers it as it is. */
  readonly if_exists: "raise" | "do_nothing";
}

/** What is to become different of a thread. */
export interface ThreadChange {
  /** Takes the place of what the thread has under the same names; other members stay. */
  readonly metadata?: JsonObject;
  /** Null: it stays for good. */
  readonly ttl?: ThreadLifetime | null;
}

/** A run that has ended. */
export interface RunEnd {
  /** Undefined: it is unknown, or was rolled back. */
  readonly run: RunRecord | undefined;
  /**
   * What it has left, when an actor of this process has just ended it; else it has to be read. `waiting`: what waits for an
   * answer, nothing at a breakpoint; null when it did not pause.
   */
  readonly left?: { readonly values: JsonObject; readonly waiting: readonly Interrupt[] | null };
}

/**
 * What becomes of threads beside their runs. While one of these is under way, no run is admitted to the thread: it waits.
 * Temporary threads are not there for any of them.
 * All throw ServiceError `thread.not_found`, `server.draining`, `storage.unavailable`.
 */
export interface ThreadKeeping {
  /** Changes a thread, whatever it is at. Resolves once stored, with the thread. */
  update(key: ThreadKey, change: ThreadChange): Promise<ThreadRecord>;
  /** Makes a thread `to` with the state and the history of `from`, and none of its runs. Resolves once stored. */
  copy(from: ThreadKey, to: ThreadKey): Promise<ThreadRecord>;
  /**
   * Ends the runs of a thread as cancelled ones do, so that their readers and webhooks hear of it, and deletes it with all that
   * belongs to it. A run that is to be admitted meanwhile finds no thread.
   */
  remove(key: ThreadKey): Promise<void>;
  /** Deletes all checkpoints of a thread but the latest of each graph in it. False: it is at work, and nothing is deleted. */
  prune(key: ThreadKey): Promise<boolean>;
  /** Does what the thread's `ttl` says, if its time is up; else sees to it that it is looked at again. */
  expire(key: ThreadKey): Promise<void>;
}

/** What became of a run that was mended; undefined: nothing, it has ended by now or is still to be done. */
export type UnendedRunOutcome = TerminalStatus | "forgotten" | undefined;

/** The only door to the actors: a thread is reached by its id, never by a reference. */
export interface ThreadSystem {
  /**
   * Resolves once stored. @throws ServiceError `thread.exists`, `server.draining`, `storage.unavailable`; with supersteps also
   * as {@link ThreadSystem.update}
   */
  create(key: ThreadKey, draft: ThreadDraft): Promise<ThreadRecord>;
  /** What becomes of threads beside their runs. */
  readonly threads: ThreadKeeping;
  /**
   * Admits a run by the multitask rules, in one turn per thread. Resolves once the run is stored, and with it its thread,
   * where that is to be made. A temporary thread takes no other run than its own: for that it is not there.
   * @throws ServiceError `thread.not_found`, `run.conflict`, `resume.*`, `server.busy`, `server.draining`,
   *   `storage.unavailable`
   */
  admit(key: ThreadKey, draft: RunDraft): Promise<RunRecord>;
  /**
   * Admits runs, each to a thread of its own that is made for it: all of them in one turn or, where one is refused, none: then
   * no node of the others runs, and `refused` says what is thrown. Resolves once all are stored.
   */
  admitAll(
    runs: readonly { readonly key: ThreadKey; readonly draft: RunDraft }[],
    refused: (index: number, cause: unknown) => unknown,
  ): Promise<readonly RunRecord[]>;
  /**
   * Changes the state of a thread that rests: decided in one turn, as an admission is, and stored in one append. The thread
   * then rests `interrupted` where something is left to run, else `idle`. Resolves, once stored, with the checkpoint that was made last.
   * @throws ServiceError `thread.not_found`, `thread.busy`, `thread.no_graph`, `checkpoint.not_found`, what the engine refuses,
   *   `server.draining`, `storage.unavailable`
   */
  update(key: ThreadKey, draft: UpdateDraft): Promise<CheckpointHead>;
  /**
   * Resolves with the run's record once it has ended and that is stored; at once when it has; with undefined when it is
   * unknown or was rolled back. Wakes no actor.
   */
  settled(key: ThreadKey, run: string): Promise<RunRecord | undefined>;
  /** The same, with what the run has left. */
  ended(key: ThreadKey, run: string): Promise<RunEnd>;
  /**
   * Asks for a run's end. Resolves once the wish is stored, or at once when the run has ended. `reason` is kept with it.
   * @throws ServiceError `run.not_found`
   */
  cancel(key: ThreadKey, run: string, action: CancelAction, reason?: string): Promise<void>;
  /**
   * The client wants the run to end with its connection. A stop of the server closes that: then the run does not go on at the
   * next start. A run that has ended is left as it is.
   */
  cancelOnDisconnect(key: ThreadKey, run: string): void;
  /**
   * Forgets a run that has ended, with its events and the checkpoints that it made; where the latest is one of them, the
   * thread stands where it stood before. Resolves once that is stored.
   * @throws ServiceError `run.not_found`, `run.conflict` (it has not ended), `thread.busy` (another is in progress)
   */
  forget(key: ThreadKey, run: string): Promise<void>;
  /** Is an actor executing this run now? Overlays `running` on a record that says `pending`. */
  isRunning(key: ThreadKey, run: string): boolean;
  /** Which run to start this one is, from 1: of its tenant's that wait for a slot, or of its thread's. */
  positionOf(key: ThreadKey, run: string): number | undefined;
  /**
   * Shows the inspector every live actor of the scope, and from then on all that happens to them, until the function that comes
   * back is called. It wakes no actor. While nobody inspects, no actor has a hook.
   */
  inspect(scope: InspectScope, inspector: Inspector): () => void;
  /** The threads whose actors live. */
  readonly live: LiveThreads;
  /** Takes up every run that a stop or a crash left unsettled. Called once, before the doors open. */
  recover(): Promise<void>;
  /** Ends a run that is on no list of what is to be done. Resolves, once that is stored, with what became of it. */
  endUnendedRun(found: UnendedRun): Promise<UnendedRunOutcome>;
  /** No new admission; waits up to `ms` for running supersteps, leaves the rest to recovery. */
  drain(ms: number): Promise<void>;
  readonly counts: { readonly live: number; readonly busy: number };
  /** More of them, for who asks now and then. */
  readonly figures: Figures;
}

export interface SystemDeps {
  readonly journal: Journal;
  readonly engine: Engine;
  readonly host: Host;
  readonly sinks: Sinks;
  /** What nodes keep beyond their thread. */
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly failpoints: Failpoints;
  readonly logger: Logger;
  /** Identifies the machine's boot, see `RunRecord.boot`. */
  readonly boot: string;
  readonly limits: SystemLimits;
}

export interface SystemLimits {
  /** Milliseconds a thread rests before its actor is let go. */
  readonly idle: number;
  /**
   * Idle actors kept at most. One is woken in some 20 us; where thousands rest, each of them is carried over by every garbage
   * collection of its last seconds.
   */
  readonly maxIdle: number;
  /** Milliseconds a temporary thread is kept for readers who have not come to its end, or may come back for it. */
  readonly linger: number;
  /** Milliseconds a cancelled task has to stop by itself. */
  readonly grace: number;
  /** Attempts a run may have. */
  readonly attempts: number;
  /** Milliseconds that a run may take from its first start, where it says nothing itself; Infinity: any. */
  readonly timeout: number;
  /** Runs in progress at once. */
  readonly concurrent: GateLimits;
  /** Runs that may wait, of all threads, and of those of one tenant. */
  readonly maxQueued: number;
  readonly maxQueuedPerTenant: number;
}

export const defaultLimits: SystemLimits = {
  idle: 30_000,
  maxIdle: 128,
  linger: 60_000,
  grace: 500,
  attempts: 3,
  timeout: Infinity,
  concurrent: noLimits,
  maxQueued: 100_000,
  maxQueuedPerTenant: Infinity,
};

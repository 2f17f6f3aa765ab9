import { ServiceError, threadNotFound } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { type ThreadKey, type ThreadRecord, threadStatusOf } from "../model/thread.ts";
import { toIso } from "../model/time.ts";
import type { Journal } from "../ports/journal.ts";
import type { RunLogRegistry } from "../stream/run-log-registry.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import type { RunRequest } from "./run-draft.ts";
import type { Runs } from "./runs.ts";
import type { ThreadStates } from "./thread-states.ts";
import { permittedThread, visibleThread, type Threads } from "./threads.ts";

export interface ProtocolAnswer {
  readonly interrupt: string;
  readonly response: unknown;
}

/** A run request without an assistant: the assistant of the run that was started last is used. */
export type RunRequestWithoutAssistant = Omit<RunRequest, "assistant_id">;

export interface CheckpointListQuery {
  readonly ns: string;
  readonly limit: number;
  /** Only checkpoints older than the checkpoint with this id. */
  readonly before?: string;
}

/** Where the reader that several subscribers of one thread share has to begin, so that each subscriber gets the events that it needs. */
export interface FollowStart {
  /** True if one of the subscribers is new. A new subscriber gets the events of the last few runs from their start. */
  readonly isNew: boolean;
  /** For each of the other subscribers, the number of the last thread event that it has seen. */
  readonly after: readonly number[];
}

/** The operations of the thread-centric protocol (version 2) that the operations on runs and threads do not cover. */
export interface ThreadProtocol {
  /**
   * Starts a run, and creates the thread if it does not exist. If the thread waits for an answer, the run's input is that answer. Throws as
   * {@link Runs.start} does.
   */
  start(key: ThreadKey, request: RunRequest): Promise<RunRecord>;
  /**
   * Answers interrupts of the thread, all in one run.
   * @throws ServiceError `run.not_found` on a thread that never ran, `resume.invalid` if the thread does not wait for these answers,
   * `resume.conflict` if another run answers them; and as {@link Runs.start} does
   */
  respond(
    key: ThreadKey,
    answers: readonly ProtocolAnswer[],
    request: RunRequestWithoutAssistant,
  ): Promise<RunRecord>;
  /**
   * Starts a run from an earlier checkpoint, with the assistant of the last run.
   * @throws ServiceError `run.not_found` on a thread that never ran; and as {@link Runs.start} does
   */
  fork(key: ThreadKey, request: RunRequestWithoutAssistant): Promise<RunRecord>;
  /** The state of the thread, or of a subgraph by its namespace. @throws ServiceError `thread.not_found`, `checkpoint.not_found` */
  state(key: ThreadKey, ns: string, keys: readonly string[] | undefined): Promise<JsonObject>;
  /** The thread's checkpoints, newest first. @throws ServiceError `thread.not_found` */
  checkpoints(key: ThreadKey, query: CheckpointListQuery): Promise<readonly JsonObject[]>;
  /**
   * The root graph of the thread, with the status of the thread's current or last run. @throws ServiceError
   * `thread.not_found`, `run.not_found`
   */
  tree(key: ThreadKey): Promise<JsonObject>;
  /** The number of the last event of the runs that have ended; 0 if no run has ended. Events of a run in progress are not counted. */
  lastEventNumber(key: ThreadKey): Promise<number>;
  /**
   * Reads the events of all runs of a thread, including future runs, each run from its first event. The permission to read the thread is
   * checked when each run begins. The thread may not exist yet. The reader MUST be closed.
   * @throws ServiceError `thread.not_found` for a temporary thread
   */
  follow(key: ThreadKey, start: FollowStart): Promise<ThreadReader>;
}

interface Deps {
  readonly journal: Journal;
  readonly runLogs: RunLogRegistry;
  readonly runs: Pick<Runs, "start">;
  readonly threads: Pick<Threads, "state">;
  readonly states: Pick<ThreadStates, "at">;
}

/**
 * The number of runs whose events a new subscriber gets from the start. They should include a run that paused and the runs that resumed it.
 */
const REPLAYED_RUNS = 4;

export function createThreadProtocol({ journal, runLogs, runs, threads, states }: Deps): ThreadProtocol {
  /** The assistant of the run that was started last. @throws ServiceError `run.not_found` */
  function lastAssistant({ metadata }: ThreadRecord): string {
    const { assistant_id } = metadata;
    if (typeof assistant_id === "string") return assistant_id;
    throw new ServiceError("run.not_found", "No run has been started on this thread");
  }

  return {
    async start(key, request) {
      const thread = request.input == null ? undefined : await permittedThread(journal, key);
      const waits = thread !== undefined && thread.active === null && waitingOf(thread).length > 0;
      const startWithInput = () => runs.start(key, { ...request, if_not_exists: "create" });
      if (!waits) return startWithInput();
      const { input, ...rest } = request;
      try {
        return await runs.start(key, { ...rest, command: { resume: input } });
      } catch (cause) {
        // Another client has answered the interrupt or deleted the thread first, so the input becomes an ordinary input.
        if (!waitsNoMore(cause)) throw cause;
        return startWithInput();
      }
    },

    async respond(key, answers, request) {
      const thread = await visibleThread(journal, key);
      const assistant_id = lastAssistant(thread);
      const waiting = new Set(waitingOf(thread).map(({ id }) => id));
      if (waiting.size === 0) {
        throw new ServiceError("resume.invalid", "The thread does not wait for an answer");
      }
      const unknown = answers.find(({ interrupt }) => !waiting.has(interrupt));
      if (unknown !== undefined) {
        const shown = unknown.interrupt.slice(0, 100);
        throw new ServiceError("resume.invalid", `No interrupt ${shown} waits for an answer`);
      }
      const resume = Object.fromEntries(answers.map(({ interrupt, response }) => [interrupt, response]));
      return runs.start(key, { ...request, assistant_id, command: { ...request.command, resume } });
    },

    async fork(key, request) {
      return runs.start(key, { ...request, assistant_id: lastAssistant(await visibleThread(journal, key)) });
    },

    async state(key, ns, keys) {
      const fields = new Set(["values", "checkpoint_id"]);
      const asked = keys === undefined ? { fields } : { fields, keys };
      const found = ns === "" ? threads.state(key, asked) : states.at(key, { ns, id: null }, asked);
      const { values, checkpoint_id } = await found;
      return { values, ...(checkpoint_id !== null && { checkpoint: { id: checkpoint_id, ns } }) };
    },

    async checkpoints(key, query) {
      await visibleThread(journal, key);
      return (await journal.history(key, query)).map(({ id, created_at, step, source, metadata }) => ({
        id,
        timestamp: toIso(created_at),
        step,
        metadata: { ...metadata, source, step },
      }));
    },

    async tree(key) {
      const thread = await visibleThread(journal, key);
      const { graph_id } = thread.metadata;
      if (typeof graph_id !== "string") lastAssistant(thread);
      return { namespace: [], status: STATUS[threadStatusOf(thread)], graph_name: graph_id };
    },

    async lastEventNumber(key) {
      const thread = await permittedThread(journal, key);
      return thread === undefined ? 0 : thread.next_event - 1;
    },

    async follow(key, { isNew, after }) {
      const thread = await permittedThread(journal, key);
      if (thread?.temporary) throw threadNotFound(key.thread);
      const from = [...after];
      // A thread that the client may not reach is followed like a thread that does not exist yet; the reader then leaves out all its runs.
      if (isNew && thread === undefined) from.push(0);
      else if (isNew) {
        const last = await journal.runs(key, { limit: REPLAYED_RUNS, offset: 0 });
        const begun = last.filter(({ started_at }) => started_at !== null).map(({ seq_base }) => seq_base);
        // Starts after the number of the run's first event, which is also the number of the previous run's end. `followWhole` still reads
        // the run from its first event.
        from.push(begun.length === 0 ? 0 : Math.min(...begun));
      }
      return runLogs.followWhole(key, Math.min(...from));
    },
  };
}

/** The codes of errors from which it follows that a thread no longer waits for an answer. */
const WAITS_NO_MORE: ReadonlySet<string> = new Set(["resume.conflict", "resume.invalid", "thread.not_found"]);

const waitsNoMore = (cause: unknown): boolean =>
  cause instanceof ServiceError && WAITS_NO_MORE.has(cause.code);

const STATUS = { idle: "completed", busy: "running", interrupted: "interrupted", error: "failed" } as const;

const waitingOf = ({ interrupts }: ThreadRecord): readonly Interrupt[] => Object.values(interrupts).flat();

import type { RunDraft, ThreadSystem } from "../../actors/thread-system-interface.ts";
import { ServiceError, threadDeleted, threadNotFound } from "../model/errors.ts";
import { pairedId } from "../model/ids.ts";
import { answersById, isResume } from "../graph/interrupts.ts";
import { contains, type JsonObject } from "../model/json.ts";
import { type Permission, permitsOf } from "../model/permitted-resources.ts";
import { isTerminal, type RunRecord, type RunStatus } from "../model/run.ts";
import type { RunFilter, RunWithoutKwargs } from "../model/run-search.ts";
import type { TemporaryKind, ThreadKey, ThreadLifetime, ThreadRecord } from "../model/thread.ts";
import type { Timer } from "../model/machine-timer.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal, RunsQuery } from "../ports/journal.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { checkpointEventId } from "../stream/find-checkpoint-event.ts";
import type { RunLogRegistry } from "../stream/run-log-registry.ts";
import type { Reader } from "../stream/run-reader.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import type { Assistants } from "./assistants.ts";
import { createRunCancellation, type RunCancellation } from "./run-cancellation.ts";
import { runDraftOf, type RunThread, type RunRequest, type NewRunUser, withRunUser } from "./run-draft.ts";
import { apiRun, apiRunSummary } from "./api-records.ts";
import { type MakeIdempotencyRecord, IdempotencyGuard, type IdempotencyKey } from "./idempotency.ts";
import { runResultOf } from "./run-result.ts";
import { resolveRunStart } from "./start-checkpoint.ts";
import { requireStorableObject } from "./storable-values.ts";
import { permittedThread, visibleThread } from "./threads.ts";
import type { Webhooks } from "./webhooks/webhooks.ts";

interface FollowThreadDeps {
  readonly journal: Journal;
  readonly runLogs: RunLogRegistry;
}

/**
 * Reads the events of a thread's runs. The reader MUST be closed.
 * @param after only events with a higher number in the thread; 0 or less: all stored events; undefined: the events of the current run and
 *   of later runs. If no event has this number yet, the reader starts at the first event
 * @param withEnds true: the reader also reports the end of each run
 * @throws ServiceError `thread.not_found`
 */
async function followThread(
  { journal, runLogs }: FollowThreadDeps,
  key: ThreadKey,
  after?: number,
  withEnds = false,
): Promise<ThreadReader> {
  const { next_event, active } = await visibleThread(journal, key);
  const isKnown = after === undefined || after < next_event || active !== null;
  // The events of the current run have numbers from `next_event` on.
  const from = isKnown ? (after ?? next_event - 1) : 0;
  return runLogs.followThread(key, from, withEnds);
}

export interface RunListQuery {
  readonly limit: number;
  readonly offset: number;
  readonly status?: RunStatus;
  /** The run's metadata must contain all these entries. */
  readonly metadata?: JsonObject;
}

export interface RunList {
  /** Each run is read only when the iterator reaches it: all runs together, with their inputs, may be larger than memory. */
  readonly runs: AsyncIterable<RunRecord>;
  /** The number of matches on all pages. */
  readonly total: number;
}

/** A search of the runs of all threads. */
export interface RunSearchQuery extends RunFilter {
  readonly limit: number;
  readonly cursor?: string;
  /** By creation. Default `desc`. */
  readonly sort_order?: "asc" | "desc";
  /** True: only paused runs: their thread waits, because of the run, for answers or at a breakpoint. False: only other runs. */
  readonly paused?: boolean;
  /** The metadata of the run's thread must contain all these entries. */
  readonly thread_metadata?: JsonObject;
  /** Only runs of threads that this permission allows. */
  readonly permission?: Permission | undefined;
}

export interface RunSearchPage {
  readonly runs: readonly JsonObject[];
  /** For each of the runs, the cursor of a page that begins after this run. */
  readonly cursors: readonly string[];
  /** The cursor of the next page, if there may be one. */
  readonly next: string | undefined;
}

/** Marks a run that processes an event of a state machine. */
export interface MachineEventOrigin {
  /** The timer of the machine that made the event; absent if a client sent the event. */
  readonly timer?: Timer;
}

const withEvent = (draft: RunDraft, { timer }: MachineEventOrigin): RunDraft => ({
  ...draft,
  kwargs: { ...draft.kwargs, event: true, ...(timer && { timer }) },
});

export interface StartOptions {
  /** An idempotency key. If a request with this key has already started a run, that run is returned, and no second run is started. */
  readonly again?: IdempotencyKey | undefined;
  readonly by?: NewRunUser | undefined;
  /** Set for a run that processes an event of a machine. */
  readonly event?: MachineEventOrigin;
}

export interface Runs extends RunCancellation {
  /**
   * Starts a run, or queues it. Resolves when the run is stored. If the graph is a machine that declares schemas, the run is also
   * stored with what they return for its input or its event.
   * @throws ServiceError `validation.failed`, `assistant.not_found`, `graph.not_found`, `graph.invalid`, `value.unstorable`,
   * `thread.not_found`,
   *   `checkpoint.not_found`, `run.conflict`, `resume.*`, `request.*`, `server.busy`, `server.draining`, `storage.unavailable`
   */
  start(key: ThreadKey, request: RunRequest, options?: StartOptions): Promise<RunRecord>;
  /**
   * Starts a run without a thread: a hidden thread is made for the run. The thread is deleted when the run ends, unless the request says to
   * keep it. After a crash the run is resumed, unless `temporary` is `bound` (the run ends with its client's connection). Throws as
   * {@link start} does.
   */
  startAlone(
    tenant: string,
    request: RunRequest,
    temporary: TemporaryKind,
    options?: Omit<StartOptions, "event">,
  ): Promise<RunRecord>;
  /**
   * Starts several runs without a thread: all of them or, if one is refused, none. Throws as {@link start} does; errors name the index of
   * the refused entry.
   */
  startBatch(
    tenant: string,
    requests: readonly RunRequest[],
    by?: readonly NewRunUser[],
  ): Promise<readonly RunRecord[]>;
  /**
   * Finds a run. A run without a thread is no longer found when it has ended, unless its thread is kept. @throws ServiceError
   * `run.not_found`, `thread.not_found`
   */
  find(key: ThreadKey, run: string): Promise<RunRecord>;
  /**
   * Finds a run whose events are to be read. Unlike {@link find}, it also finds a run without a thread that has ended, until the run is
   * deleted. Throws as {@link find} does.
   */
  findForReading(key: ThreadKey, run: string): Promise<RunRecord>;
  /** Calls `read`, which finds a run and begins to read it. A run without a thread stays readable during that time, even if it ends. */
  keepForReading<T>(key: ThreadKey, read: () => Promise<T>): Promise<T>;
  /** The run's record as the API shows it at this moment. */
  show(key: ThreadKey, run: RunRecord): JsonObject;
  /** The thread's runs, newest first. @throws ServiceError `thread.not_found` */
  list(key: ThreadKey, page: RunListQuery): Promise<RunList>;
  /** The runs of all threads, without their arguments. A page costs the same however many pages precede it. */
  search(tenant: string, query: RunSearchQuery): Promise<RunSearchPage>;
  /**
   * Waits for the run's end and resolves with its result, even if the run is rolled back in the meantime.
   * @throws ServiceError `thread.not_found` if the thread is deleted in the meantime
   */
  result(key: ThreadKey, run: RunRecord): Promise<JsonObject>;
  /** The id of the run's last event that shows this checkpoint of the root graph; -1 if the run's events do not contain the checkpoint. */
  lastEventAt(key: ThreadKey, run: RunRecord, checkpoint: string): Promise<number>;
  /** Reads the run's events after `after`; -1: from the start. The reader MUST be closed. */
  follow(key: ThreadKey, run: RunRecord, after: number): Reader;
  /** Reads the events of all runs of a thread, see {@link followThread}. */
  followThread(key: ThreadKey, after: number | undefined, withEnds?: boolean): Promise<ThreadReader>;
}

interface RunsDeps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly engine: Engine;
  readonly runLogs: RunLogRegistry;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly assistants: Assistants;
  readonly webhooks: Webhooks;
  /** The lifetime of threads that runs create; absent: they do not expire. */
  readonly threadTtl?: ThreadLifetime | undefined;
  /** True if the server sets the user in the `configurable` of runs, so that graphs can trust it. Default: false. */
  readonly hasUsers?: boolean;
}

/** The stored size, in bytes, of the runs that a list reads at a time. */
const PAGE_BYTES = 256 * 1024;

export function createRuns(deps: RunsDeps): Runs {
  const { system, journal, catalog, engine, runLogs, newId, assistants, webhooks } = deps;
  const repeats = new IdempotencyGuard(deps);
  const threadTtl = deps.threadTtl ?? null;

  function startedBy(draft: RunDraft, by: NewRunUser | undefined): RunDraft {
    if (by !== undefined) return withRunUser(draft, by.user);
    return deps.hasUsers === true ? withRunUser(draft, null) : draft;
  }

  /** The draft with the arguments that the schemas of its graph's machine return; the unchanged draft if there are no schemas. */
  function parsed(key: ThreadKey, draft: RunDraft, isEvent = false): Eventually<RunDraft> {
    const parsing = engine.parseRun?.(draft, () => startValues(key, draft));
    if (parsing === undefined) return draft;
    const run = parsing.then((kwargs) => ({ ...draft, kwargs }));
    const { command } = draft.kwargs;
    const hasQuestion = !isEvent && command !== null && isResume(command);
    return hasQuestion && answersById(command.resume) === undefined ? ofSameQuestion(key, run) : run;
  }

  /**
   * Waits for a schema to validate an answer that names no interrupt. Such an answer is for the question that is open at the call.
   * @throws ServiceError `resume.conflict` if that question is no longer open after the validation
   */
  async function ofSameQuestion(key: ThreadKey, run: Promise<RunDraft>): Promise<RunDraft> {
    const [question, draft] = await Promise.all([openQuestion(key), run]);
    if (question !== undefined && (await openQuestion(key)) !== question)
      throw new ServiceError(
        "resume.conflict",
        `Interrupt ${question} is answered, or moved past, by another run of the thread`,
      );
    return draft;
  }

  /** The id of the only open interrupt of a thread; undefined if none or several are open. */
  async function openQuestion(key: ThreadKey): Promise<string | undefined> {
    const thread = await journal.thread(key);
    const open = Object.values(thread?.interrupts ?? {}).flat();
    return open.length === 1 ? open[0]?.id : undefined;
  }

  /** The values of the checkpoint from which a run will start; null if there is none. */
  async function startValues(key: ThreadKey, { kwargs }: RunDraft): Promise<JsonObject | null> {
    const { checkpoint_id: named } = kwargs.config.configurable;
    const id = typeof named === "string" ? named : (await journal.thread(key))?.checkpoint;
    const checkpoint = typeof id === "string" ? await journal.checkpoint(key, "", id) : undefined;
    return checkpoint === undefined ? null : journal.sharedValues(key, checkpoint);
  }

  async function findToRead(key: ThreadKey, id: string): Promise<RunRecord> {
    if (key.permits !== undefined && (await permittedThread(journal, key)) === undefined)
      throw threadNotFound(key.thread);
    const run = await journal.sharedRun(key, id);
    if (run !== undefined) return run;
    await visibleThread(journal, key);
    throw new ServiceError("run.not_found", "Run not found");
  }

  async function find(key: ThreadKey, id: string): Promise<RunRecord> {
    const run = await findToRead(key, id);
    if (run.kwargs.temporary && isTerminal(run.status)) throw threadNotFound(key.thread);
    return run;
  }

  function runThreadOf(key: ThreadKey, request: RunRequest): Eventually<RunThread> {
    if (request.if_not_exists !== "create") return visibleThread(journal, key);
    return andThen(journal.thread(key), (stored): Eventually<RunThread> => {
      if (stored !== undefined) return visibleThread(journal, key);
      const metadata = requireStorableObject(request.metadata, "metadata");
      return { thread_id: key.thread, metadata, create: { metadata, ttl: threadTtl } };
    });
  }

  const isRunning = (key: ThreadKey, run: RunRecord) =>
    run.status === "pending" && system.isRunning(key, run.run_id);

  async function* pages(key: ThreadKey, { limit, ...first }: RunsQuery): AsyncGenerator<RunRecord> {
    let left = limit;
    for (let query: Omit<RunsQuery, "limit"> = { ...first, bytes: PAGE_BYTES }; left > 0;) {
      const page = await journal.runs(key, { ...query, limit: left });
      yield* page;
      left -= page.length;
      const last = page.at(-1);
      if (last === undefined) return;
      query = { ...query, offset: 0, before: last.order };
    }
  }

  /** The runs among `ids` that still exist. */
  async function* byId(key: ThreadKey, ids: readonly string[]): AsyncGenerator<RunRecord> {
    for (const id of ids) {
      const run = await journal.run(key, id);
      if (run !== undefined) yield run;
    }
  }

  async function start(
    key: ThreadKey,
    requested: RunRequest,
    { by, event }: StartOptions,
    mark?: MakeIdempotencyRecord,
  ): Promise<RunRecord> {
    const request = webhooks.accept(requested);
    const waiting = journal.waitForCapacity();
    if (waiting !== undefined) await waiting;
    // Avoids `await` on values that are available already: each `await` takes a turn of the microtask queue and 200 bytes.
    const resolved = assistants.resolve(key.tenant, request.assistant_id, by?.mayUse);
    const assistant = resolved instanceof Promise ? await resolved : resolved;
    const id = by === undefined ? newId() : by.run_id;
    const found = runThreadOf(key, request);
    const place = found instanceof Promise ? await found : found;
    const from = resolveRunStart(journal, key, request);
    const made = runDraftOf(id, request, assistant, place, from instanceof Promise ? await from : from);
    const parsing = parsed(key, made, event !== undefined);
    const started = startedBy(parsing instanceof Promise ? await parsing : parsing, by);
    const draft = event === undefined ? started : withEvent(started, event);
    return await system.admit(key, mark === undefined ? draft : { ...draft, once: mark(id) });
  }

  async function startAlone(
    tenant: string,
    request: RunRequest,
    temporary: TemporaryKind,
    { by }: StartOptions,
    mark?: MakeIdempotencyRecord,
  ): Promise<RunRecord> {
    const { key, draft } = await prepareAlone(tenant, request, temporary, by);
    return system.admit(key, mark === undefined ? draft : { ...draft, once: mark(draft.run_id) });
  }

  async function prepareAlone(
    tenant: string,
    requested: RunRequest,
    temporary: TemporaryKind,
    by?: NewRunUser,
  ): Promise<{ readonly key: ThreadKey; readonly draft: RunDraft }> {
    const request = webhooks.accept(requested);
    const waiting = journal.waitForCapacity();
    if (waiting !== undefined) await waiting;
    const assistant = await assistants.resolve(tenant, request.assistant_id, by?.mayUse);
    const id = by === undefined ? newId() : by.run_id;
    const metadata = requireStorableObject(request.metadata, "metadata");
    const keep = request.on_completion === "keep" || request.on_completion === "continue";
    const create = keep ? { metadata, ttl: threadTtl } : { metadata, temporary };
    const place = { thread_id: pairedId(id), metadata, create };
    const key = { tenant, thread: pairedId(id) };
    const from = resolveRunStart(journal, key, request);
    const made = runDraftOf(id, request, assistant, place, from instanceof Promise ? await from : from);
    return { key, draft: startedBy(await parsed(key, made), by) };
  }

  return {
    ...createRunCancellation({ system, journal, find }),

    start: (key, request, options = {}) =>
      options.again === undefined
        ? start(key, request, options)
        : repeats.once(key.tenant, options.again, (mark) => start(key, request, options, mark)),

    startAlone: (tenant, request, temporary, options = {}) =>
      options.again === undefined
        ? startAlone(tenant, request, temporary, options)
        : repeats.once(tenant, options.again, (mark) =>
            startAlone(tenant, request, temporary, options, mark),
          ),

    async startBatch(tenant, requests, by) {
      const prepared: { readonly key: ThreadKey; readonly draft: RunDraft }[] = [];
      for (const [i, request] of requests.entries()) {
        try {
          prepared.push(await prepareAlone(tenant, request, "background", by?.[i]));
        } catch (cause) {
          throw inEntry(i, cause);
        }
      }
      return system.admitAll(prepared, inEntry);
    },

    find,

    findForReading: findToRead,

    async keepForReading(key, read) {
      const release = system.keepTemporary(key);
      try {
        return await read();
      } finally {
        release();
      }
    },

    show: (key, run) => {
      const position = run.status === "pending" ? system.positionOf(key, run.run_id) : undefined;
      return apiRun(run, { isRunning: isRunning(key, run), position });
    },

    async list(key, { limit, offset, ...filter }) {
      const { active, queue, delayed } = await visibleThread(journal, key);
      const { status, metadata } = filter;
      if (status === undefined || isTerminal(status)) {
        const total = await journal.countRuns(key, filter);
        return { runs: pages(key, { ...filter, limit, offset }), total };
      }
      // Finds the unfinished runs in the thread's record. Their stored status does not distinguish running from pending runs.
      const found: { readonly id: string; readonly order: number }[] = [];
      const waiting = [...queue, ...(delayed ?? []).map(({ run }) => run)];
      for (const id of active === null ? waiting : [active, ...waiting]) {
        const run = await journal.run(key, id);
        if (run === undefined || (isRunning(key, run) ? "running" : run.status) !== status) continue;
        if (metadata === undefined || contains(run.metadata, metadata)) found.push({ id, order: run.order });
      }
      found.sort((a, b) => b.order - a.order);
      const ids = found.slice(offset, offset + limit).map(({ id }) => id);
      return { runs: byId(key, ids), total: found.length };
    },

    async search(tenant, { sort_order = "desc", thread_metadata = {}, permission, paused, ...search }) {
      const permits = permitsOf(permission);
      const isInProgress = (run: RunWithoutKwargs) =>
        run.status === "pending" && system.isRunning({ tenant, thread: run.thread_id }, run.run_id);
      const threads = new Map<string, RunPlace>();
      const keep = (run: RunWithoutKwargs, thread: ThreadRecord): boolean => {
        const { metadata } = thread;
        if (search.status === "running" && !isInProgress(run)) return false;
        if (search.status === "pending" && isInProgress(run)) return false;
        if (!contains(metadata, thread_metadata) || permits?.(metadata) === false) return false;
        const place = runPlaceOf(run, thread);
        if (paused !== undefined && (place.pausedAt !== null) !== paused) return false;
        threads.set(run.run_id, place);
        return true;
      };
      const { runs, ...cursors } = await catalog.searchRuns(tenant, { sort_order, keep, ...search });
      const shown: JsonObject[] = [];
      for (const run of runs) {
        const place = threads.get(run.run_id) ?? { isLatest: false, pausedAt: null };
        const canBeResumed = !place.isLatest && (run.status === "error" || run.status === "timeout");
        // oxlint-disable-next-line no-await-in-loop -- one read at a time, as in the search
        const resumedBy = canBeResumed ? await findResumingRun(journal, tenant, run) : null;
        shown.push({
          ...apiRunSummary(run, isInProgress(run)),
          is_latest: place.isLatest,
          paused_at: place.pausedAt,
          resumed_by: resumedBy,
        });
      }
      return { runs: shown, ...cursors };
    },

    // A run that has already ended is not looked up again, because it may be deleted by now.
    result: async (key, run) => {
      if (isTerminal(run.status)) return runResultOf(deps, key, { run });
      const end = await system.ended(key, run.run_id);
      if (end.isThreadDeleted !== undefined && (await end.isThreadDeleted)) throw threadDeleted();
      // `end.run` is undefined after a rollback too. The thread was deleted only if its record is missing.
      if (end.run === undefined && !run.kwargs.temporary && (await journal.thread(key)) === undefined)
        throw threadDeleted();
      return runResultOf(deps, key, end);
    },

    lastEventAt: (key, { run_id }, checkpoint) => checkpointEventId(journal, key, run_id, checkpoint),

    follow: (key, run, after) => runLogs.follow(key, run, { after }),

    followThread: (key, after, withEnds) => followThread(deps, key, after, withEnds),
  };
}

/** The position of a run among the runs of its thread. */
interface RunPlace {
  readonly isLatest: boolean;
  /** What the thread waits for because of this run; null: nothing. */
  readonly pausedAt: "question" | "breakpoint" | null;
}

function runPlaceOf({ order, status }: RunWithoutKwargs, thread: ThreadRecord): RunPlace {
  const isLatest = order === thread.next_run - 1;
  const hasWork = thread.active !== null || thread.queue.length > 0;
  if (!isLatest || hasWork || !isTerminal(status) || thread.rest !== "interrupted")
    return { isLatest, pausedAt: null };
  const hasQuestion = Object.values(thread.interrupts).some(({ length }) => length > 0);
  return { isLatest, pausedAt: hasQuestion ? "question" : "breakpoint" };
}

/**
 * Returns the id of the run that continued the thread after a failed run: the next run, if it was given neither an input nor a command;
 * else null.
 */
async function findResumingRun(
  journal: Journal,
  tenant: string,
  { thread_id, order }: RunWithoutKwargs,
): Promise<string | null> {
  const [next] = await journal.runs(
    { tenant, thread: thread_id },
    { limit: 1, offset: 0, before: order + 2 },
  );
  if (next === undefined || next.order !== order + 1) return null;
  const { input, command } = next.kwargs;
  return input === null && command === null ? next.run_id : null;
}

/** The error of one entry of a batch, with the entry's index. */
function inEntry(i: number, cause: unknown): unknown {
  if (!(cause instanceof ServiceError)) return cause;
  const fields = cause.fields.map(({ at, message }) => ({ at: `[${i}].${at}`, message }));
  return new ServiceError(cause.code, `[${i}]: ${cause.message}`, { cause, fields });
}

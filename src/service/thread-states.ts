import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import { metadataOfUser } from "../model/auth-user.ts";
import type { Checkpoint, PendingTaskWrites } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { contains, type JsonObject } from "../model/json.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import { apiCheckpoint, apiCheckpointMetadata } from "./api-records.ts";
import {
  latestSnapshot,
  stateSnapshot,
  type SnapshotContext,
  type StateProjection,
} from "./state-snapshot.ts";
import { stateWriteOf, type UpdateRequest } from "./state-update-requests.ts";
import { visibleThread, readConsistently } from "./threads.ts";
import type { Interrupt } from "../model/interrupt.ts";

/** A pending interrupt, with the schema of its answer. */
interface PendingInterrupt extends Interrupt {
  /** A JSON Schema; null when none is known. */
  readonly response_schema: JsonObject | null;
}

/** Returns a function that reads the pending interrupts of a thread. */
function pendingInterruptReader(
  journal: Journal,
  engine: Engine,
): (key: ThreadKey) => Promise<readonly PendingInterrupt[]> {
  /** The pending writes at the latest checkpoint of a namespace, by task. */
  async function leftAt(key: ThreadKey, ns: string, root: string | null) {
    const id = ns === "" ? root : (await journal.history(key, { ns, limit: 1 }))[0]?.id;
    const left = id === null || id === undefined ? [] : await journal.writes(key, ns, id);
    return new Map(left.map((writes) => [writes.task, writes]));
  }

  return (key) =>
    readConsistently(journal, key, async (record) => {
      const { interrupts, checkpoint } = record;
      const known = new Map<string, ReadonlyMap<string, PendingTaskWrites>>();
      const questions: PendingInterrupt[] = [];
      for (const asked of Object.values(interrupts).flat()) {
        const ns = asked.ns.slice(0, -1).join("|");
        const task = asked.ns.at(-1)?.split(":").at(-1) ?? "";
        // oxlint-disable-next-line no-await-in-loop -- sequential, so that few writes are in memory together
        const left = known.get(ns) ?? (await leftAt(key, ns, checkpoint));
        known.set(ns, left);
        const schemas = left.get(task)?.schemas;
        const has = schemas !== undefined && Object.hasOwn(schemas, asked.id);
        questions.push({ ...asked, response_schema: has ? (schemas[asked.id] ?? null) : null });
      }
      const [only] = questions;
      // Only a question of the root graph (its namespace has one segment) is a question of the machine itself, which a migration may
      // replace.
      if (only?.ns.length !== 1) return questions;
      const migrated = await migratedQuestion(journal, engine, key, record);
      return migrated === null
        ? questions
        : [{ ...only, value: migrated.value, response_schema: migrated.schema }];
    });
}

/**
 * The question that a thread's machine asks once the next run has migrated it; null if the next run does not migrate a machine, or fails to
 * do so.
 */
async function migratedQuestion(
  journal: Journal,
  engine: Engine,
  key: ThreadKey,
  { checkpoint: id, metadata: { graph_id: graph } }: ThreadRecord,
) {
  if (id === null || typeof graph !== "string" || engine.takesEvents?.(graph) !== true) return null;
  const checkpoint = await journal.checkpoint(key, "", id);
  if (checkpoint === undefined) return null;
  return engine.migratedQuestion?.(graph, await journal.sharedValues(key, checkpoint)) ?? null;
}

/** A checkpoint in a thread's history. */
export interface StatePosition {
  /** `""` for the root graph, else a subgraph's namespace. */
  readonly ns: string;
  /** A checkpoint's id in lower case; null: the latest checkpoint. */
  readonly id: string | null;
}

export interface HistoryRequest extends StatePosition {
  readonly limit: number;
  /** Only states older than this checkpoint. */
  readonly before?: string;
  /** Only states whose metadata contains all these entries. */
  readonly metadata?: JsonObject;
}

export interface ThreadStates {
  /** The state at this position. @throws ServiceError `thread.not_found`, `checkpoint.not_found` */
  at(key: ThreadKey, position: StatePosition, projection: StateProjection): Promise<JsonObject>;
  /**
   * The states of all branches of the history of the root graph or of a subgraph, newest first. Without `before`, the current state of the
   * thread comes first in the history of the root graph, even if it is not the newest. Each state is read only when the iterator reaches
   * it, because all of them together may be larger than memory.
   * @throws ServiceError `thread.not_found`, `checkpoint.not_found`
   */
  history(key: ThreadKey, request: HistoryRequest, projection: StateProjection): AsyncIterable<JsonObject>;
  /**
   * Changes the state at a checkpoint. If the checkpoint is not the latest, the change begins a new branch. Resolves when the change is
   * stored, with the new checkpoint as the API shows it.
   * @param by the identity of the user who changes the state, for the metadata of the new checkpoint
   * @throws ServiceError as {@link ThreadSystem.update} does, and `validation.failed`
   */
  update(key: ThreadKey, position: StatePosition, update: UpdateRequest, by?: string): Promise<JsonObject>;
  /**
   * The pending interrupts with the schemas of their answers. States show the interrupts without schemas.
   * @throws ServiceError `thread.not_found`
   */
  pendingInterrupts(key: ThreadKey): Promise<readonly PendingInterrupt[]>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly engine: Engine;
}

/** The number of checkpoints that are read at a time. */
const CHECKPOINTS_PER_READ = 50;
/** The stored size, in bytes, of the checkpoints that are read at a time. Each may include the writes of its nodes. */
const PAGE_BYTES = 256 * 1024;

export function createThreadStates({ system, journal, engine }: Deps): ThreadStates {
  async function requireCheckpoint(key: ThreadKey, ns: string, id: string): Promise<Checkpoint> {
    const found = await journal.checkpoint(key, ns, id);
    if (found !== undefined) return found;
    throw new ServiceError("checkpoint.not_found", `Checkpoint ${id} not found`);
  }

  async function laterOf(key: ThreadKey, { ns, id }: Checkpoint): Promise<Checkpoint | undefined> {
    const [later] = await journal.history(key, { ns, limit: 1, after: id });
    return later;
  }

  async function one(
    context: SnapshotContext,
    record: ThreadRecord,
    { ns, id }: StatePosition & { id: string },
  ) {
    const checkpoint = await requireCheckpoint(context.key, ns, id);
    const latest = ns === "" && record.checkpoint === id;
    return stateSnapshot(context, checkpoint, latest ? undefined : await laterOf(context.key, checkpoint));
  }

  /**
   * The matching checkpoints, newest first. Each is yielded together with the next newer checkpoint, from
   * which the results of the yielded checkpoint's tasks are read.
   */
  async function* checkpoints(key: ThreadKey, { ns, limit, before, metadata }: HistoryRequest) {
    let older = before;
    let later = before === undefined ? undefined : await journal.checkpoint(key, ns, before);
    let left = limit;
    for (;;) {
      const count = metadata === undefined ? Math.min(left, CHECKPOINTS_PER_READ) : CHECKPOINTS_PER_READ;
      const page = await journal.history(key, {
        ns,
        limit: count,
        bytes: PAGE_BYTES,
        ...(older !== undefined && { before: older }),
      });
      for (const checkpoint of page) {
        if (
          metadata === undefined ||
          contains(apiCheckpointMetadata(key.thread, checkpoint, true), metadata)
        ) {
          yield { checkpoint, later };
          if (--left === 0) return;
        }
        later = checkpoint;
      }
      older = page.at(-1)?.id;
      if (older === undefined) return;
    }
  }

  /**
   * Yields the checkpoints of {@link checkpoints}. On the first page of the root graph's history, the thread's current checkpoint comes
   * first, if it matches. It is not always the newest: after a rollback, for example, the thread has returned to an earlier checkpoint. A
   * later page then shows it again, at its place in the order.
   */
  async function* ownFirst(key: ThreadKey, { checkpoint: own, seq }: ThreadRecord, request: HistoryRequest) {
    const { metadata } = request;
    let left = request.limit;
    let moved: Checkpoint | undefined;
    let isFirst = own !== null && request.ns === "" && request.before === undefined;
    for await (const found of checkpoints(key, request)) {
      if (isFirst && own !== null && found.checkpoint.id !== own) {
        // Uses the current checkpoint only if the thread has not changed since its record was read (`seq` changes with every append).
        if ((await visibleThread(journal, key)).seq === seq) moved = await requireCheckpoint(key, "", own);
        if (
          moved &&
          (metadata === undefined || contains(apiCheckpointMetadata(key.thread, moved, true), metadata))
        ) {
          yield { checkpoint: moved, later: undefined };
          left--;
        }
      }
      isFirst = false;
      if (left === 0) return;
      if (found.checkpoint.id === moved?.id) continue;
      yield found;
      left--;
    }
  }

  /**
   * Reads one state for a listing of states. Returns undefined if a rollback has deleted the state after the
   * listing began.
   * @throws ServiceError `journal.damaged` if the state is missing for another reason
   */
  async function listed(
    context: SnapshotContext,
    record: ThreadRecord,
    { checkpoint, later }: { readonly checkpoint: Checkpoint; readonly later: Checkpoint | undefined },
  ): Promise<JsonObject | undefined> {
    const { key } = context;
    const { ns, id } = checkpoint;
    const isLatest = ns === "" && id === record.checkpoint;
    for (let { seq } = record; ;) {
      try {
        return await stateSnapshot(context, checkpoint, isLatest ? undefined : later);
      } catch (cause) {
        const now = await visibleThread(journal, key);
        // If the thread has not changed, nothing has deleted the missing data, so the storage is damaged.
        if (now.seq === seq) throw cause;
        if ((await journal.checkpoint(key, ns, id)) === undefined) return undefined;
        ({ seq } = now);
      }
    }
  }

  return {
    at: (key, position, projection) =>
      readConsistently(journal, key, async (record) => {
        const context = { engine, journal, key, projection };
        const id = position.id ?? (position.ns === "" ? record.checkpoint : null);
        if (id === null) return latestSnapshot(context, position.ns);
        return one(context, record, { ns: position.ns, id });
      }),

    async *history(key, request, projection) {
      const context = { engine, journal, key, projection };
      const { id, ns } = request;
      if (id !== null) {
        yield await readConsistently(journal, key, (record) => one(context, record, { ns, id }));
        return;
      }
      const record = await visibleThread(journal, key);
      for await (const found of ownFirst(key, record, request)) {
        const state = await listed(context, record, found);
        if (state !== undefined) yield state;
      }
    },

    pendingInterrupts: pendingInterruptReader(journal, engine),

    async update(key, { ns, id }, update, by) {
      const made = await system.update(key, {
        from: id,
        ns,
        supersteps: [[stateWriteOf(update, "")]],
        isLatestRequired: update.require_latest === true,
        ...(by !== undefined && { metadata: metadataOfUser(by) }),
      });
      const checkpoint = apiCheckpoint(key.thread, made.ns, made.id);
      const { checkpoint_map: _, ...configurable } = checkpoint;
      return { checkpoint, configurable, checkpoint_id: made.id };
    },
  };
}

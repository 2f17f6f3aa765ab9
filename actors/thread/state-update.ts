import type { CheckpointHead, NewCheckpoint, TaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError, threadNotFound } from "../../src/model/errors.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import type { Engine, Position, Source } from "../../src/ports/engine.ts";
import type { StateUpdate } from "../../src/ports/state-update.ts";
import type { SystemDeps, UpdateDraft } from "../thread-system.ts";
import { questionsAfter, withoutQuestions } from "./parent-interrupts.ts";
import { gone, type Cell } from "./live-thread.ts";
import { situationOf } from "./thread-chart.ts";

/** The result of supersteps. */
interface Updated {
  readonly checkpoints: readonly NewCheckpoint[];
  readonly position: Position;
  /** The last checkpoint. */
  readonly head: NewCheckpoint;
}

/**
 * The graph of a thread's state, and the metadata of checkpoints made by updates. @throws ServiceError
 * `thread.no_graph`
 */
function updateOf({ thread_id, metadata }: ThreadRecord, ns: string): Omit<StateUpdate, "writes" | "latest"> {
  const { graph_id: graph, assistant_id } = metadata;
  if (typeof graph !== "string") {
    throw new ServiceError("thread.no_graph", `Thread ${thread_id} has no graph ID`);
  }
  const assistant = typeof assistant_id === "string" ? { assistant_id } : {};
  return { graph, ns, metadata: { created_by: "user", thread_id, graph_id: graph, ...assistant } };
}

/** Computes supersteps, each from the result of the one before. Throws as the engine does. */
async function compute(
  engine: Engine,
  source: Source,
  update: Omit<StateUpdate, "writes">,
  supersteps: UpdateDraft["supersteps"],
  from: Position,
): Promise<Updated> {
  const checkpoints: NewCheckpoint[] = [];
  let position = from;
  for (const [index, writes] of supersteps.entries()) {
    const latest = update.latest || index > 0;
    // oxlint-disable-next-line no-await-in-loop -- each starts from the one before
    const { checkpoint, values } = await engine.update({ ...update, latest, writes }, position, source);
    checkpoints.push(checkpoint);
    position = { head: checkpoint, values, writes: [] };
  }
  const head = checkpoints.at(-1);
  if (head === undefined) throw new TypeError("An update has at least one superstep");
  return { checkpoints, position, head };
}

/** The thread's record after an update of its root state. */
function rested(thread: ThreadRecord, { next, id, created_at }: CheckpointHead) {
  const rest = next.length > 0 ? ("interrupted" as const) : ("idle" as const);
  return { ...thread, rest, error: null, interrupts: {}, checkpoint: id, state_updated_at: created_at };
}

/** The record and checkpoints of a thread that is created with a state. */
export async function madeWith(
  { engine }: Pick<SystemDeps, "engine">,
  source: Source,
  thread: ThreadRecord,
  supersteps: UpdateDraft["supersteps"],
): Promise<{ readonly thread: ThreadRecord; readonly checkpoints: readonly NewCheckpoint[] }> {
  const update = { ...updateOf(thread, ""), latest: true };
  const nothing = { head: null, values: {}, writes: [] };
  const { checkpoints, head } = await compute(engine, source, update, supersteps, nothing);
  return { thread: rested(thread, head), checkpoints };
}

/**
 * Changes the state of an idle thread. The new state is computed first. Then, in one turn, it is sent to the thread's
 * actor and written, if nothing else was stored meanwhile; else it is computed again.
 */
export async function update(cell: Cell, draft: UpdateDraft): Promise<CheckpointHead> {
  if (cell.record.temporary !== null) throw threadNotFound(cell.key.thread);
  for (;;) {
    const { seq } = cell.record;
    mustRest(cell);
    const of = { ...updateOf(cell.record, draft.ns), latest: draft.from === null };
    let from: Position;
    let above: readonly TaskWrites[];
    let updated: Updated;
    try {
      // oxlint-disable no-await-in-loop -- a thread that has moved on is looked at anew
      from = await positionOf(cell, draft);
      above = draft.ns === "" ? [] : await withoutQuestions(cell, draft.ns);
      updated = await compute(cell.deps.engine, cell.source(), of, draft.supersteps, from);
      // oxlint-enable no-await-in-loop
    } catch (cause) {
      // The data that was read may have been deleted meanwhile.
      if (cell.alive && cell.record.seq !== seq) continue;
      throw cause;
    }
    mustRest(cell);
    if (cell.record.seq !== seq) continue;
    return draft.ns === "" ? store(cell, updated) : storeWithin(cell, updated, above);
  }
}

function mustRest({ actor, alive }: Cell): void {
  if (actor === undefined || !alive) throw gone();
  if (situationOf(actor.getSnapshot().value) !== "resting") {
    throw new ServiceError(
      "thread.busy",
      "Thread is busy: it has a run in progress; wait for its end, or cancel it",
    );
  }
}

async function positionOf(cell: Cell, { from, ns }: UpdateDraft): Promise<Position> {
  if (ns === "" && (from === null || from === cell.record.checkpoint)) return cell.position();
  await cell.tail;
  const latest = ns === "" ? undefined : (await cell.deps.journal.history(cell.key, { ns, limit: 1 }))[0]?.id;
  if (latest !== undefined) cell.saw(latest);
  const id = from ?? latest;
  const position = id === undefined ? undefined : await cell.at(id, ns);
  if (id === undefined || position === undefined) {
    const what = id === undefined ? "No state" : `Checkpoint ${id} not found`;
    throw new ServiceError("checkpoint.not_found", ns === "" ? what : `${what} in namespace "${ns}"`);
  }
  cell.saw(id);
  return position;
}

async function store(cell: Cell, { checkpoints, position, head }: Updated): Promise<CheckpointHead> {
  const change = { kind: "updated", durable: true, checkpoints };
  const stored = cell.write(change, (thread) => rested(thread, head));
  // Cached at once: a run that is admitted before the update is stored starts from it, and is stored after it.
  cell.keep(position.head, position.values, position.writes);
  cell.actor?.send({ type: "STATE.UPDATED", rest: head.next.length > 0 ? "interrupted" : "idle" });
  cell.owner.rested(cell);
  await stored;
  return head;
}

/** Stores an update of a subgraph's state: the thread's status stays, and its next run finds the subgraph there. */
async function storeWithin(
  cell: Cell,
  { checkpoints, head }: Updated,
  above: readonly TaskWrites[],
): Promise<CheckpointHead> {
  const stored = cell.write({ kind: "updated", durable: true, checkpoints, writes: above }, (thread) => ({
    ...thread,
    interrupts: questionsAfter(thread.interrupts, above),
    state_updated_at: head.created_at,
  }));
  cell.left(above);
  cell.owner.rested(cell);
  await stored;
  return head;
}

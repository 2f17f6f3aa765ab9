import type { CheckpointHead, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { ServiceError, threadNotFound } from "../../src/model/errors.ts";
import { memorySizeOf } from "../../src/model/memory-size.ts";
import type { ThreadRecord } from "../../src/model/thread.ts";
import { timersAtCheckpoint } from "../../src/model/machine-timer.ts";
import type { Engine, CheckpointWithState, ExecutionServices } from "../../src/ports/engine.ts";
import type { StateUpdate } from "../../src/ports/state-update.ts";
import type { SystemDeps, UpdateDraft } from "../thread-system-interface.ts";
import { interruptsAfter, writesWithoutInterrupts } from "./subgraph-interrupt-removal.ts";
import { threadUnavailable, type LiveThread } from "./live-thread.ts";
import { threadSituationOf } from "./thread-chart.ts";

interface Updated {
  readonly checkpoints: readonly NewCheckpoint[];
  readonly position: CheckpointWithState;
  readonly head: NewCheckpoint;
}

/**
 * The graph that a thread's state belongs to, and the metadata of checkpoints that updates make.
 * @throws ServiceError `thread.no_graph`
 */
function updateOf({ thread_id, metadata }: ThreadRecord, ns: string): Omit<StateUpdate, "writes" | "latest"> {
  const { graph_id: graph, assistant_id } = metadata;
  if (typeof graph !== "string") {
    throw new ServiceError("thread.no_graph", `Thread ${thread_id} has no graph ID`);
  }
  const assistant = typeof assistant_id === "string" ? { assistant_id } : {};
  return { graph, ns, metadata: { created_by: "user", thread_id, graph_id: graph, ...assistant } };
}

/** Computes supersteps, each from the result of the one before. Throws the errors of the engine. */
async function compute(
  engine: Engine,
  source: ExecutionServices,
  updateThreadState: Omit<StateUpdate, "writes">,
  supersteps: UpdateDraft["supersteps"],
  from: CheckpointWithState,
): Promise<Updated> {
  const checkpoints: NewCheckpoint[] = [];
  let position = from;
  for (const [index, writes] of supersteps.entries()) {
    const latest = updateThreadState.latest || index > 0;
    // oxlint-disable-next-line no-await-in-loop -- each superstep starts from the result of the one before
    const { checkpoint, values } = await engine.update(
      { ...updateThreadState, latest, writes },
      position,
      source,
    );
    checkpoints.push(checkpoint);
    position = { head: checkpoint, values, writes: [] };
  }
  const head = checkpoints.at(-1);
  if (head === undefined) throw new TypeError("An update has at least one superstep");
  return { checkpoints, position, head };
}

/** The thread's record after an update of the root graph's state. */
function rested(thread: ThreadRecord, head: CheckpointHead) {
  const { next, id, created_at } = head;
  const rest = next.length > 0 ? ("interrupted" as const) : ("idle" as const);
  const timers = timersAtCheckpoint(head, thread.timers);
  return {
    ...thread,
    rest,
    error: null,
    interrupts: {},
    checkpoint: id,
    timers,
    state_updated_at: created_at,
  };
}

/** The record and checkpoints of a thread that is created with a state. */
export async function buildThreadWithState(
  { engine }: Pick<SystemDeps, "engine">,
  source: ExecutionServices,
  thread: ThreadRecord,
  supersteps: UpdateDraft["supersteps"],
): Promise<{ readonly thread: ThreadRecord; readonly checkpoints: readonly NewCheckpoint[] }> {
  const update = { ...updateOf(thread, ""), latest: true };
  const nothing = { head: null, values: {}, writes: [] };
  const { checkpoints, head, position } = await compute(engine, source, update, supersteps, nothing);
  const state_bytes = memorySizeOf(position, Infinity);
  return { thread: { ...rested(thread, head), state_bytes }, checkpoints };
}

/**
 * Changes the state of an idle thread. If nothing else was stored while the new state was computed, the state is written and the thread's
 * actor is notified, in one turn of the event loop. Otherwise the state is computed again.
 */
export async function updateThreadState(liveThread: LiveThread, draft: UpdateDraft): Promise<CheckpointHead> {
  if (liveThread.record.temporary !== null) throw threadNotFound(liveThread.key.thread);
  for (;;) {
    const { seq } = liveThread.record;
    assertIdle(liveThread);
    const { metadata, ...graph } = updateOf(liveThread.record, draft.ns);
    const of = { ...graph, metadata: { ...metadata, ...draft.metadata }, latest: draft.from === null };
    let from: CheckpointWithState;
    let above: readonly PendingTaskWrites[];
    let updated: Updated;
    try {
      // oxlint-disable no-await-in-loop -- the update is computed again only if the thread has changed meanwhile
      from = await positionOf(liveThread, draft);
      above = draft.ns === "" ? [] : await writesWithoutInterrupts(liveThread, draft.ns);
      updated = await compute(liveThread.deps.engine, liveThread.source(), of, draft.supersteps, from);
      // oxlint-enable no-await-in-loop
    } catch (cause) {
      // The error may come from data that was deleted during the read. If the thread has changed, everything is read again.
      if (liveThread.alive && liveThread.record.seq !== seq) continue;
      throw cause;
    }
    assertIdle(liveThread);
    if (liveThread.record.seq !== seq) continue;
    return draft.ns === "" ? store(liveThread, updated) : storeWithin(liveThread, updated, above);
  }
}

function assertIdle({ actor, alive }: LiveThread): void {
  if (actor === undefined || !alive) throw threadUnavailable();
  if (threadSituationOf(actor.getSnapshot().value) !== "resting") {
    throw new ServiceError(
      "thread.busy",
      "Thread is busy: it has a run in progress; wait for its end, or cancel it",
    );
  }
}

/**
 * Refuses an update that has to start from the latest checkpoint, but names another checkpoint.
 * @throws ServiceError `checkpoint.outdated`
 */
function assertLatest({ from, isLatestRequired }: UpdateDraft, latest: string | null | undefined): void {
  if (isLatestRequired !== true || from === null || from === latest) return;
  throw new ServiceError(
    "checkpoint.outdated",
    `Checkpoint ${from} is not the latest state: the thread has changed since it was read`,
  );
}

async function positionOf(liveThread: LiveThread, draft: UpdateDraft): Promise<CheckpointWithState> {
  const { from, ns } = draft;
  if (ns === "") assertLatest(draft, liveThread.record.checkpoint);
  if (ns === "" && (from === null || from === liveThread.record.checkpoint)) return liveThread.position();
  await liveThread.lastWrite;
  const latest =
    ns === "" ? undefined : (await liveThread.deps.journal.history(liveThread.key, { ns, limit: 1 }))[0]?.id;
  if (ns !== "") assertLatest(draft, latest);
  if (latest !== undefined) liveThread.noteCheckpointId(latest);
  const id = from ?? latest;
  const position = id === undefined ? undefined : await liveThread.positionAt(id, ns);
  if (id === undefined || position === undefined) {
    const what = id === undefined ? "No state" : `Checkpoint ${id} not found`;
    throw new ServiceError("checkpoint.not_found", ns === "" ? what : `${what} in namespace "${ns}"`);
  }
  liveThread.noteCheckpointId(id);
  return position;
}

async function store(
  liveThread: LiveThread,
  { checkpoints, position, head }: Updated,
): Promise<CheckpointHead> {
  const { stateSize } = liveThread;
  for (const { changes } of checkpoints) stateSize.grow(memorySizeOf(changes, Infinity));
  if (stateSize.isOutdated) stateSize.measured(memorySizeOf(position, Infinity));
  const change = { kind: "updated", durable: true, checkpoints };
  const stored = liveThread.write(change, (thread) => rested(thread, head));
  // The position is cached before the update is stored, so that a run that is admitted in the meantime starts from the update. Appends are
  // stored in order, so the run is never stored without the update.
  liveThread.cachePosition(position.head, position.values, position.writes);
  liveThread.actor?.send({ type: "STATE.UPDATED", rest: head.next.length > 0 ? "interrupted" : "idle" });
  liveThread.owner.activityChanged(liveThread);
  await stored;
  return head;
}

/** Stores an update of a subgraph's state. The thread keeps its status; its next run continues the subgraph from the update. */
async function storeWithin(
  liveThread: LiveThread,
  { checkpoints, head }: Updated,
  above: readonly PendingTaskWrites[],
): Promise<CheckpointHead> {
  // Only the size of the changes is added to the estimate. The whole state is measured by the next run, because the states of the thread's other
  // graphs are not in memory here.
  for (const { changes } of checkpoints) liveThread.stateSize.grow(memorySizeOf(changes, Infinity));
  const stored = liveThread.write(
    { kind: "updated", durable: true, checkpoints, writes: above },
    (thread) => ({
      ...thread,
      interrupts: interruptsAfter(thread.interrupts, above),
      state_updated_at: head.created_at,
    }),
  );
  liveThread.updateCachedWrites(above);
  liveThread.owner.activityChanged(liveThread);
  await stored;
  return head;
}

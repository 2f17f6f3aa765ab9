import type { ChannelRef } from "../model/checkpoint.ts";
import { awaitValue, type Steps } from "../ports/eventually.ts";
import type { AppendDraft } from "./append-draft.ts";
import { damagedError } from "./checksum-envelope.ts";
import {
  checkpointKey,
  journalEntryKey,
  kwargsKey,
  startedDelayedRunKey,
  runOrderKey,
  runKey,
  listSpanPrefix,
  deletionMarkKey,
  channelValueKey,
  addedStepResultsKey,
  pendingWritesMarkKey,
  taskWritesKey,
} from "./keys.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import {
  checkpointRowConverter,
  PRESENT_MARK,
  runRowConverter,
  type JournalEntry,
  type StoredCheckpoint,
} from "./stored-records.ts";
import { runIndexKeys } from "./run-index.ts";
import { unpackRefs } from "./channel-ref-codec.ts";

/**
 * Deletes runs: their records, their checkpoints, and the values that only these checkpoints refer to. The journal lists what was written
 * since the runs were admitted, so the cost does not depend on the size of the whole thread. {@link MarkedDeletions} deletes the events of
 * the runs later, because there may be many of them.
 */
export function* removeRuns(draft: AppendDraft, runs: readonly string[]): Steps<void> {
  const { prefix, key } = draft.head;
  const gone = new Set<string>();
  let from = Number.POSITIVE_INFINITY;
  for (const run of runs) {
    const row = yield* awaitValue(draft.read(runKey(prefix, run), `run ${run}`));
    if (row === undefined) continue;
    const stored = runRowConverter.record(row);
    const order = runOrderKey(prefix, stored.order, run);
    const first = yield* awaitValue(draft.read(order, `the place of run ${run}`));
    if (typeof first !== "number") throw damagedError(key, `the place of run ${run} is missing`);
    from = Math.min(from, first);
    gone.add(run);
    draft.del(order);
    draft.del(runKey(prefix, run));
    draft.del(kwargsKey(prefix, run));
    if (draft.head.thread?.temporary === null) {
      for (const at of runIndexKeys(key, stored)) draft.del(at);
    }
    if (stored.due !== null && stored.seq_base > 0)
      draft.del(startedDelayedRunKey(prefix, stored.seq_base, run));
    draft.putSealed(deletionMarkKey(key, run), PRESENT_MARK);
  }
  if (gone.size > 0) yield* removeCheckpoints(draft, gone, from);
}

function* removeCheckpoints(draft: AppendDraft, runs: ReadonlySet<string>, from: number): Steps<void> {
  const { prefix } = draft.head;
  const { checkpoints, writes } = yield* readJournal(draft, from);
  const gone: StoredCheckpoint[] = [];
  const kept: StoredCheckpoint[] = [];
  for (const made of checkpoints) (made.run_id !== null && runs.has(made.run_id) ? gone : kept).push(made);
  // All values are found before anything is deleted: finding them needs the parents of the checkpoints, which may be deleted too.
  const written: Value[] = [];
  for (const made of gone) written.push(...(yield* writtenBy(draft, made)));
  for (const value of written) {
    if (!kept.some((made) => holds(made, value))) draft.del(value.key);
  }
  reparent(draft, gone, kept);
  for (const { ns, id } of gone) {
    draft.del(checkpointKey(prefix, ns, id));
    draft.del(pendingWritesMarkKey(prefix, ns, id));
    for (const at of writes.get(checkpointName(ns, id)) ?? []) draft.del(at);
  }
}

/** Gives the remaining checkpoints whose parent is deleted their nearest remaining ancestor as their parent. */
function reparent(
  draft: AppendDraft,
  gone: readonly StoredCheckpoint[],
  kept: readonly StoredCheckpoint[],
): void {
  const parents = new Map(gone.map(({ ns, id, parent }) => [checkpointName(ns, id), parent]));
  for (const made of kept) {
    let { parent } = made;
    while (parent !== null) {
      const above = parents.get(checkpointName(made.ns, parent));
      if (above === undefined) break;
      parent = above;
    }
    if (parent === made.parent) continue;
    const { prefix } = draft.head;
    draft.put(checkpointKey(prefix, made.ns, made.id), checkpointRowConverter.row({ ...made, parent }));
  }
}

const checkpointName = (ns: string, checkpoint: string): string => `${checkpoint} ${ns}`;

interface Since {
  /** The checkpoints that the read journal entries list and that still exist. */
  readonly checkpoints: readonly StoredCheckpoint[];
  /** The keys of pending writes of tasks, by checkpoint. */
  readonly writes: ReadonlyMap<string, ReadonlySet<string>>;
}

function* readJournal(draft: AppendDraft, from: number): Steps<Since> {
  const { head } = draft;
  const checkpoints: StoredCheckpoint[] = [];
  const writes = new Map<string, Set<string>>();
  const note = (ns: string, checkpoint: string, at: string) => {
    const name = checkpointName(ns, checkpoint);
    const known = writes.get(name);
    if (known === undefined) writes.set(name, new Set([at]));
    else known.add(at);
  };
  for (let seq = from; seq <= head.seq; seq++) {
    const found = yield* awaitValue(draft.read(journalEntryKey(head.prefix, seq), `append ${seq}`));
    if (found === undefined) throw damagedError(head.key, `append ${seq} is missing`);
    const entry = found as JournalEntry;
    for (const [ns, id] of entry.checkpoints ?? []) {
      const made = yield* readStored(draft, ns, id);
      if (made !== undefined) checkpoints.push(made);
    }
    for (const [ns, checkpoint, task] of entry.writes ?? [])
      note(ns, checkpoint, taskWritesKey(head.prefix, ns, checkpoint, task));
    for (const [ns, checkpoint, task] of entry.steps ?? [])
      note(ns, checkpoint, addedStepResultsKey(head.prefix, ns, checkpoint, task, seq));
  }
  return { checkpoints, writes };
}

function* readStored(draft: AppendDraft, ns: string, id: string): Steps<StoredCheckpoint | undefined> {
  const row = yield* awaitValue(draft.read(checkpointKey(draft.head.prefix, ns, id), `checkpoint ${id}`));
  return row === undefined ? undefined : checkpointRowConverter.record(row);
}

/** A stored value: a whole value (`start` is null), or the segment of a list that begins at index `start`. */
interface Value {
  readonly key: string;
  readonly ns: string;
  readonly channel: string;
  readonly at: number;
  readonly start: number | null;
}

/** The values that a checkpoint wrote: the values to which its parent does not refer. */
function* writtenBy(draft: AppendDraft, made: StoredCheckpoint): Steps<Value[]> {
  const { prefix } = draft.head;
  const { ns } = made;
  const own = made.changes.at;
  const parent = made.parent === null ? undefined : yield* readStored(draft, ns, made.parent);
  const before = unpackRefs(parent?.changes.channels ?? {});
  const values: Value[] = [];
  for (const [channel, ref] of Object.entries(unpackRefs(made.changes.channels))) {
    if (ref.kind === "small") continue;
    if (ref.kind === "whole") {
      if (ref.at !== own) continue;
      values.push({ key: channelValueKey(prefix, ns, channel, own), ns, channel, at: own, start: null });
    } else {
      const start = writtenFrom(ref, before[channel], own);
      const last = ref.spans.at(-1);
      if (start === undefined || last === undefined) continue;
      const key = listSpanPrefix(prefix, ns, channel, last.at) + encodeOrdinal(start);
      values.push({ key, ns, channel, at: last.at, start });
    }
  }
  return values;
}

/**
 * The index in the list of the first item that a checkpoint added; undefined if it added none. The added items are one segment (stored
 * under one key). It is in a new span (a series of segments), or in the last span of the parent's list.
 */
function writtenFrom(
  { spans }: Extract<ChannelRef, { kind: "list" }>,
  before: ChannelRef | undefined,
  own: number,
): number | undefined {
  const last = spans.at(-1);
  if (last === undefined) return undefined;
  const begin = spans.at(-2)?.end ?? 0;
  if (last.at === own) return last.end > begin ? begin : undefined;
  const end = before?.kind === "list" ? before.spans.at(-1)?.end : undefined;
  return end !== undefined && last.end > end ? end : undefined;
}

function holds(checkpoint: StoredCheckpoint, { ns, channel, at, start }: Value): boolean {
  if (checkpoint.ns !== ns) return false;
  const ref = unpackRefs(checkpoint.changes.channels)[channel];
  if (ref === undefined || ref.kind === "small") return false;
  if (ref.kind === "whole") return start === null && ref.at === at;
  if (start === null) return false;
  const span = ref.spans.find((candidate) => candidate.at === at);
  return span !== undefined && span.end > start;
}

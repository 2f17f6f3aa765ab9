import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import {
  emptyWrites,
  type ChannelChange,
  type NewCheckpoint,
  type PendingTaskWrites,
} from "../model/checkpoint.ts";
import { toPlainError, type PlainError } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { CheckpointWithState } from "../ports/engine.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import type { SaverCheckpoint } from "./saver-inputs.ts";
import { deserialise, deserialiseMembers } from "./deserialisation.ts";
import { isEqualData } from "./serialisation.ts";

/** LangGraph's data of a checkpoint, without the state. It is stored as `lg` in the field `engine` of the checkpoint. */
export interface LangGraphCheckpointData {
  /** LangGraph's id of the checkpoint; absent if the checkpoint is stored under this id. */
  readonly id?: string;
  readonly v: number;
  readonly ts: string;
  readonly versions: ChannelVersions;
  readonly seen: Checkpoint["versions_seen"];
  /** The values of channels that the visible state does not contain, or contains with a different value. */
  readonly channels: JsonObject;
}

export type CheckpointRecord = Pick<
  NewCheckpoint,
  "id" | "parent" | "ns" | "step" | "source" | "engine" | "changes" | "created_at" | "metadata"
>;

/** The data of the parent checkpoint, against which the changes of a new checkpoint are computed. */
export interface ParentCheckpointData {
  /** The state at the parent checkpoint, without the keys that are hidden from clients. */
  readonly shown: JsonObject;
  /** {@link LangGraphCheckpointData.channels} of the parent checkpoint. */
  readonly channels?: JsonObject;
}

/**
 * Converts a checkpoint to its stored form. Only the changes of the state against the parent are stored; for a list, the items from the
 * first item that differs. The values of LangGraph's own channels are stored completely, in `engine`.
 * @param shown the state at the checkpoint without the keys that are hidden from clients, each value as `serialise` returns it
 */
export function toCheckpointRecord(
  raw: SaverCheckpoint,
  shown: JsonObject,
  before: ParentCheckpointData | null,
): CheckpointRecord {
  const { values, newVersions, ts } = raw;
  const channels: Record<string, unknown> = {};
  for (const channel of Object.keys(values)) {
    const now = values[channel];
    if (Object.hasOwn(shown, channel) && isEqualData(shown[channel], now)) continue;
    const isNew = Object.hasOwn(newVersions, channel);
    if (!isNew && before?.channels !== undefined && !Object.hasOwn(before.channels, channel)) continue;
    channels[channel] = now;
  }
  return {
    id: raw.id,
    parent: raw.parent,
    ns: raw.ns,
    step: raw.step,
    source: raw.source,
    created_at: Date.parse(ts),
    metadata: raw.metadata,
    engine: { lg: newLangGraphData(raw, channels) },
    changes: changesOf(shown, before?.shown ?? {}),
  };
}

/** Creates LangGraph's data that is stored with a checkpoint. `channels`: see {@link LangGraphCheckpointData.channels}. */
export function newLangGraphData(
  { id, langGraphId: own, v, ts, versions, seen }: SaverCheckpoint,
  channels: JsonObject,
): LangGraphCheckpointData {
  return own === id ? { v, ts, versions, seen, channels } : { id: own, v, ts, versions, seen, channels };
}

function changesOf(now: JsonObject, before: JsonObject): NewCheckpoint["changes"] {
  const changes: Record<string, ChannelChange> = {};
  for (const [channel, value] of Object.entries(now)) {
    const known = Object.hasOwn(before, channel) ? before[channel] : undefined;
    if (value === known) continue;
    if (!Array.isArray(value) || !Array.isArray(known)) changes[channel] = { kind: "set", value };
    else {
      const keep = samePrefix(known, value);
      if (keep === value.length && keep === known.length) continue;
      changes[channel] = { kind: "append", keep, items: value.slice(keep) };
    }
  }
  for (const channel of Object.keys(before)) {
    if (!Object.hasOwn(now, channel)) changes[channel] = { kind: "clear" };
  }
  return changes;
}

/** The number of equal items at the start of two lists. */
function samePrefix(before: readonly unknown[], now: readonly unknown[]): number {
  const most = Math.min(before.length, now.length);
  let keep = 0;
  while (keep < most && isEqualData(before[keep], now[keep])) keep++;
  return keep;
}

/** LangGraph's data of a stored checkpoint; undefined if another engine has made the checkpoint. */
export function storedLangGraphData(engine: JsonObject | null): LangGraphCheckpointData | undefined {
  const part = engine?.["lg"];
  return isObject(part) ? (part as unknown as LangGraphCheckpointData) : undefined;
}

/**
 * Converts a stored checkpoint to the form in which LangGraph reads it. The result is a copy, so nodes that modify it do not modify what is
 * stored. If another engine has made the checkpoint, each channel gets version 1.
 */
export function checkpointTupleOf(
  library: LangGraphLibrary,
  thread: string,
  position: CheckpointWithState,
): CheckpointTuple {
  const { head, values, writes } = position;
  if (head === null) throw new TypeError("There is no checkpoint here");
  const part = storedLangGraphData(head.engine);
  const { id, ns, parent, source, step } = head;
  const at = (checkpoint: string) => ({
    configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: checkpoint },
  });
  const versions = part?.versions ?? Object.fromEntries(Object.keys(values).map((channel) => [channel, 1]));
  return {
    config: at(id),
    checkpoint: {
      v: part?.v ?? 4,
      id: part?.id ?? id,
      ts: part?.ts ?? new Date(head.created_at).toISOString(),
      channel_values: {
        ...deserialiseMembers(library, values),
        ...deserialiseMembers(library, part?.channels ?? {}),
      },
      channel_versions: { ...versions },
      versions_seen: deserialiseMembers(
        library,
        (part?.seen ?? {}) as JsonObject,
      ) as Checkpoint["versions_seen"],
    },
    metadata: { source, step, ...deserialiseMembers(library, head.metadata) } as CheckpointMetadata,
    pendingWrites: writes.flatMap((left) => pendingOf(library, left)),
    ...(parent !== null && { parentConfig: at(parent) }),
  };
}

// --- pending writes ---

/** Channels for which a task has at most one write. A later write replaces an earlier one. */
const SPECIAL_CHANNELS: ReadonlySet<string> = new Set([
  "__error__",
  "__scheduled__",
  "__interrupt__",
  "__resume__",
]);

/**
 * A stored write of a task. `place`: the index of the write among all writes of the task, if it differs from its index in the stored list.
 */
type StoredWrite = readonly [channel: string, value: unknown, place?: number];

interface TaskSite {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  readonly name: string;
}

/**
 * Adds writes to the pending writes of a task. Writes to {@link SPECIAL_CHANNELS} (interrupts, answers, an error) are stored in `steps.lg`,
 * where a later write replaces an earlier one, and in the fields that the API reads. Other writes are stored in `result.goto`, in order; of
 * two writes with the same index, the first is kept.
 * @param writes each value as `serialise` returns it
 */
export function addWrites(
  site: TaskSite,
  writes: readonly (readonly [channel: string, value: unknown])[],
  before: PendingTaskWrites = emptyWrites(site),
): PendingTaskWrites {
  const special: Record<string, unknown> = { ...specialOf(before) };
  const stored: StoredWrite[] = [...storedOf(before)];
  const taken = stored.length === 0 ? null : new Set(stored.map(([, , place], i) => place ?? i));
  let finished = before.result !== undefined;
  for (const [i, [channel, value]] of writes.entries()) {
    if (SPECIAL_CHANNELS.has(channel)) special[channel] = channel === "__error__" ? asKept(value) : value;
    else {
      finished = true;
      if (taken?.has(i) === true) continue;
      stored.push(stored.length === i ? [channel, value] : [channel, value, i]);
    }
  }
  const { ns, checkpoint, task, name } = site;
  const resumes = special["__resume__"];
  const asked = interruptsOf(special["__interrupt__"], site);
  const left = {
    ns,
    checkpoint,
    task,
    name,
    interrupts: finished ? [] : asked,
    resumes: Array.isArray(resumes) ? resumes : resumes === undefined ? [] : [resumes],
    steps: Object.keys(special).length === 0 ? before.steps : { ...before.steps, lg: special },
    error: finished ? null : errorOf(special["__error__"]),
  };
  if (!finished) return left;
  const done = { result: { value: before.result?.value ?? null, goto: stored }, ...left };
  return asked.length === 0 ? done : { ...done, answered: asked };
}

function specialOf({ steps }: PendingTaskWrites): JsonObject {
  const special = steps["lg"];
  return isObject(special) ? special : {};
}

function storedOf({ result }: PendingTaskWrites): readonly StoredWrite[] {
  return (result?.goto ?? []) as readonly StoredWrite[];
}

function pendingOf(library: LangGraphLibrary, left: PendingTaskWrites): CheckpointPendingWrite[] {
  const special: StoredWrite[] = Object.entries(specialOf(left));
  return [...storedOf(left), ...special].map(([channel, value]) => [
    left.task,
    channel,
    deserialise(library, value),
  ]);
}

/** The interrupts at which a task waits. LangGraph writes one interrupt or, from version 1.7 on, a list. */
function interruptsOf(written: unknown, { ns, name, task }: TaskSite): readonly Interrupt[] {
  const all = Array.isArray(written) ? written : written === undefined ? [] : [written];
  const within = name === "" ? [] : [`${name}:${task}`];
  return all.filter(isObject).map(({ value, id, ...rest }) => ({
    ...rest,
    value: value ?? null,
    id: typeof id === "string" ? id : "",
    resumable: true,
    ns: [...(ns === "" ? [] : ns.split("|")), ...within],
    when: "during",
  }));
}

function errorOf(written: unknown): PlainError | null {
  if (written === undefined) return null;
  // Older records may lack a name or a message.
  const { name = "Error", message = "" } = isObject(written) ? written : { message: String(written) };
  return { error: String(name), message: String(message) };
}

/** The stored form of an error that a task has thrown: its name and message, shortened by `toPlainError`. */
function asKept(written: unknown): unknown {
  if (!isObject(written)) return written;
  const { error: name, message } = toPlainError(written);
  return { name, message };
}

import type { NewCheckpoint } from "../model/checkpoint.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { andThen, forEachInOrder, type Eventually } from "../ports/eventually.ts";
import type { AppendDraft } from "./append-draft.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import { channelValueKey, listSpanPrefix } from "./keys.ts";

/**
 * A large update that a checkpoint's row leaves out of `writes`, because the same value is stored as the value of the channel: the node
 * that made the update, the channel, and whether the value is a list.
 */
export type DeduplicatedUpdate = readonly [node: string, channel: string, isList: boolean];

/** Values with this many bytes or more are not stored twice. */
export const DEDUPLICATED_UPDATE_BYTES = 64 * 1024;

/** The key under which a checkpoint stores a value that it sets. `at`: the checkpoint's number, see `deriveChannelRefs`. */
function keyOf(prefix: string, ns: string, at: number, [, channel, isList]: DeduplicatedUpdate): string {
  return isList
    ? listSpanPrefix(prefix, ns, channel, at) + encodeOrdinal(0)
    : channelValueKey(prefix, ns, channel, at);
}

/**
 * The updates of a new checkpoint that are large, and whose values the draft already stores as the values of their channels. Undefined if
 * there are none.
 */
export function findDuplicateUpdates(
  draft: AppendDraft,
  at: number,
  { ns, writes, changes }: NewCheckpoint,
): readonly DeduplicatedUpdate[] | undefined {
  if (writes === null || draft.largest < DEDUPLICATED_UPDATE_BYTES) return undefined;
  const found: DeduplicatedUpdate[] = [];
  for (const [node, update] of Object.entries(writes)) {
    if (!isObject(update)) continue;
    for (const [channel, value] of Object.entries(update)) {
      const change = Object.hasOwn(changes, channel) ? changes[channel] : undefined;
      if (change?.kind !== "set" || change.value !== value) continue;
      const duplicate: DeduplicatedUpdate = [node, channel, Array.isArray(value)];
      const key = keyOf(draft.head.prefix, ns, at, duplicate);
      const stored = draft.ops.find((op) => op.key === key)?.value;
      if (stored && stored.length >= DEDUPLICATED_UPDATE_BYTES) found.push(duplicate);
    }
  }
  return found.length === 0 ? undefined : found;
}

/**
 * The updates with null in place of the value of each {@link DeduplicatedUpdate}. The null keeps the channel's place among the channels of
 * the update.
 */
export function withoutDuplicateUpdates(
  writes: JsonObject,
  duplicates: readonly DeduplicatedUpdate[],
): JsonObject {
  const left: { [node: string]: unknown } = { ...writes };
  for (const [node, channel] of duplicates) left[node] = { ...(left[node] as JsonObject), [channel]: null };
  return left;
}

/** What {@link restoreDuplicateUpdates} reads: the row of a checkpoint, and its position. */
interface DeduplicatedUpdateSource {
  readonly prefix: string;
  readonly ns: string;
  readonly at: number;
  readonly writes: JsonObject;
  readonly shared: readonly DeduplicatedUpdate[];
  /** Reads a channel's value under a key. */
  read(key: string, channel: string): Eventually<unknown>;
}

/** The complete updates of a checkpoint whose row leaves out the values of {@link DeduplicatedUpdate | deduplicated updates}. */
export function restoreDuplicateUpdates(source: DeduplicatedUpdateSource): Eventually<JsonObject> {
  const { prefix, ns, at, shared } = source;
  const writes: { [node: string]: unknown } = { ...source.writes };
  const restore = (one: DeduplicatedUpdate): Eventually<void> => {
    const [node, channel] = one;
    return andThen(source.read(keyOf(prefix, ns, at, one), channel), (value) => {
      writes[node] = { ...(writes[node] as JsonObject), [channel]: value };
    });
  };
  return andThen(forEachInOrder(shared, undefined, restore), () => writes);
}

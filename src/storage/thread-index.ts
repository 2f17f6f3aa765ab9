import type { JsonObject } from "../model/json.ts";
import { nextTimer } from "../model/machine-timer.ts";
import { settledStatus, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import {
  threadsByCreationPrefix,
  threadExpiryKey,
  timerKey,
  threadIdKey,
  threadsByMetadataPrefix,
  sortKey,
  threadsByUpdatePrefix,
  threadsByStatusPrefix,
} from "./keys.ts";
import type { WriteOperation } from "../ports/key-value-store.ts";
import { metadataIndexKey, type MetadataIndexKeyCache } from "./metadata-index-keys.ts";
import { PRESENT_MARK } from "./stored-records.ts";

/**
 * The index of threads. It consists of keys without a value, which are written in the batch that changes the thread. They can be computed from the
 * thread's record alone, so a check can find missing keys:
 *
 *   by id, by creation    written once
 *   by last change        changes when a thread settles: one key is deleted and one is added. Most runs change no other key of the index
 *   by status             changes when a thread settles with another status than before; a busy thread keeps its key
 *   by member             for top-level members of the metadata whose value is no object or list; changes when the member changes
 *   by expiry             only for threads that expire
 *   by next timer         only for threads of machines with timers; a thread is listed under its next timer
 *
 * Busy threads are found by their marks under `!active/`, which the server also reads when it starts. So starting a run changes no index.
 */

/**
 * The maximum number of metadata members that are indexed for one thread. A thread with more members is listed under
 * {@link MANY_MEMBERS_KEY} instead, and every search by members reads that list too.
 */
const MAX_INDEXED_MEMBERS = 32;
export const MANY_MEMBERS_KEY = "*";

function membersOf(metadata: JsonObject): readonly string[] {
  const members: string[] = [];
  for (const name of Object.keys(metadata)) {
    const member = metadataIndexKey(name, metadata[name]);
    if (member === undefined) continue;
    members.push(member);
    if (members.length > MAX_INDEXED_MEMBERS) return [MANY_MEMBERS_KEY];
  }
  return members;
}

/** All index keys of a thread. A temporary thread has none. */
export function threadIndexKeys(key: ThreadKey, thread: ThreadRecord): readonly string[] {
  if (thread.temporary !== null) return [];
  const { tenant, thread: id } = key;
  const { created_at, rested_at, ttl } = thread;
  return [
    threadIdKey(key),
    sortKey(threadsByCreationPrefix(tenant), created_at, id),
    sortKey(threadsByUpdatePrefix(tenant), rested_at, id),
    sortKey(threadsByStatusPrefix(tenant, settledStatus(thread)), created_at, id),
    ...membersOf(thread.metadata).map((member) =>
      sortKey(threadsByMetadataPrefix(tenant, member), created_at, id),
    ),
    ...(ttl === null ? [] : [threadExpiryKey(key, ttl.due)]),
    ...nextTimerKey(key, thread),
  ];
}

/** The index key of the thread's next timer, as a list; empty if the thread has no timer. */
function nextTimerKey(key: ThreadKey, thread: ThreadRecord): readonly string[] {
  const timer = nextTimer(thread);
  return timer === null ? [] : [timerKey(key, timer)];
}

/** Adds the operations that update the index when a thread changes. `before` is undefined for a new thread. */
export function threadIndexOps(
  ops: WriteOperation[],
  key: ThreadKey,
  before: ThreadRecord | undefined,
  after: ThreadRecord,
  known: MetadataIndexKeyCache,
): void {
  if (after.temporary !== null) return;
  if (before === undefined) {
    for (const at of threadIndexKeys(key, after)) ops.push({ key: at, value: PRESENT_MARK });
    return;
  }
  const { tenant, thread: id } = key;
  const { created_at } = after;
  if (before.rested_at !== after.rested_at) {
    const prefix = threadsByUpdatePrefix(tenant);
    move(ops, sortKey(prefix, before.rested_at, id), sortKey(prefix, after.rested_at, id));
  }
  const [was, is] = [settledStatus(before), settledStatus(after)];
  if (was !== is) {
    const from = sortKey(threadsByStatusPrefix(tenant, was), created_at, id);
    move(ops, from, sortKey(threadsByStatusPrefix(tenant, is), created_at, id));
  }
  if (before.metadata !== after.metadata) moveMembers(ops, key, before, after, known);
  if (before.ttl?.due !== after.ttl?.due) {
    if (before.ttl !== null) ops.push({ key: threadExpiryKey(key, before.ttl.due), value: null });
    if (after.ttl !== null) ops.push({ key: threadExpiryKey(key, after.ttl.due), value: PRESENT_MARK });
  }
  if (before.timers !== null || after.timers !== null) {
    const [[old], [next]] = [nextTimerKey(key, before), nextTimerKey(key, after)];
    if (old === next) return;
    if (old !== undefined) ops.push({ key: old, value: null });
    if (next !== undefined) ops.push({ key: next, value: PRESENT_MARK });
  }
}

function moveMembers(
  ops: WriteOperation[],
  key: ThreadKey,
  { metadata: old }: ThreadRecord,
  after: ThreadRecord,
  known: MetadataIndexKeyCache,
): void {
  const { metadata, created_at } = after;
  const at = (member: string) => sortKey(threadsByMetadataPrefix(key.tenant, member), created_at, key.thread);
  if (isWide(old) || isWide(metadata)) {
    for (const member of membersOf(old)) ops.push({ key: at(member), value: null });
    for (const member of membersOf(metadata)) ops.push({ key: at(member), value: PRESENT_MARK });
    return;
  }
  const change = (from: JsonObject, to: JsonObject, value: Buffer | null) => {
    for (const name of Object.keys(from)) {
      // Unchanged members are skipped, which saves the computation of their hashes.
      if (Object.hasOwn(to, name) && to[name] === from[name]) continue;
      const member = known.of(name, from[name]);
      if (member !== undefined) ops.push({ key: at(member), value });
    }
  };
  change(old, metadata, null);
  change(metadata, old, PRESENT_MARK);
}

function isWide(metadata: JsonObject): boolean {
  const names = Object.keys(metadata);
  return names.length > MAX_INDEXED_MEMBERS && membersOf(metadata)[0] === MANY_MEMBERS_KEY;
}

function move(ops: WriteOperation[], from: string, to: string): void {
  ops.push({ key: from, value: null }, { key: to, value: PRESENT_MARK });
}

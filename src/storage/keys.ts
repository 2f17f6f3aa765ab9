import type { ItemKey, Namespace } from "../model/store-item.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Timer } from "../model/machine-timer.ts";
import type { ScanRange } from "../ports/key-value-store.ts";
import { encodeOrdinal, parseOrdinal } from "./sortable-numbers.ts";

/**
 * The keys of the storage, which this file builds and parses. A key consists of segments with slashes between them; the first one is the
 * tenant. All keys of a thread begin with `<tenant>/t/<thread>/`; the list below has what follows. The server's own keys begin with `!`, as
 * no tenant does.
 *
 *   h                                 the record of the thread
 *   j/<seq>                           a journal entry (an append); `seq` counts the entries from 1 without gaps
 *   r/<run>                           a run
 *   k/<run>                           the kwargs of a run
 *   o/<order>/<run>                   the place of a run among the thread's runs: `order` grows with each run that is admitted
 *   s/<event>/<run>                   a delayed run that has started; `event` is the thread's number of the run's first event (`seq_base`)
 *   c/<ns>/<id>                       a checkpoint
 *   b/<ns>/<channel>/<at>             the whole value of a channel; `at` is the number of the checkpoint that wrote it
 *   l/<ns>/<channel>/<at>/<start>     a segment of a list, from index `start` on; `at` is the number of the checkpoint that started the span
 *                                     of the segment (see `Spans` in `channel-values.ts`)
 *   w/<ns>/<checkpoint>[/<task>]      pending writes of a task; without a task: a mark that the checkpoint has pending writes
 *   w/<ns>/<checkpoint>/<task>/<seq>  results of `ctx.step` calls that append `seq` added to the pending writes of the task
 *   e/<run>/<first>                   a chunk of events; `first` is the id of its first event in the run
 */

/** Characters that need no escape in a segment: those of ordinary ids and names. */
const PLAIN = /^[0-9A-Za-z_.:|-]*$/;
const OTHER = /[^0-9A-Za-z_.:|-]/g;

/**
 * Escapes a string as one segment of a key. Different strings give different segments, and no segment contains a slash. Special characters
 * become `%` and four hexadecimal digits, one UTF-16 unit at a time, so that a lone surrogate is preserved.
 */
export function escapeSegment(text: string): string {
  return PLAIN.test(text)
    ? text
    : text.replace(OTHER, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The inverse of {@link escapeSegment}. */
export function unescapeSegment(text: string): string {
  return text.includes("%")
    ? text.replace(/%([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    : text;
}

/** The range of keys that begin with `prefix`, which MUST end with a slash. (`0` is the character after the slash.) */
export function prefixRange(prefix: string): { readonly gte: string; readonly lt: string } {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` };
}

export function threadPrefix(key: ThreadKey): string {
  return `${escapeSegment(key.tenant)}/t/${escapeSegment(key.thread)}/`;
}

/** The thread of a key, and the rest of the key; undefined when the key belongs to no thread. */
export function splitThreadKey(key: string): { readonly key: ThreadKey; readonly rest: string } | undefined {
  const [tenant, kind, thread] = key.split("/", 3);
  if (tenant === undefined || kind !== "t" || thread === undefined) return undefined;
  const rest = key.slice(tenant.length + thread.length + 4);
  return { key: { tenant: unescapeSegment(tenant), thread: unescapeSegment(thread) }, rest };
}

// --- keys of a thread; `p` is the prefix from `threadPrefix` ---

export const threadRecordKey = (p: string): string => `${p}h`;
export const journalEntryKey = (p: string, seq: number): string => `${p}j/${encodeOrdinal(seq)}`;
export const journalEntryPrefix = (p: string): string => `${p}j/`;
export const runPrefix = (p: string): string => `${p}r/`;
export const runKey = (p: string, run: string): string => `${p}r/${escapeSegment(run)}`;
export const kwargsKey = (p: string, run: string): string => `${p}k/${escapeSegment(run)}`;
export const runOrderPrefix = (p: string): string => `${p}o/`;
export const runOrderKey = (p: string, order: number, run: string): string =>
  `${p}o/${encodeOrdinal(order)}/${escapeSegment(run)}`;
/** Keys of the delayed runs of a thread that have started, in the order of their starts. */
export const startedDelayedRunPrefix = (p: string): string => `${p}s/`;
export const startedDelayedRunKey = (p: string, seq: number, run: string): string =>
  `${p}s/${encodeOrdinal(seq)}/${escapeSegment(run)}`;
export const checkpointPrefix = (p: string, ns: string): string => `${p}c/${escapeSegment(ns)}/`;
export const checkpointKey = (p: string, ns: string, id: string): string =>
  `${p}c/${escapeSegment(ns)}/${escapeSegment(id)}`;
export const channelValueKey = (p: string, ns: string, channel: string, at: number): string =>
  `${p}b/${escapeSegment(ns)}/${escapeSegment(channel)}/${encodeOrdinal(at)}`;
/**
 * The key prefix of the segments of one span. In a key, the list index of the segment's first item follows the prefix. See `Spans` in
 * `channel-values.ts`.
 */
export const listSpanPrefix = (p: string, ns: string, channel: string, at: number): string =>
  `${p}l/${escapeSegment(ns)}/${escapeSegment(channel)}/${encodeOrdinal(at)}/`;
export const pendingWritesMarkKey = (p: string, ns: string, checkpoint: string): string =>
  `${p}w/${escapeSegment(ns)}/${escapeSegment(checkpoint)}`;
export const pendingWritesPrefix = (p: string, ns: string, checkpoint: string): string =>
  `${pendingWritesMarkKey(p, ns, checkpoint)}/`;
export const taskWritesKey = (p: string, ns: string, checkpoint: string, task: string): string =>
  pendingWritesPrefix(p, ns, checkpoint) + escapeSegment(task);
export const addedStepResultsKey = (
  p: string,
  ns: string,
  checkpoint: string,
  task: string,
  seq: number,
): string => `${taskWritesKey(p, ns, checkpoint, task)}/${encodeOrdinal(seq)}`;
/** The prefix of the events of all runs of a thread. */
export const allEventsPrefix = (p: string): string => `${p}e/`;
export const eventsPrefix = (p: string, run: string): string => `${p}e/${escapeSegment(run)}/`;

export function lastSegment(key: string): string {
  return unescapeSegment(key.slice(key.lastIndexOf("/") + 1));
}

// --- keys of a tenant ---

export const threadIdsPrefix = (tenant: string): string => `${escapeSegment(tenant)}/i/`;
export const threadIdKey = (key: ThreadKey): string =>
  threadIdsPrefix(key.tenant) + escapeSegment(key.thread);

/**
 * The prefix of an index that sorts threads. A key of such an index consists of this prefix, the number to sort by, and the thread's id.
 */
const sortPrefix = (tenant: string, order: string): string => `${escapeSegment(tenant)}/${order}/`;
export const threadsByCreationPrefix = (tenant: string): string => sortPrefix(tenant, "ic");
export const threadsByUpdatePrefix = (tenant: string): string => sortPrefix(tenant, "iu");
/** Threads by their status, sorted by creation. A busy thread is listed under the status that it had before it became busy. */
export const threadsByStatusPrefix = (tenant: string, status: string): string =>
  sortPrefix(tenant, `is/${status}`);
/** Threads by a member of their metadata (name and value as `metadataIndexKey` writes them), sorted by creation. */
export const threadsByMetadataPrefix = (tenant: string, member: string): string =>
  sortPrefix(tenant, `im/${member}`);
export const sortKey = (prefix: string, at: number, thread: string): string =>
  `${prefix}${encodeOrdinal(Math.max(0, Math.trunc(at)))}/${escapeSegment(thread)}`;
/** The number and the thread in a key of a sort index. */
export function parseSortKey(key: string): { readonly at: number; readonly thread: string } {
  const end = key.lastIndexOf("/");
  const at = parseOrdinal(key.slice(key.lastIndexOf("/", end - 1) + 1, end));
  return { at, thread: unescapeSegment(key.slice(end + 1)) };
}

/** Runs of all threads, sorted by creation: all runs (`ir`), failed runs (`if`), interrupted runs (`ii`), and the runs of a cron (`in`). */
export const runsByCreationPrefix = (tenant: string): string => sortPrefix(tenant, "ir");
export const failedRunsPrefix = (tenant: string): string => sortPrefix(tenant, "if");
export const interruptedRunsPrefix = (tenant: string): string => sortPrefix(tenant, "ii");
export const cronRunsPrefix = (tenant: string, cron: string): string =>
  sortPrefix(tenant, `in/${escapeSegment(cron)}`);
/**
 * A key of an index of runs. The run comes before the thread, because the last segment of a key of an index of threads or
 * runs is the thread's id.
 */
export const runSortKey = (prefix: string, at: number, thread: string, run: string): string =>
  `${prefix}${encodeOrdinal(Math.max(0, Math.trunc(at)))}/${escapeSegment(run)}/${escapeSegment(thread)}`;
/** The thread and the run in a key of {@link runSortKey}; undefined for any other key. */
export function parseRunSortKey(key: string): { readonly thread: string; readonly run: string } | undefined {
  const [, kind = "", ...rest] = key.split("/");
  if (!RUN_INDEX_SEGMENTS.has(kind)) return undefined;
  const [run = "", thread = ""] = rest.slice(-2);
  return { thread: unescapeSegment(thread), run: unescapeSegment(run) };
}

/** The second segments of the keys in the indexes of runs. */
const RUN_INDEX_SEGMENTS: ReadonlySet<string> = new Set(["ir", "if", "ii", "in"]);
/** The second segments of the keys in the indexes of threads, and in the indexes of runs. */
const INDEX_SEGMENTS: ReadonlySet<string> = new Set(["i", "ic", "iu", "is", "im", ...RUN_INDEX_SEGMENTS]);
/** The thread that an index key names; undefined for any other key. */
export function threadOfIndexKey(key: string): ThreadKey | undefined {
  const [tenant = "", kind = ""] = key.split("/", 2);
  return INDEX_SEGMENTS.has(kind) ? { tenant: unescapeSegment(tenant), thread: lastSegment(key) } : undefined;
}

export const assistantKey = (tenant: string, id: string): string =>
  `${escapeSegment(tenant)}/a/${escapeSegment(id)}`;
export const assistantOrderPrefix = (tenant: string): string => `${escapeSegment(tenant)}/ao/`;
export const assistantOrderKey = (tenant: string, created: number, id: string): string =>
  `${assistantOrderPrefix(tenant)}${encodeOrdinal(created)}/${escapeSegment(id)}`;
export const versionPrefix = (tenant: string, assistant: string): string =>
  `${escapeSegment(tenant)}/av/${escapeSegment(assistant)}/`;
export const assistantVersionKey = (tenant: string, assistant: string, version: number): string =>
  versionPrefix(tenant, assistant) + encodeOrdinal(version);

/** Webhook deliveries (`d`) and their contents (`dc`). */
export const deliveriesPrefix = (tenant: string, status: string): string =>
  `${escapeSegment(tenant)}/d/${status}/`;
export const deliveryRowKey = (tenant: string, status: string, id: string): string =>
  deliveriesPrefix(tenant, status) + escapeSegment(id);
export const deliveryContentKey = (tenant: string, id: string): string =>
  `${escapeSegment(tenant)}/dc/${escapeSegment(id)}`;

/**
 * Keys of the items of the long-term store (LangGraph's store). In a key, each label of the namespace ends with `#`, and the whole
 * namespace with `!`. Both characters sort before all characters of a label. So a namespace sorts before the namespaces below it, and these
 * sort before the next namespace beside it.
 */
export type ItemKeyKind = "s" | "sv" | "sx";
const labels = (namespace: Namespace): string =>
  namespace.map((label) => `${escapeSegment(label)}#`).join("");
const itemKindPrefix = (tenant: string, kind: ItemKeyKind): string => `${escapeSegment(tenant)}/${kind}/`;
/** The key of one part of an item: the item without its value (`s`), its value (`sv`), or its vectors (`sx`). */
export const itemRowKey = (tenant: string, kind: ItemKeyKind, { namespace, key }: ItemKey): string =>
  `${itemKindPrefix(tenant, kind)}${labels(namespace)}!${escapeSegment(key)}`;
/** The range of the items whose namespaces begin with `namespace`. */
export function itemNamespaceRange(tenant: string, kind: ItemKeyKind, namespace: Namespace): ScanRange {
  const prefix = itemKindPrefix(tenant, kind) + labels(namespace);
  // The range ends with `$`, the character after `#`.
  return namespace.length === 0 ? prefixRange(prefix) : { gte: prefix, lt: `${prefix.slice(0, -1)}$` };
}
/** The range of items in exactly this namespace. (`"` is the character after `!`.) */
export function exactItemNamespaceRange(tenant: string, kind: ItemKeyKind, namespace: Namespace): ScanRange {
  const prefix = itemKindPrefix(tenant, kind) + labels(namespace);
  return { gte: `${prefix}!`, lt: `${prefix}"` };
}

/** The item in a key of {@link itemRowKey}; undefined for any other key. */
export function parseItemKey(
  at: string,
): (ItemKey & { readonly tenant: string; readonly kind: ItemKeyKind }) | undefined {
  const [tenant = "", kind = "", item = "", more] = at.split("/");
  if (more !== undefined || (kind !== "s" && kind !== "sv" && kind !== "sx")) return undefined;
  return { tenant: unescapeSegment(tenant), kind, ...itemKeyOf(item) };
}

function itemKeyOf(text: string): ItemKey {
  const end = text.indexOf("!");
  const namespace = text.slice(0, end).split("#").slice(0, -1).map(unescapeSegment);
  return { namespace, key: unescapeSegment(text.slice(end + 1)) };
}

/** The key of the record of a request that had an idempotency key. */
export const idempotencyRecordKey = (tenant: string, name: string): string =>
  `${escapeSegment(tenant)}/q/${escapeSegment(name)}`;

export const cronPrefix = (tenant: string): string => `${escapeSegment(tenant)}/cr/`;
export const cronRowKey = (tenant: string, id: string): string => cronPrefix(tenant) + escapeSegment(id);

// --- keys of the server ---

export const FORMAT_KEY = "!format";

/** Present if every run that has ended is also stored as ended. Older versions of Heddle could leave a run without its end. */
export const RUN_ENDS_COMPLETE_KEY = "!ended";

/**
 * Has the value {@link RUN_INDEX_MARK} if the index of runs is complete. Older versions of Heddle stored runs with fewer index keys, or
 * none.
 */
export const RUN_INDEX_COMPLETE_KEY = "!runs";

/** A key that never exists. Deleting it changes nothing, but shows whether the storage accepts writes. */
export const CHECK_KEY = "!check";

/** The numbers of the latest stored batches. Each batch stores its own number. */
export const BATCHES_RANGE = prefixRange("!batch/");
export const batchKey = (number: number): string => `!batch/${encodeOrdinal(number)}`;
export const parseBatchKey = (key: string): number => parseOrdinal(lastSegment(key));

/** The keys of the threads of all tenants that have unfinished runs or are temporary. They are read when the server starts. */
export const UNSETTLED_THREADS_RANGE = prefixRange("!active/");
export const unsettledThreadsPrefix = (tenant: string): string => `!active/${escapeSegment(tenant)}/`;
export const unsettledThreadKey = (key: ThreadKey): string =>
  unsettledThreadsPrefix(key.tenant) + escapeSegment(key.thread);

/** Threads of all tenants, sorted by the time at which they expire. */
export const THREAD_EXPIRIES_RANGE = prefixRange("!ttl/");
export const threadExpiryKey = (key: ThreadKey, due: number): string =>
  `!ttl/${encodeOrdinal(Math.max(0, Math.trunc(due)))}/${escapeSegment(key.tenant)}/${escapeSegment(key.thread)}`;
/** The expiry and the thread in a key of {@link threadExpiryKey}. */
export function parseThreadExpiryKey(key: string): { readonly due: number; readonly key: ThreadKey } {
  const [, due = "", tenant = "", thread = ""] = key.split("/");
  return {
    due: parseOrdinal(due),
    key: { tenant: unescapeSegment(tenant), thread: unescapeSegment(thread) },
  };
}

/** Delayed runs of all tenants, sorted by the time at which they are due. */
export const DELAYED_RANGE = prefixRange("!due/");
export const dueRunKey = ({ tenant, thread }: ThreadKey, due: number, run: string): string =>
  `!due/${encodeOrdinal(due)}/${escapeSegment(tenant)}/${escapeSegment(thread)}/${escapeSegment(run)}`;
export function parseDueRunKey(key: string): {
  readonly key: ThreadKey;
  readonly run: string;
  readonly due: number;
} {
  const [, due = "", tenant = "", thread = "", run = ""] = key.split("/").map(unescapeSegment);
  return { key: { tenant, thread }, run, due: parseOrdinal(due) };
}

/** Threads of all tenants that have timers, sorted by the time of their next timer. */
export const TIMERS_RANGE = prefixRange("!timer/");
export const timerKey = ({ tenant, thread }: ThreadKey, { due, id }: Timer): string =>
  `!timer/${encodeOrdinal(due)}/${escapeSegment(tenant)}/${escapeSegment(thread)}/${escapeSegment(id)}`;
export function parseTimerKey(key: string): Timer & { readonly key: ThreadKey } {
  const [, due = "", tenant = "", thread = "", id = ""] = key.split("/").map(unescapeSegment);
  return { key: { tenant, thread }, id, due: parseOrdinal(due) };
}

/** Crons of all tenants, by the time at which they fire next (their next slot). */
export const CRON_SLOTS_RANGE = prefixRange("!cron/");
export const cronSlotKey = (slot: number, tenant: string, id: string): string =>
  `!cron/${encodeOrdinal(slot)}/${escapeSegment(tenant)}/${escapeSegment(id)}`;
export function parseCronSlotKey(key: string): {
  readonly slot: number;
  readonly tenant: string;
  readonly cron: string;
} {
  const [, slot = "", tenant = "", cron = ""] = key.split("/").map(unescapeSegment);
  return { slot: parseOrdinal(slot), tenant, cron };
}

/** Records of requests with idempotency keys, sorted by the time of the request. */
export const IDEMPOTENCY_EXPIRIES_RANGE = prefixRange("!once/");
export const idempotencyExpiryKey = (at: number, tenant: string, name: string): string =>
  `!once/${encodeOrdinal(at)}/${escapeSegment(tenant)}/${escapeSegment(name)}`;
export function parseIdempotencyExpiryKey(key: string): {
  readonly at: number;
  readonly tenant: string;
  readonly name: string;
} {
  const [, at = "", tenant = "", name = ""] = key.split("/").map(unescapeSegment);
  return { at: parseOrdinal(at), tenant, name };
}

/**
 * Marks of deletions that are not complete: the keys of a thread, or the events of one run, still have to be deleted.
 */
export const DELETION_MARKS_RANGE = prefixRange("!sweep/");
export const deletionMarkKey = (key: ThreadKey, run: string | null): string =>
  `!sweep/${escapeSegment(key.tenant)}/${escapeSegment(key.thread)}/${run === null ? "" : escapeSegment(run)}`;

/** Pending webhook deliveries of all tenants, by target and due time. They are read when the server starts. */
export const PENDING_DELIVERIES_RANGE = prefixRange("!outbox/");
export const pendingDeliveriesPrefix = (target: string): string => `!outbox/${escapeSegment(target)}/`;
export const pendingDeliveryKey = (target: string, due: number, tenant: string, id: string): string =>
  `${pendingDeliveriesPrefix(target)}${encodeOrdinal(due)}/${escapeSegment(tenant)}/${escapeSegment(id)}`;
/** Dead letters (webhook deliveries that are not attempted any more) of all tenants, by the time when they will be deleted. */
export const DEAD_LETTERS_RANGE = prefixRange("!dead/");
export const deadLetterKey = (due: number, tenant: string, id: string): string =>
  `!dead/${encodeOrdinal(due)}/${escapeSegment(tenant)}/${escapeSegment(id)}`;

/** Store items of all tenants, sorted by the time at which they expire. */
export const ITEM_EXPIRIES_RANGE = prefixRange("!expire/");
export const itemExpiryKey = (due: number, tenant: string, { namespace, key }: ItemKey): string =>
  `!expire/${encodeOrdinal(Math.ceil(due))}/${escapeSegment(tenant)}/${labels(namespace)}!${escapeSegment(key)}`;

/** The item in a key of `!expire/`, the index of store items by expiry. */
export function parseItemExpiryKey(at: string): ItemKey & { readonly tenant: string; readonly due: number } {
  const [, due = "", tenant = "", item = ""] = at.split("/");
  return { due: parseOrdinal(due), tenant: unescapeSegment(tenant), ...itemKeyOf(item) };
}

/**
 * The target, tenant and id in a key of `!outbox/` (pending deliveries). For a key of `!dead/` (dead letters), only the tenant and the id
 * are meaningful.
 */
export function parseDeliveryKey(key: string): {
  readonly target: string;
  readonly tenant: string;
  readonly id: string;
} {
  const parts = key.split("/").map(unescapeSegment);
  return { target: parts[1] ?? "", tenant: parts.at(-2) ?? "", id: parts.at(-1) ?? "" };
}

/** The thread in a key of `!active/` or `!sweep/`, and the run if the key names one. */
export function parseThreadMark(key: string): { readonly key: ThreadKey; readonly run: string | null } {
  const [, tenant = "", thread = "", run = ""] = key.split("/").map(unescapeSegment);
  return { key: { tenant, thread }, run: run === "" ? null : run };
}

export const ALL_KEYS: ScanRange = { gte: "", lt: "~" };

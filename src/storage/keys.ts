import type { ItemPlace, Namespace } from "../model/store-item.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Range } from "./kv.ts";
import { ordinal, parseOrdinal } from "./sortable-numbers.ts";

/**
 * The only place where a key is spelled. A key is segments between slashes, the tenant's first; a thread's keys all begin
 * with `<tenant>/t/<thread>/`. What the whole server owns begins with `!`, which no tenant can.
 *
 *   h                                 the thread
 *   j/<seq>                           an append: contiguous from 1
 *   r/<run>  k/<run>  o/<order>/<run> a run; what it was created with; its place in the order of admission
 *   s/<seq>/<run>                     a run that was delayed, by where it has begun
 *   c/<ns>/<id>                       a checkpoint
 *   b/<ns>/<channel>/<at>             a whole value
 *   l/<ns>/<channel>/<at>/<start>     items of a list from `start` on
 *   w/<ns>/<checkpoint>[/<task>]      what a task left; without a task: some did
 *   e/<run>/<first>                   a chunk of events
 */

/** Characters that stand for themselves in a segment: all that the ids and names of well-meaning people consist of. */
const PLAIN = /^[0-9A-Za-z_.:|-]*$/;
const OTHER = /[^0-9A-Za-z_.:|-]/g;

/**
 * A string as one segment of a key. No two strings give the same one, and none reaches out of its place: everything else
 * is written as `%` and its four hexadecimal digits, UTF-16 unit by unit, so that half a surrogate pair stays itself.
 */
export function segment(text: string): string {
  return PLAIN.test(text)
    ? text
    : text.replace(OTHER, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The string that {@link segment} wrote. */
export function unsegment(text: string): string {
  return text.includes("%")
    ? text.replace(/%([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    : text;
}

/** Every key that begins with `prefix`, which MUST end with a slash: `0` is the character after it. */
export function within(prefix: string): { readonly gte: string; readonly lt: string } {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` };
}

/** What all keys of a thread begin with. */
export function threadPrefix(key: ThreadKey): string {
  return `${segment(key.tenant)}/t/${segment(key.thread)}/`;
}

/** The thread whose key this is, with the rest of the key; undefined for a key of no thread. */
export function splitThread(key: string): { readonly key: ThreadKey; readonly rest: string } | undefined {
  const [tenant, room, thread] = key.split("/", 3);
  if (tenant === undefined || room !== "t" || thread === undefined) return undefined;
  const rest = key.slice(tenant.length + thread.length + 4);
  return { key: { tenant: unsegment(tenant), thread: unsegment(thread) }, rest };
}

// --- of a thread, by its prefix ---

export const headKey = (p: string): string => `${p}h`;
export const entryKey = (p: string, seq: number): string => `${p}j/${ordinal(seq)}`;
export const entryPrefix = (p: string): string => `${p}j/`;
export const runPrefix = (p: string): string => `${p}r/`;
export const runKey = (p: string, run: string): string => `${p}r/${segment(run)}`;
export const kwargsKey = (p: string, run: string): string => `${p}k/${segment(run)}`;
export const orderPrefix = (p: string): string => `${p}o/`;
export const orderKey = (p: string, order: number, run: string): string =>
  `${p}o/${ordinal(order)}/${segment(run)}`;
export const latePrefix = (p: string): string => `${p}s/`;
export const lateKey = (p: string, seq: number, run: string): string =>
  `${p}s/${ordinal(seq)}/${segment(run)}`;
export const checkpointPrefix = (p: string, ns: string): string => `${p}c/${segment(ns)}/`;
export const checkpointKey = (p: string, ns: string, id: string): string =>
  `${p}c/${segment(ns)}/${segment(id)}`;
export const wholeKey = (p: string, ns: string, channel: string, at: number): string =>
  `${p}b/${segment(ns)}/${segment(channel)}/${ordinal(at)}`;
/** What the items of one span begin with; `start` as an ordinal follows. */
export const spanPrefix = (p: string, ns: string, channel: string, at: number): string =>
  `${p}l/${segment(ns)}/${segment(channel)}/${ordinal(at)}/`;
export const writesMark = (p: string, ns: string, checkpoint: string): string =>
  `${p}w/${segment(ns)}/${segment(checkpoint)}`;
export const writesPrefix = (p: string, ns: string, checkpoint: string): string =>
  `${writesMark(p, ns, checkpoint)}/`;
/** What the events of all runs begin with. */
export const allEventsPrefix = (p: string): string => `${p}e/`;
export const eventsPrefix = (p: string, run: string): string => `${p}e/${segment(run)}/`;

/** The last segment of a key. */
export function lastSegment(key: string): string {
  return unsegment(key.slice(key.lastIndexOf("/") + 1));
}

// --- of a tenant ---

export const indexPrefix = (tenant: string): string => `${segment(tenant)}/i/`;
export const indexKey = (key: ThreadKey): string => indexPrefix(key.tenant) + segment(key.thread);

/** Threads in the orders that searches ask for: by what they are called there, then by a number, then by id. */
const placePrefix = (tenant: string, order: string): string => `${segment(tenant)}/${order}/`;
export const createdPrefix = (tenant: string): string => placePrefix(tenant, "ic");
export const restedPrefix = (tenant: string): string => placePrefix(tenant, "iu");
/** Those that rest in a status, and those that did before they went to work; by their creation. */
export const statusPrefix = (tenant: string, status: string): string => placePrefix(tenant, `is/${status}`);
/** Those that have a member in their metadata, by its name and value as `memberOf` writes them; by their creation. */
export const memberPrefix = (tenant: string, member: string): string => placePrefix(tenant, `im/${member}`);
export const placeKey = (prefix: string, at: number, thread: string): string =>
  `${prefix}${ordinal(Math.max(0, Math.trunc(at)))}/${segment(thread)}`;
/** The number and the thread in such a key. */
export function parsePlace(key: string): { readonly at: number; readonly thread: string } {
  const end = key.lastIndexOf("/");
  const at = parseOrdinal(key.slice(key.lastIndexOf("/", end - 1) + 1, end));
  return { at, thread: unsegment(key.slice(end + 1)) };
}
/** The rooms of a tenant that only name threads: `i` and the orders. */
const ROOMS: ReadonlySet<string> = new Set(["i", "ic", "iu", "is", "im"]);
/** The thread that a key of the index of threads names; undefined for any other key. */
export function parseIndex(key: string): ThreadKey | undefined {
  const [tenant = "", room = ""] = key.split("/", 2);
  return ROOMS.has(room) ? { tenant: unsegment(tenant), thread: lastSegment(key) } : undefined;
}

export const assistantKey = (tenant: string, id: string): string => `${segment(tenant)}/a/${segment(id)}`;
export const assistantOrderPrefix = (tenant: string): string => `${segment(tenant)}/ao/`;
export const assistantOrderKey = (tenant: string, created: number, id: string): string =>
  `${assistantOrderPrefix(tenant)}${ordinal(created)}/${segment(id)}`;
export const versionPrefix = (tenant: string, assistant: string): string =>
  `${segment(tenant)}/av/${segment(assistant)}/`;
export const versionKey = (tenant: string, assistant: string, version: number): string =>
  versionPrefix(tenant, assistant) + ordinal(version);

/** What is owed: a delivery, and what it tells. */
export const deliveriesPrefix = (tenant: string, status: string): string => `${segment(tenant)}/d/${status}/`;
export const deliveryKey = (tenant: string, status: string, id: string): string =>
  deliveriesPrefix(tenant, status) + segment(id);
export const contentKey = (tenant: string, id: string): string => `${segment(tenant)}/dc/${segment(id)}`;

/**
 * Items of the store. A label ends with `#` and a namespace with `!`, which sort before all that a segment consists of: so a
 * namespace comes before those below it, and they all before its next sibling.
 */
export type ItemRoom = "s" | "sv" | "sx";
const labels = (namespace: Namespace): string => namespace.map((label) => `${segment(label)}#`).join("");
const itemRoom = (tenant: string, room: ItemRoom): string => `${segment(tenant)}/${room}/`;
/** All but the value (`s`), the value (`sv`), the vectors (`sx`). */
export const itemKey = (tenant: string, room: ItemRoom, { namespace, key }: ItemPlace): string =>
  `${itemRoom(tenant, room)}${labels(namespace)}!${segment(key)}`;
/** Items whose namespace begins with this one. */
export function itemsBelow(tenant: string, room: ItemRoom, namespace: Namespace): Range {
  const prefix = itemRoom(tenant, room) + labels(namespace);
  // `$` is the character after `#`.
  return namespace.length === 0 ? within(prefix) : { gte: prefix, lt: `${prefix.slice(0, -1)}$` };
}
/** Items of this very namespace: `"` is the character after `!`. */
export function itemsIn(tenant: string, room: ItemRoom, namespace: Namespace): Range {
  const prefix = itemRoom(tenant, room) + labels(namespace);
  return { gte: `${prefix}!`, lt: `${prefix}"` };
}

/** Where the item of such a key lies; undefined for another key. */
export function parseItem(
  at: string,
): (ItemPlace & { readonly tenant: string; readonly room: ItemRoom }) | undefined {
  const [tenant = "", room = "", place = "", more] = at.split("/");
  if (more !== undefined || (room !== "s" && room !== "sv" && room !== "sx")) return undefined;
  return { tenant: unsegment(tenant), room, ...placeOf(place) };
}

function placeOf(text: string): ItemPlace {
  const end = text.indexOf("!");
  const namespace = text.slice(0, end).split("#").slice(0, -1).map(unsegment);
  return { namespace, key: unsegment(text.slice(end + 1)) };
}

/** A request that was carried out, by the name that its client gave it. */
export const onceKey = (tenant: string, name: string): string => `${segment(tenant)}/q/${segment(name)}`;

export const cronPrefix = (tenant: string): string => `${segment(tenant)}/cr/`;
export const cronKey = (tenant: string, id: string): string => cronPrefix(tenant) + segment(id);

// --- of the server ---

export const FORMAT_KEY = "!format";

/** There: no run is left without an end that its thread has gone past. */
export const ENDED_KEY = "!ended";

/** Never there: deleted to find out whether writing works. */
export const CHECK_KEY = "!check";

/** Numbers of batches, each in the batch that it numbers. */
export const BATCHES = within("!batch/");
export const batchKey = (number: number): string => `!batch/${ordinal(number)}`;
export const parseBatch = (key: string): number => parseOrdinal(lastSegment(key));

/** Threads with work, of all tenants side by side: what a boot reads. */
export const ACTIVE = within("!active/");
export const activePrefix = (tenant: string): string => `!active/${segment(tenant)}/`;
export const activeKey = (key: ThreadKey): string => activePrefix(key.tenant) + segment(key.thread);

/** Threads of all tenants by when to see whether their time is up. */
export const DUE = within("!ttl/");
export const dueKey = (key: ThreadKey, due: number): string =>
  `!ttl/${ordinal(Math.max(0, Math.trunc(due)))}/${segment(key.tenant)}/${segment(key.thread)}`;
/** The number and the thread in such a key. */
export function parseDue(key: string): { readonly due: number; readonly key: ThreadKey } {
  const [, due = "", tenant = "", thread = ""] = key.split("/");
  return { due: parseOrdinal(due), key: { tenant: unsegment(tenant), thread: unsegment(thread) } };
}

/** Runs that wait for their time, of all tenants. */
export const DELAYED = within("!due/");
export const delayedKey = ({ tenant, thread }: ThreadKey, due: number, run: string): string =>
  `!due/${ordinal(due)}/${segment(tenant)}/${segment(thread)}/${segment(run)}`;
export function parseDelayed(key: string): {
  readonly key: ThreadKey;
  readonly run: string;
  readonly due: number;
} {
  const [, due = "", tenant = "", thread = "", run = ""] = key.split("/").map(unsegment);
  return { key: { tenant, thread }, run, due: parseOrdinal(due) };
}

/** Crons by the slot that they fire next, of all tenants. */
export const SLOTS = within("!cron/");
export const slotKey = (slot: number, tenant: string, id: string): string =>
  `!cron/${ordinal(slot)}/${segment(tenant)}/${segment(id)}`;
export function parseSlot(key: string): {
  readonly slot: number;
  readonly tenant: string;
  readonly cron: string;
} {
  const [, slot = "", tenant = "", cron = ""] = key.split("/").map(unsegment);
  return { slot: parseOrdinal(slot), tenant, cron };
}

/** Requests that were carried out, by the time at which they came. */
export const ONCE = within("!once/");
export const onceMark = (at: number, tenant: string, name: string): string =>
  `!once/${ordinal(at)}/${segment(tenant)}/${segment(name)}`;
export function parseOnce(key: string): {
  readonly at: number;
  readonly tenant: string;
  readonly name: string;
} {
  const [, at = "", tenant = "", name = ""] = key.split("/").map(unsegment);
  return { at: parseOrdinal(at), tenant, name };
}

/** What is deleted and has still to be swept: a thread's keys, or the events of one run. */
export const SWEEPS = within("!sweep/");
export const sweepKey = (key: ThreadKey, run: string | null): string =>
  `!sweep/${segment(key.tenant)}/${segment(key.thread)}/${run === null ? "" : segment(run)}`;

/** Pending deliveries of all tenants by lane and time: what a boot reads. */
export const OUTBOX = within("!outbox/");
export const lanePrefix = (lane: string): string => `!outbox/${segment(lane)}/`;
export const owedKey = (lane: string, due: number, tenant: string, id: string): string =>
  `${lanePrefix(lane)}${ordinal(due)}/${segment(tenant)}/${segment(id)}`;
/** Dead ones by the time of their deletion. */
export const DEAD = within("!dead/");
export const deadKey = (due: number, tenant: string, id: string): string =>
  `!dead/${ordinal(due)}/${segment(tenant)}/${segment(id)}`;

/** Items of all tenants by when they expire. */
export const EXPIRING = within("!expire/");
export const expireKey = (due: number, tenant: string, { namespace, key }: ItemPlace): string =>
  `!expire/${ordinal(Math.ceil(due))}/${segment(tenant)}/${labels(namespace)}!${segment(key)}`;

/** The item in a key of `!expire/`. */
export function parseExpire(at: string): ItemPlace & { readonly tenant: string; readonly due: number } {
  const [, due = "", tenant = "", place = ""] = at.split("/");
  return { due: parseOrdinal(due), tenant: unsegment(tenant), ...placeOf(place) };
}

/** The lane, tenant and id in a key of `!outbox/`; of `!dead/` the latter two. */
export function parseOwed(key: string): {
  readonly lane: string;
  readonly tenant: string;
  readonly id: string;
} {
  const parts = key.split("/").map(unsegment);
  return { lane: parts[1] ?? "", tenant: parts.at(-2) ?? "", id: parts.at(-1) ?? "" };
}

/** The thread, and the run if there is one, in a key of `!active/` or `!sweep/`. */
export function parseMark(key: string): { readonly key: ThreadKey; readonly run: string | null } {
  const [, tenant = "", thread = "", run = ""] = key.split("/").map(unsegment);
  return { key: { tenant, thread }, run: run === "" ? null : run };
}

/** Everything there is. */
export const ALL: Range = { gte: "", lt: "~" };

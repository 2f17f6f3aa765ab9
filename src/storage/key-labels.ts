import { DEFAULT_TENANT, type ThreadKey } from "../model/thread.ts";
import {
  BATCHES_RANGE,
  FORMAT_KEY,
  lastSegment,
  parseBatchKey,
  parseItemKey,
  splitThreadKey,
  unescapeSegment,
} from "./keys.ts";
import type { KeyRange } from "./leveldb/table-check.ts";
import { threadOfKey } from "./quarantine.ts";
import { parseOrdinal } from "./sortable-numbers.ts";
import { itemLabel } from "./key-value-items.ts";

// Labels say in words what a key contains, for messages to people.

/** The label of a key: its thread, or else its content, such as `thread 0199...` or `cron 0199... of tenant acme`. */
export function keyLabel(key: string): string {
  const thread = threadOfKey(key);
  if (thread !== undefined)
    return splitThreadKey(key) === undefined
      ? `an index entry of ${threadLabel(thread)}`
      : threadLabel(thread);
  if (key === FORMAT_KEY) return "the format of the data";
  if (key.startsWith(BATCHES_RANGE.gte)) return `the number of batch ${parseBatchKey(key)}`;
  if (key.startsWith("!")) return "a mark of the server";
  const [tenant = "", kind = "", third = ""] = key.split("/").map(unescapeSegment);
  return tenantKeyLabel(key, kind, third) + ofTenant(tenant);
}

export function threadLabel({ tenant, thread }: ThreadKey): string {
  return `thread ${thread}${ofTenant(tenant)}`;
}

/** Describes what a range of keys may contain. */
export function rangeLabel({ from, to }: KeyRange): string {
  const isFromStart = from === "";
  const isToEnd = to === "~";
  if (isFromStart && isToEnd) return "anything";
  const first = isFromStart ? "the beginning" : keyLabel(from);
  const last = isToEnd ? "the end" : keyLabel(to);
  return first === last ? first : `everything from ${first} to ${last}`;
}

/** Describes what a key of a thread contains. `rest`: the key without the thread's prefix. */
export function threadPartLabel(rest: string): string {
  const [kind, first = "", second = ""] = rest.split("/").map(unescapeSegment);
  switch (kind) {
    case "h":
      return "its record";
    case "j":
      return `append ${parseOrdinal(first)}`;
    case "r":
      return `run ${first}`;
    case "k":
      return `what run ${first} was created with`;
    case "o":
      return `the place of run ${second} in the order of runs`;
    case "s":
      return `the start of the delayed run ${second}`;
    case "c":
      return `checkpoint ${second}`;
    case "b":
    case "l":
      return `a value of channel ${second}`;
    case "w":
      return `pending writes at checkpoint ${second}`;
    case "e":
      return `events from ${parseOrdinal(second)} on of run ${first}`;
    default:
      return `the unknown key ${rest}`;
  }
}

function tenantKeyLabel(key: string, kind: string, third: string): string {
  const item = parseItemKey(key);
  if (item !== undefined) return itemLabel(item);
  switch (kind) {
    case "a":
    case "ao":
      return `assistant ${lastSegment(key)}`;
    case "av":
      return `version ${parseOrdinal(lastSegment(key))} of assistant ${third}`;
    case "cr":
      return `cron ${lastSegment(key)}`;
    case "d":
    case "dc":
      return `webhook delivery ${lastSegment(key)}`;
    case "q":
      return `the record of the idempotency key ${JSON.stringify(third)}`;
    default:
      return `the unknown key ${key}`;
  }
}

function ofTenant(tenant: string): string {
  return tenant === DEFAULT_TENANT ? "" : ` of tenant ${tenant}`;
}

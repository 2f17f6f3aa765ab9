import type { Fact } from "../model/run-event.ts";
import type { JsonObject } from "../model/json.ts";

/** Estimated bytes of an object without its members. */
const OBJECT_BYTES = 48;
/** How many list items or object members are measured; the others are assumed to be similar. */
const MAX_SAMPLE = 16;
const DEPTH = 4;

/**
 * Estimates the bytes that a fact takes in memory. To be fast, it measures only a sample of a long list. It counts the whole state to which
 * the fact refers, although other facts share most of that state, so the estimate is usually too high.
 */
export function factSize(fact: Fact, values: JsonObject | undefined): number {
  const state = values === undefined ? 0 : size(values, DEPTH);
  switch (fact.t) {
    case "token":
      return OBJECT_BYTES + fact.text.length;
    case "custom":
    case "event":
    case "tool":
      return OBJECT_BYTES + fact.json.length;
    case "log":
      return 2 * OBJECT_BYTES + fact.message.length + (fact.stack?.length ?? 0) + size(fact.fields, DEPTH);
    case "piece":
      return OBJECT_BYTES + size(fact.chunk, DEPTH);
    case "result":
      return 4 * OBJECT_BYTES + size(fact.update, DEPTH) + size(fact.interrupts, DEPTH);
    case "task":
      return 4 * OBJECT_BYTES + (fact.input === undefined ? 0 : size(fact.input.value, DEPTH));
    case "interrupt":
      return 2 * OBJECT_BYTES + size(fact.interrupts, DEPTH) + state;
    case "message":
      return 2 * OBJECT_BYTES + size(fact.meta, DEPTH);
    case "complete":
      return 2 * OBJECT_BYTES + size(fact.message, DEPTH) + size(fact.meta, DEPTH);
    case "checkpoint":
      return 2 * OBJECT_BYTES + state + (fact.tasks === undefined ? 0 : size(fact.tasks, DEPTH));
    case "start":
      return OBJECT_BYTES;
    case "error":
      return 2 * OBJECT_BYTES + fact.error.message.length;
    default:
      return fact satisfies never;
  }
}

function size(value: unknown, depth: number): number {
  if (typeof value === "string") return value.length + 16;
  if (typeof value !== "object" || value === null) return 8;
  if (depth === 0) return 4 * OBJECT_BYTES;
  let seen = 0;
  let sum = 0;
  if (Array.isArray(value)) {
    for (; seen < value.length && seen < MAX_SAMPLE; seen++) sum += size(value[seen], depth - 1);
    return OBJECT_BYTES + (seen < value.length ? Math.ceil((sum / seen) * value.length) : sum);
  }
  const object = value as JsonObject;
  // `for in`, because `Object.keys` allocates an array. It is called only for objects with more members than the sample, which are rare.
  for (const key in object) {
    if (seen++ === MAX_SAMPLE)
      return OBJECT_BYTES + Math.ceil((sum / MAX_SAMPLE) * Object.keys(object).length);
    sum += key.length + size(object[key], depth - 1);
  }
  return OBJECT_BYTES + sum;
}

import { isObject, type JsonObject } from "../model/json.ts";
import { copiedObjectField, throwInvalidField } from "./parse-state-fields.ts";

/** The token counts of a model call. Details are objects of counts, such as `input_token_details: { cache_read }`. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly [detail: string]: unknown;
}

/** Token counts as a node may write them. An absent count means 0, and an absent total the sum of both counts. */
export type UsageLike = { readonly [K in keyof Usage]?: Usage[K] | undefined };

function toTokenCount(usage: JsonObject, field: string, at: string): number | undefined {
  const count = usage[field];
  if (count === undefined || count === null) return undefined;
  if (typeof count === "number" && count >= 0) return count;
  return throwInvalidField(`${at}.${field}`, "must be a number of tokens");
}

/**
 * Reads token counts and fills in absent ones; null if `value` is null or undefined.
 * @throws ServiceError `state.invalid`, `value.unstorable`, with the path of the field
 */
export function toUsage(value: unknown, at: string): Usage | null {
  if (value === undefined || value === null) return null;
  const usage = copiedObjectField(value, at);
  for (const field of ["input_token_details", "output_token_details"]) {
    const details = usage[field];
    if (details !== undefined && !isObject(details))
      throwInvalidField(`${at}.${field}`, "must be an object of counts");
  }
  const input_tokens = toTokenCount(usage, "input_tokens", at) ?? 0;
  const output_tokens = toTokenCount(usage, "output_tokens", at) ?? 0;
  const total_tokens = toTokenCount(usage, "total_tokens", at) ?? input_tokens + output_tokens;
  return { ...usage, input_tokens, output_tokens, total_tokens };
}

/** Adds two sets of token counts, with their details. */
export function addUsage(left: Usage, right: Usage): Usage {
  return add(left, right) as Usage;
}

function add(left: JsonObject, right: JsonObject): JsonObject {
  const total: Record<string, unknown> = { ...left };
  for (const [key, value] of Object.entries(right)) {
    const before = total[key];
    if (typeof before === "number" && typeof value === "number") total[key] = before + value;
    else total[key] = isObject(before) && isObject(value) ? add(before, value) : value;
  }
  return total;
}

/** An object whose member `name` has those members of `counts` that are numbers; an empty object if there are none. */
export function usageDetails(name: string, counts: JsonObject): JsonObject {
  const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
  return known.length === 0 ? {} : { [name]: Object.fromEntries(known) };
}

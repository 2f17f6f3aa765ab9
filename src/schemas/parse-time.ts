import { invalidField } from "../model/errors.ts";

const TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/i;

/**
 * Parses a time in ISO 8601 to epoch milliseconds. A time without an offset is in UTC. `at`: the name of the field in errors.
 * @throws ServiceError `validation.failed`
 */
export function parseTime(at: string, text: string): number {
  const parts = TIME.exec(text);
  const hasClock = text.length > 10;
  const time =
    parts === null ? Number.NaN : Date.parse(hasClock && parts[1] === undefined ? `${text}Z` : text);
  if (Number.isFinite(time) && isDay(text.slice(0, 10))) return time;
  throw invalidField(at, "must be a time in ISO 8601");
}

/** Whether the month has this day. Needed because `Date.parse` reads February 31st as March 3rd. */
const isDay = (date: string): boolean => new Date(date).toISOString().startsWith(date);

/** Epoch milliseconds in the form of the API: ISO 8601 with an offset, e.g. `2026-11-20T12:00:55.475+00:00`. */
export function toIso(ms: number): string {
  if (ms !== last.ms) {
    last.text = `${new Date(ms).toISOString().slice(0, -1)}+00:00`;
    last.ms = ms;
  }
  return last.text;
}

/** The last time that was formatted. It is cached, because most records of a run have the same time as the record before. */
const last = { ms: Number.NaN, text: "" };

const UNITS = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** A duration in milliseconds, given as a number or as a text such as `"30s"`; undefined if it is invalid or not above 0. */
export function parseDuration(time: unknown): number | undefined {
  if (typeof time === "number") return Number.isFinite(time) && time > 0 ? time : undefined;
  const parts = typeof time === "string" ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(time) : null;
  const result = Number(parts?.[1]) * (UNITS.get(parts?.[2] ?? "") ?? 0);
  return result > 0 && Number.isFinite(result) ? result : undefined;
}

import { nowTruncatedToSeconds } from "../app/clock.ts";

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

export function formatAge(since: string, at: number): string {
  const ms = at - Date.parse(since);
  if (ms < 1_000) return "now";
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3];
  return `${Math.floor(ms / size)}${unit}`;
}

/** Formats the time from `at` (epoch milliseconds) to the later timestamp `then`, such as `in 5m`. */
export function formatTimeUntil(then: string, at: number): string {
  const age = formatAge(new Date(at).toISOString(), Date.parse(then));
  return age === "now" ? "now" : `in ${age}`;
}

/** Shows the age of a timestamp, such as `5m`; with `isAgo` as part of a sentence, such as `5m ago`. */
export function Age({ since, isAgo = false }: { readonly since: string; readonly isAgo?: boolean }) {
  const age = formatAge(since, nowTruncatedToSeconds.value);
  return (
    // The title is set when the pointer enters, because formatting all dates of a page takes longer than rendering the
    // rest of the page.
    <time
      dateTime={since}
      onMouseEnter={({ currentTarget }) => (currentTarget.title = new Date(since).toLocaleString())}
    >
      {!isAgo ? age : age === "now" ? "just now" : `${age} ago`}
    </time>
  );
}

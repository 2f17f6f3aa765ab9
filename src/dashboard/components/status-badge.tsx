import { nowTruncatedToSeconds } from "../app/clock.ts";

interface StatusProps {
  readonly of: string;
  /** The label, if it differs from the status. */
  readonly words?: string | undefined;
  readonly small?: boolean;
}

/** A status as colour and text. */
export function StatusBadge({ of, words = of, small = false }: StatusProps) {
  return (
    <span class={`status ${of} ${small ? "small" : ""}`}>
      <span class="dot" aria-hidden="true" />
      {words}
    </span>
  );
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

export function ageOf(since: string, at: number): string {
  const ms = at - Date.parse(since);
  if (ms < 1_000) return "now";
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3];
  return `${Math.floor(ms / size)}${unit}`;
}

/** How long it takes until a time. */
export function timeUntil(then: string, at: number): string {
  const age = ageOf(new Date(at).toISOString(), Date.parse(then));
  return age === "now" ? "now" : `in ${age}`;
}

/** The age of a timestamp; `isAgo`: as part of a sentence. */
export function Age({ since, isAgo = false }: { readonly since: string; readonly isAgo?: boolean }) {
  const age = ageOf(since, nowTruncatedToSeconds.value);
  return (
    <time dateTime={since} title={new Date(since).toLocaleString()}>
      {!isAgo ? age : age === "now" ? "just now" : `${age} ago`}
    </time>
  );
}

/** Formats a duration in milliseconds. */
export function formatDuration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} m ${Math.round((ms % 60_000) / 1_000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** Shortens an id to its last characters. The first characters are the time, which many ids share. */
export const shortId = (id: string): string => id.slice(-8);

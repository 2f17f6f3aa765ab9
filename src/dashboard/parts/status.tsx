import { now } from "../app/session.ts";

/** A status, by colour and by word. */
export function Status({ of, small = false }: { readonly of: string; readonly small?: boolean }) {
  return (
    <span class={`status ${of} ${small ? "small" : ""}`}>
      <span class="dot" aria-hidden="true" />
      {of}
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

export function Age({ since }: { readonly since: string }) {
  return (
    <time dateTime={since} title={new Date(since).toLocaleString()}>
      {ageOf(since, now.value)}
    </time>
  );
}

/** Milliseconds in words. */
export function lasting(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} m ${Math.round((ms % 60_000) / 1_000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** Ids by their last characters: the first ones are the time, which many share. */
export const shortId = (id: string): string => id.slice(-8);

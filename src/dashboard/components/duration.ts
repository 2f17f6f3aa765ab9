/** Formats a duration given in milliseconds, such as `250 ms`, `1.25 s` or `1 m 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  // Rounds before splitting off the minutes: 119.6 s is `2 m 0 s`, not `1 m 60 s`.
  const seconds = Math.round(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} m ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

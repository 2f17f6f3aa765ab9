/** Epoch milliseconds as the wire carries them: ISO 8601 with an offset, e.g. `2026-11-20T12:00:55.475+00:00`. */
export function toIso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}+00:00`;
}

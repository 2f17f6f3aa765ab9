import type { Clock } from "../ports/clock.ts";

/** Caches the result of `read` for `ms` milliseconds after the call. For expensive readings. A failure is not cached. */
export function cachedFor<T>(ms: number, clock: Clock, read: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let until = 0;
  return () => {
    const now = clock.mono();
    if (kept !== undefined && now < until) return kept;
    until = now + ms;
    const asked = read();
    kept = asked;
    asked.catch(() => {
      if (kept === asked) kept = undefined;
    });
    return asked;
  };
}

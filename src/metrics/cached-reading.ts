import type { Clock } from "../ports/clock.ts";

/**
 * Returns a function that calls the expensive `read` at most once in `ms` milliseconds, and returns the same result to all calls in that
 * time. A failure is not cached.
 */
export function cachedFor<T>(ms: number, clock: Clock, read: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined;
  let until = 0;
  return () => {
    const now = clock.mono();
    if (cached !== undefined && now < until) return cached;
    until = now + ms;
    const pending = read();
    cached = pending;
    pending.catch(() => {
      if (cached === pending) cached = undefined;
    });
    return pending;
  };
}

/** Returns a function that calls the expensive `read`. Calls while it reads share its result; a later call reads again. */
export function sharedWhilePending<T>(read: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined;
  return () => (pending ??= read().finally(() => (pending = undefined)));
}

import type { Clock } from "../ports/clock.ts";

/** What `read` gives, for `ms` milliseconds after it was asked: for what is dear to find out. A failure is not kept. */
export function keptFor<T>(ms: number, clock: Clock, read: () => Promise<T>): () => Promise<T> {
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

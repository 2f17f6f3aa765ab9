/** Entries of a body that are looked at for what is wrong with them: some hundred milliseconds' worth. */
const ENTRIES = 4_000;
/** Of one list or object: one more than any of them may have, so that this is told. */
const MOST = 1_001;
/** Of one, when those are used up, and when twice as many are. */
const FEW = 8;
const ONE = 1;

type Container = Record<string, unknown> | unknown[];

/**
 * A body with no more members and list entries than can be looked at in a moment, the first ones of each list and object. To tell
 * all that is wrong with a body of megabytes would take seconds. A small body is whole.
 */
export function sampleOf(body: Record<string, unknown>): Record<string, unknown> {
  let left = ENTRIES;
  const sample: Record<string, unknown> = {};
  const waiting: (readonly [from: Container, to: Container])[] = [[body, sample]];
  // Level by level: what stands further up is rather kept.
  for (const [from, to] of waiting) {
    const most = left >= MOST ? MOST : left > -ENTRIES ? FEW : ONE;
    let count = 0;
    const put = (name: string | number, value: unknown): void => {
      count++;
      let kept = value;
      if (typeof value === "object" && value !== null) {
        const copy = Array.isArray(value) ? [] : {};
        waiting.push([value as Container, copy]);
        kept = copy;
      }
      Object.defineProperty(to, name, { value: kept, enumerable: true, configurable: true, writable: true });
    };
    if (Array.isArray(from)) for (let i = 0; i < from.length && count < most; i++) put(i, from[i]);
    else {
      for (const name in from) {
        if (count >= most) break;
        put(name, from[name]);
      }
    }
    left -= count;
  }
  return sample;
}

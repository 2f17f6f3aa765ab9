/**
 * The approximate number of entries (list items and object members) that a sample may have before lower limits apply to each further list
 * and object: first {@link MAX_SAMPLE_ENTRIES} applies, then {@link REDUCED_ENTRIES}, and last {@link MIN_ENTRIES}. So the sample stays
 * small.
 */
const FULL_SAMPLE_ENTRIES = 4_000;
/**
 * The largest number of entries that are copied of one list or object. It is one more than the highest limit of entries in a schema, so
 * that a list or object that exceeds its limit still exceeds it in the copy.
 */
const MAX_SAMPLE_ENTRIES = 1_001;
/** The largest number of entries that are copied of one list or object once about {@link FULL_SAMPLE_ENTRIES} entries have been copied. */
const REDUCED_ENTRIES = 8;
/**
 * The largest number of entries that are copied of one list or object once about twice {@link FULL_SAMPLE_ENTRIES} entries have been
 * copied.
 */
const MIN_ENTRIES = 1;

type Container = Record<string, unknown> | unknown[];

/**
 * A copy of a body with only the first entries of each list and object, so that its errors are found quickly: finding all errors of a body
 * of megabytes would take seconds. A small body is copied completely.
 */
export function boundedSample(body: Record<string, unknown>): Record<string, unknown> {
  let left = FULL_SAMPLE_ENTRIES;
  const sample: Record<string, unknown> = {};
  const waiting: (readonly [from: Container, to: Container])[] = [[body, sample]];
  // Copies breadth first, so that the upper levels of the body are complete.
  for (const [from, to] of waiting) {
    const most =
      left >= MAX_SAMPLE_ENTRIES
        ? MAX_SAMPLE_ENTRIES
        : left > -FULL_SAMPLE_ENTRIES
          ? REDUCED_ENTRIES
          : MIN_ENTRIES;
    let count = 0;
    const put = (name: string | number, value: unknown): void => {
      count++;
      let shortened = value;
      if (typeof value === "object" && value !== null) {
        const copy = Array.isArray(value) ? [] : {};
        waiting.push([value as Container, copy]);
        shortened = copy;
      }
      Object.defineProperty(to, name, {
        value: shortened,
        enumerable: true,
        configurable: true,
        writable: true,
      });
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

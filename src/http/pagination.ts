import { JSON_HEADERS } from "../schemas/error-responses.ts";

/** What is said of a page beside it. `next`: where the next one begins, if there is one. */
export function pageHeaders(next: number, total: number) {
  const headers = { ...JSON_HEADERS, "x-pagination-total": String(total) };
  return next < total ? { ...headers, "x-pagination-next": String(next) } : headers;
}

/** A record, or of it the fields that were asked for. */
export function pick(
  record: { readonly [field: string]: unknown },
  fields: readonly string[] | undefined,
): { readonly [field: string]: unknown } {
  if (fields === undefined || fields.length === 0) return record;
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(record, field)).map((f) => [f, record[f]]),
  );
}

/** What `map` makes of each, when it is asked for. */
export async function* mapped<T, U>(
  items: AsyncIterable<T> | Iterable<T>,
  map: (item: T) => U,
): AsyncGenerator<U> {
  for await (const item of items) yield map(item);
}

import { JSON_HEADERS } from "../schemas/error-to-response.ts";

/**
 * The pagination headers of a response. `next` is the offset of the next page; `x-pagination-next` is sent only if `next` is less than
 * `total`.
 */
export function paginationHeaders(next: number, total: number) {
  const headers = { "x-pagination-total": String(total), ...JSON_HEADERS };
  return next < total ? { "x-pagination-next": String(next), ...headers } : headers;
}

/** The named fields of a record; all fields if none are named. A field that the record does not have is left out. */
export function pickFields(
  record: { readonly [field: string]: unknown },
  fields: readonly string[] | undefined,
): { readonly [field: string]: unknown } {
  if (fields === undefined || fields.length === 0) return record;
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(record, field)).map((f) => [f, record[f]]),
  );
}

/** Applies `map` lazily: to each item when that item is requested. */
export async function* mapIterable<T, U>(
  items: AsyncIterable<T> | Iterable<T>,
  map: (item: T) => U,
): AsyncGenerator<U> {
  for await (const item of items) yield map(item);
}

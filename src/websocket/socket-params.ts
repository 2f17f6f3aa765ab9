import { invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import { invalidUuid } from "../schemas/error-to-response.ts";
import { QueryParams } from "../schemas/query-params.ts";
import { lastEventIdInHeader, lastEventIdInQuery } from "../schemas/stream-params.ts";

/** The maximum length of a socket's query, in characters. */
const MAX_QUERY_CHARACTERS = 4096;

/** Parses the query of a socket. @throws ServiceError `validation.failed` if it is too long */
export function parseSocketQuery(text: string): QueryParams {
  if (text.length > MAX_QUERY_CHARACTERS)
    throw invalidField("query", `is longer than ${MAX_QUERY_CHARACTERS} characters`);
  return new QueryParams(text);
}

/**
 * The number of the last event that the client has received: from the query parameter `last_event_id`, else from the header
 * `Last-Event-ID`. -1 if the client has received no events: the value is `-1` or `-`, or the header is not a number. Undefined if neither is
 * given.
 * @throws ServiceError `validation.failed`
 */
export function lastEventIdOf(query: QueryParams, header: string | undefined): number | undefined {
  return lastEventIdInQuery(query) ?? (header === undefined ? undefined : lastEventIdInHeader(header));
}

/** Parses a UUID from the path; `name` is its name in the error. @throws ServiceError `validation.failed` */
export function parsePathUuid(text: string | undefined, name: string): string {
  const id = parseUuid(text);
  if (id === undefined) throw invalidUuid(name);
  return id;
}

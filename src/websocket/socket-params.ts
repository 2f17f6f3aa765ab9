import { parseUuid } from "../model/ids.ts";
import type { StreamMode } from "../model/run.ts";
import { invalidField } from "../schemas/error-responses.ts";
import { QueryParams } from "../schemas/query.ts";
import { lastEventIdInHeader, lastEventIdInQuery, streamModesOf } from "../schemas/stream-params.ts";

export interface SocketParams {
  /** The id of the last event that the client has; undefined: not given. */
  readonly after: number | undefined;
  /** The stream modes; undefined: the run's own. */
  readonly modes: readonly StreamMode[] | undefined;
}

/** Characters of the longest query that is parsed. */
const MAX_QUERY_CHARACTERS = 4096;

/**
 * Reads `last_event_id` (absent: the header of that name; `-1` and `-`: from the start) and `stream_mode` (repeated,
 * a comma-separated list or a JSON array; absent: the run's own).
 * @throws ServiceError `validation.failed`
 */
export function readSocketParams(text: string, lastEventId: string | undefined): SocketParams {
  if (text.length > MAX_QUERY_CHARACTERS)
    throw invalidField("query", `is longer than ${MAX_QUERY_CHARACTERS} characters`);
  const query = new QueryParams(text);
  const header = lastEventId === undefined ? undefined : lastEventIdInHeader(lastEventId);
  return { after: lastEventIdInQuery(query) ?? header, modes: streamModesOf(query) };
}

/** Parses a UUID in the path. @throws ServiceError `validation.failed` */
export function uuidOf(text: string | undefined, name: string): string {
  const id = parseUuid(text);
  if (id === undefined) throw invalidField(name, "is not a UUID");
  return id;
}

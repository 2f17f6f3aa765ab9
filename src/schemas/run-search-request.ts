import { invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import type { RunSearchQuery } from "../service/runs.ts";
import type { RawBody } from "./read-body.ts";
import { PAGE_LIMITS, runSearchSchema } from "./request-schemas.ts";
import { parseTime } from "./parse-time.ts";

/** Matches a cursor. Cursors are keys of an index, which contain no other characters. */
const CURSOR = /^[0-9A-Za-z_.:|%/-]+$/;

/** Parses the body of a search for runs. @throws ServiceError `validation.failed` */
export function parseRunSearch(body: RawBody): RunSearchQuery {
  const {
    limit = PAGE_LIMITS.initial,
    cursor,
    sort_by: _,
    created_after,
    created_before,
    thread_id,
    assistant_id,
    ...rest
  } = runSearchSchema.parse(body);
  if (cursor !== undefined && !CURSOR.test(cursor))
    throw invalidField("cursor", "must be the x-pagination-next of the page before");
  // A time before 1970 becomes 0, because the index has no earlier times.
  const timeOf = (at: string, text: string) => Math.max(0, Math.ceil(parseTime(at, text)));
  return {
    ...rest,
    limit,
    ...(cursor !== undefined && { cursor }),
    ...(thread_id !== undefined && { thread_id: parseUuid(thread_id) ?? thread_id }),
    ...(assistant_id !== undefined && { assistant_id: parseUuid(assistant_id) ?? assistant_id }),
    ...(created_after !== undefined && { created_after: timeOf("created_after", created_after) }),
    ...(created_before !== undefined && { created_before: timeOf("created_before", created_before) }),
  };
}

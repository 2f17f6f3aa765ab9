import { type StreamMode, streamModes } from "../model/run.ts";
import { invalidField } from "./errors.ts";
import type { Query } from "./query.ts";

const EVENT_ID = /^\d{1,15}$/;

/** The header's id to go on after. Anything that is no id means from the start: better twice than a silent gap. */
export function afterHeader(header: string | undefined): number {
  return header !== undefined && EVENT_ID.test(header) ? Number(header) : -1;
}

/**
 * The query's `last_event_id`; `-1` and `-`: from the start. Undefined where there is none.
 * @throws ServiceError `validation.failed`
 */
export function afterQuery(query: Query): number | undefined {
  const text = query.text("last_event_id");
  if (text === undefined || text === "") return undefined;
  if (text === "-1" || text === "-") return -1;
  if (!EVENT_ID.test(text)) throw invalidField("last_event_id", "must be -1 or the id of an event");
  return Number(text);
}

/** The query's filter `stream_mode`; undefined where there is none. @throws ServiceError `validation.failed` */
export function modesOf(query: Query): readonly StreamMode[] | undefined {
  const names = query.list("stream_mode");
  if (names.length === 0) return undefined;
  return names.map((name): StreamMode => {
    const found = streamModes.find((mode) => mode === name);
    if (found !== undefined) return found;
    throw invalidField("stream_mode", `"${name.slice(0, 40)}" must be one of ${streamModes.join(", ")}`);
  });
}

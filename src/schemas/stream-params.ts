import { invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import {
  type StreamMode,
  streamModes,
  type ThreadMode,
  threadModes,
  type RequestedThreadModes,
} from "../model/run.ts";
import { invalidUuid } from "./error-to-response.ts";
import type { QueryParams } from "./query-params.ts";

const EVENT_ID = /^\d{1,15}$/;

/**
 * The number of the event after which the stream continues, from the header `Last-Event-ID`. If the header is absent or not a number, -1:
 * the stream begins at the first event, because repeated events are better than a gap that nobody notices.
 */
export function lastEventIdInHeader(header: string | undefined): number {
  return header !== undefined && EVENT_ID.test(header) ? Number(header) : -1;
}

/**
 * The number of the event after which the stream continues, from the query parameter `last_event_id`. -1 if its value is `-1` or `-`: the
 * stream begins at the first event. Undefined if it is absent.
 * @throws ServiceError `validation.failed`
 */
export function lastEventIdInQuery(query: QueryParams): number | undefined {
  const text = query.text("last_event_id");
  if (text === undefined || text === "") return undefined;
  if (text === "-1" || text === "-") return -1;
  if (!EVENT_ID.test(text)) throw invalidField("last_event_id", "must be -1 or the id of an event");
  return Number(text);
}

/**
 * The modes of a thread's stream, from the query parameters `stream_mode` and `stream_modes`. Default: the events of all runs of the
 * thread, each run in the stream modes of the request that started it.
 * @throws ServiceError `validation.failed`
 */
export function threadModesOf(
  query: QueryParams,
  accepted: readonly (ThreadMode | StreamMode)[],
): RequestedThreadModes {
  const modes = new Set<ThreadMode>();
  const runModes: StreamMode[] = [];
  for (const field of ["stream_mode", "stream_modes"]) {
    for (const name of query.list(field)) {
      const mode = modeOf(field, name, accepted);
      if (isThreadMode(mode)) modes.add(mode);
      else runModes.push(mode);
    }
  }
  if (modes.size === 0 && runModes.length === 0) modes.add("run_modes");
  return { modes, runModes };
}

/** The stream modes in the query parameter `stream_mode`; undefined if it is absent. @throws ServiceError `validation.failed` */
export function streamModesOf(query: QueryParams): readonly StreamMode[] | undefined {
  const names = query.list("stream_mode");
  return names.length === 0 ? undefined : names.map((name) => modeOf("stream_mode", name, streamModes));
}

/** Returns the mode with the name `name`, if it is one of `accepted`. @throws ServiceError `validation.failed` */
function modeOf<Mode extends string>(field: string, name: string, accepted: readonly Mode[]): Mode {
  const found = accepted.find((mode) => mode === name);
  if (found !== undefined) return found;
  throw invalidField(field, `"${name.slice(0, 40)}" must be one of ${accepted.join(", ")}`);
}

const isThreadMode = (mode: ThreadMode | StreamMode): mode is ThreadMode =>
  (threadModes as readonly string[]).includes(mode);

/** The largest number of namespaces that a query may name. */
const MAX_NAMESPACES = 100;
/** The maximum length of a namespace, in characters. */
const MAX_NAMESPACE_CHARACTERS = 2_000;

/**
 * The namespaces in the query parameter `namespace`, which may be repeated; undefined if it is absent.
 * @throws ServiceError `validation.failed`
 */
export function namespacesOf(query: QueryParams): readonly string[] | undefined {
  const names = query.all("namespace");
  if (names.length === 0) return undefined;
  if (names.length > MAX_NAMESPACES || names.some(({ length }) => length > MAX_NAMESPACE_CHARACTERS)) {
    const most = `${MAX_NAMESPACES} names of up to ${MAX_NAMESPACE_CHARACTERS} characters`;
    throw invalidField("namespace", `must be at most ${most}`);
  }
  return names;
}

/**
 * The id of the checkpoint whose state the client already has, from the query parameter `checkpoint_id`; undefined if it is absent.
 * @throws ServiceError `validation.failed`
 */
export function checkpointIdOf(query: QueryParams): string | undefined {
  const text = query.text("checkpoint_id");
  if (text === undefined || text === "") return undefined;
  const id = parseUuid(text);
  if (id === undefined) throw invalidUuid("checkpoint_id");
  return id;
}

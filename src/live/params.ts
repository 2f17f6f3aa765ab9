import { type FieldError, ServiceError } from "../model/errors.ts";
import { type StreamMode, streamModes } from "../model/run.ts";

export interface MirrorParams {
  readonly after: number;
  /** Undefined: the run's own. */
  readonly modes: readonly StreamMode[] | undefined;
}

/** Longest query that is looked at. */
const LONGEST = 4096;

/**
 * Reads `last_event_id` (absent: as the header of that name says; `-1` and `-`: from the start) and `stream_mode` (repeated,
 * a comma list or a JSON array; absent: the run's own).
 * @throws ServiceError `validation.failed`
 */
export function mirrorParams(query: string, lastEventId: string | undefined): MirrorParams {
  if (query.length > LONGEST) throw refusal("query", `is longer than ${LONGEST} characters`);
  const params = new URLSearchParams(query);
  return {
    after: afterOf(params.get("last_event_id")) ?? headerOf(lastEventId),
    modes: modesOf(params.getAll("stream_mode")),
  };
}

const EVENT_ID = /^\d{1,15}$/;

function afterOf(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  if (text === "-1" || text === "-") return -1;
  if (!EVENT_ID.test(text)) throw refusal("last_event_id", "must be -1 or the id of an event");
  return Number(text);
}

/** As for server-sent events: what is no id means from the start. */
function headerOf(text: string | undefined): number {
  return text !== undefined && EVENT_ID.test(text) ? Number(text) : -1;
}

function modesOf(texts: readonly string[]): readonly StreamMode[] | undefined {
  const names = texts.flatMap(listOf).filter((name) => name !== "");
  if (names.length === 0) return undefined;
  return names.map((name) => {
    const mode = streamModes.find((known) => known === name);
    if (mode !== undefined) return mode;
    throw refusal("stream_mode", `"${name.slice(0, 40)}" is unknown; choose from ${streamModes.join(", ")}`);
  });
}

function listOf(text: string): string[] {
  if (!text.startsWith("[")) return text.split(",").map((name) => name.trim());
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (cause) {
    throw refusal("stream_mode", "is not a JSON array", cause);
  }
  if (!Array.isArray(list) || !list.every((name) => typeof name === "string")) {
    throw refusal("stream_mode", "must be an array of strings");
  }
  return list;
}

function refusal(at: string, message: string, cause?: unknown): ServiceError {
  const fields: FieldError[] = [{ at, message }];
  return new ServiceError("validation.failed", `${at} ${message}`, { cause, fields });
}

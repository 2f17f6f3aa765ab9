import { type FieldError, ServiceError } from "../model/errors.ts";
import type { StreamMode } from "../model/run.ts";
import { rendered } from "../stream/modes.ts";

const MODES = {
  values: true,
  updates: true,
  messages: true,
  "messages-tuple": true,
  custom: true,
  debug: true,
  tasks: true,
  checkpoints: true,
  events: true,
} as const satisfies Record<StreamMode, true>;

const allModes = (Object.keys(MODES) as StreamMode[]).filter((mode) => rendered.has(mode));

export interface MirrorParams {
  readonly after: number;
  readonly modes: readonly StreamMode[];
}

/** Longest query that is looked at. */
const LONGEST = 4096;

/**
 * Reads `last_event_id` (absent and `-1`: from the start) and `stream_mode` (repeated, a comma list or a JSON array;
 * absent: all).
 * @throws ServiceError `validation.failed`
 */
export function mirrorParams(query: string): MirrorParams {
  if (query.length > LONGEST) throw refusal("query", `is longer than ${LONGEST} characters`);
  const params = new URLSearchParams(query);
  return { after: afterOf(params.get("last_event_id")), modes: modesOf(params.getAll("stream_mode")) };
}

function afterOf(text: string | null): number {
  if (text === null || text === "" || text === "-1") return -1;
  if (!/^\d{1,15}$/.test(text)) throw refusal("last_event_id", "must be -1 or the id of an event");
  return Number(text);
}

function modesOf(texts: readonly string[]): readonly StreamMode[] {
  const names = texts.flatMap(listOf).filter((name) => name !== "");
  if (names.length === 0) return allModes;
  return names.map((name) => {
    if (!Object.hasOwn(MODES, name)) {
      throw refusal("stream_mode", `"${name.slice(0, 40)}" is unknown; choose from ${allModes.join(", ")}`);
    }
    if (!rendered.has(name)) throw refusal("stream_mode", `"${name}" is not served yet`);
    return name as StreamMode;
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

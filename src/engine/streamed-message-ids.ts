import { uuid5 } from "../model/ids.ts";

/**
 * The length of the prefix that the message ids of one attempt of a task have in common. The rest of an id is the
 * number of the message.
 */
const PREFIX_LENGTH = 28;

/** The base id of one attempt of a task. The ids of the messages that the attempt streams are derived from it. */
export function streamedIdBase(task: string, attempt: number, attemptTry: number): string {
  return uuid5(`message:${attempt}:${attemptTry}`, task);
}

/**
 * The id of the message at `index` (from 0) of the attempt with the base id `ids`. It is known before the message's
 * first token, and is the same if the task runs again with the same attempt numbers, as after an interrupt.
 */
export function streamedId(ids: string, index: number): string {
  return ids.slice(0, PREFIX_LENGTH) + index.toString(16).padStart(8, "0");
}

/** True if the attempt of a task with the base id `ids` streamed the message `id`. */
export function isStreamedId(ids: string, id: string): boolean {
  return id.length === 36 && id.startsWith(ids.slice(0, PREFIX_LENGTH));
}

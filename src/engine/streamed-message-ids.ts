import { uuid5 } from "../model/ids.ts";

/** Characters of the common prefix of the message ids of one try of a task. The rest of an id is the message's number. */
const PREFIX_LENGTH = 28;

/** The base id of one try of a task. The ids of the messages that it streams are derived from it. */
export function streamedIdBase(task: string, attempt: number, attemptTry: number): string {
  return uuid5(`message:${attempt}:${attemptTry}`, task);
}

/** The id of the n-th message. It is known before the first token and is the same on a replay. */
export function streamedId(ids: string, index: number): string {
  return ids.slice(0, PREFIX_LENGTH) + index.toString(16).padStart(8, "0");
}

/** True if a message with this id was streamed by the try. Decided by the id alone, so that no list is needed. */
export function isStreamedId(ids: string, id: string): boolean {
  return id.length === 36 && id.startsWith(ids.slice(0, PREFIX_LENGTH));
}

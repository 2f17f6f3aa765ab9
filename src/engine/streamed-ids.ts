import { uuid5 } from "../model/ids.ts";

/** Characters: the common start of the ids of all messages that one try of a task streams. The rest is their number. */
const PREFIX_LENGTH = 28;

/** The id from which those of all messages that one try of a task streams are derived. */
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

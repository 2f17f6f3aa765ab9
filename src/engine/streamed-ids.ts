import { uuid5 } from "../model/ids.ts";

/** The part that the ids of all messages streamed by one attempt of a task share; their number is the rest. */
const SHARED = 28;

/** Where the ids of the messages come from that one try of a task streams. */
export function streamedIds(task: string, attempt: number, attemptTry: number): string {
  return uuid5(`message:${attempt}:${attemptTry}`, task);
}

/** The id of the n-th message: known before its first token, and the same on a replay. */
export function streamedId(ids: string, index: number): string {
  return ids.slice(0, SHARED) + index.toString(16).padStart(8, "0");
}

/** Was a message with this id streamed by the attempt? Told by the id alone: the host keeps no list. */
export function isStreamed(ids: string, id: string): boolean {
  return id.length === 36 && id.startsWith(ids.slice(0, SHARED));
}

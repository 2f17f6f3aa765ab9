import { runDeleted, threadDeleted } from "../model/errors.ts";
import type { PumpOutcome } from "../stream/stream-pump.ts";

type CloseFrame = readonly [code: number, reason: string];

/**
 * The close code and reason for each way in which a stream ends. Codes below 4000 are defined by RFC 6455 §7.4 or registered with IANA;
 * codes from 4000 on are Heddle's own.
 */
export const closeFrames: Readonly<Record<Exclude<PumpOutcome, "left">, CloseFrame>> = {
  ended: [1000, "The run has ended"],
  cut: [1012, "The stream was interrupted; connect again with last_event_id"],
  stalled: [1013, "Events were not taken for too long; connect again with last_event_id"],
  failed: [1011, "The events could not be read"],
  // 4404 corresponds to the HTTP status 404 that a new request for the deleted thread or run gets.
  thread_deleted: [4404, threadDeleted().message],
  run_deleted: [4404, runDeleted().message],
};

/** The close frame for a client whose socket is still open when the server stops. */
export const SERVER_STOPPING_CLOSE: CloseFrame = [1012, "The server is stopping; connect again"];

/** The close frame for a client that sends commands but does not read the answers. */
export const TOO_MANY_COMMANDS_CLOSE: CloseFrame = [1008, "Too many commands whose answers were not taken"];

/** The close frame for a client without valid credentials. Heddle's own close codes are 4000 plus the HTTP status for the same error. */
export const UNAUTHORIZED_CLOSE: CloseFrame = [4401, "A valid key or token is needed"];

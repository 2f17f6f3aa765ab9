import { runDeleted, threadDeleted } from "../model/errors.ts";
import type { Socket } from "../ports/transport.ts";
import type { PumpOutcome } from "../stream/stream-pump.ts";
import { failureDetailsOf } from "../schemas/error-to-response.ts";

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

/** The close frame for a client that sends commands but does not read the answers. */
export const TOO_MANY_COMMANDS_CLOSE: CloseFrame = [1008, "Too many commands whose answers were not taken"];

/** The close frame for a client without valid credentials. Heddle's own close codes are 4000 plus the HTTP status for the same error. */
export const UNAUTHORIZED_CLOSE: CloseFrame = [4401, "A valid key or token is needed"];

/** The maximum number of bytes of the reason in a close frame. */
const MAX_REASON_BYTES = 123;

/**
 * Closes a socket that cannot be served, with a code and a reason made from the error. If the error is not a server error and its text is
 * too long for the reason, the message `encodeError(cause)` is sent before.
 */
export function refuseSocket(
  socket: Socket,
  cause: unknown,
  encodeError: (cause: unknown) => string | Uint8Array,
): void {
  const { status, body } = failureDetailsOf(cause);
  if (status >= 500)
    return socket.close(status === 503 ? 1013 : 1011, body.detail.slice(0, MAX_REASON_BYTES));
  const { detail } = body;
  if (Buffer.byteLength(detail) <= MAX_REASON_BYTES) return socket.close(4000 + status, detail);
  socket.send(encodeError(cause));
  socket.close(4000 + status, `${detail.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, MAX_REASON_BYTES - 3)}...`);
}

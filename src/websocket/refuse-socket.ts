import type { Socket } from "../ports/transport.ts";
import { failureDetailsOf } from "../schemas/error-to-response.ts";

/** The maximum number of bytes of the reason in a close frame. */
const MAX_REASON_BYTES = 123;

/**
 * Closes a socket that cannot be served, with a code and a reason made from the error. If the error is not a server
 * error and its text is too long for the reason, the message `encodeError(cause)` is sent before.
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

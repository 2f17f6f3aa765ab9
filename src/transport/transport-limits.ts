/**
 * The maximum size of one WebSocket message from a client, in bytes. It is also the maximum total size of the unsent messages to a client.
 */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** The close code and reason after a client has sent a message that is too long. */
export const MESSAGE_TOO_LONG = [1009, "A message has at most 1 MiB"] as const;

/** Seconds after which a WebSocket is closed if its client has sent nothing, not even the answer to a ping. */
export const SOCKET_IDLE_SECONDS = 60;

/** If more bytes than this are unsent although the stream has reported backpressure, the connection is closed. */
export const MAX_UNSENT_BYTES = 1024 * 1024;

/** The maximum size of the headers of a request, in bytes. */
export const MAX_HEAD_BYTES = 16 * 1024;
/** The largest number of headers in a request. */
export const MAX_HEADERS = 100;

/**
 * The maximum time, in milliseconds, in which a request line with its headers must arrive completely. It is also the longest pause between
 * two requests on one connection.
 */
export const HEAD_TIMEOUT_MS = 10_000;

/** The minimum average speed at which a request body must arrive. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 16 * 1024;

/** The maximum number of file descriptors that are kept free for files and for connections that the server opens itself. */
const MAX_RESERVED_DESCRIPTORS = 4_096;

/**
 * The number of connections that may be open at once, if the process may have `descriptors` file descriptors. Without this limit,
 * connections could use up all descriptors. Then no file can be opened, and a connection that cannot be accepted wakes the process again
 * and again.
 */
export const maxConnectionsOf = (descriptors: number): number =>
  Math.max(1, descriptors - Math.min(Math.ceil(descriptors / 3), MAX_RESERVED_DESCRIPTORS));

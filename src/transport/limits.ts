/** The maximum size of one WebSocket message, in bytes. It is also the maximum total size of the messages that wait for a client. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** The close code and reason after a message that was too long. */
export const MESSAGE_TOO_LONG = [1009, "A message has at most 1 MiB"] as const;

/** Seconds after which a WebSocket is closed if its client answers no ping. */
export const SOCKET_IDLE_SECONDS = 60;

/** The number of bytes that a stream accepts after it has reported backpressure. If the writer sends more, the connection is closed. */
export const MAX_UNSENT_BYTES = 1024 * 1024;

/** The maximum size of a request line and its headers, in bytes. */
export const MAX_HEAD_BYTES = 16 * 1024;
/** The largest number of headers of a request. */
export const MAX_HEADERS = 100;

/**
 * The maximum time, in milliseconds, for a request line with its headers to arrive completely. It is also the longest pause between two
 * requests of one connection.
 */
export const HEAD_TIMEOUT_MS = 10_000;

/** The slowest speed at which a body may arrive. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 16 * 1024;

/** The maximum number of file descriptors that are reserved for files and for connections that the server opens itself. */
const MAX_RESERVED_DESCRIPTORS = 4_096;

/**
 * The number of connections that may be open at once, given the number of file descriptors that the process may have. Without this limit,
 * all descriptors could be used up. A connection that cannot be accepted then wakes the process again and again, and no file can be opened.
 */
export const maxConnectionsOf = (descriptors: number): number =>
  Math.max(1, descriptors - Math.min(Math.ceil(descriptors / 3), MAX_RESERVED_DESCRIPTORS));

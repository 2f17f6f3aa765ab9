/** Bytes of one WebSocket message, and of what may wait for a WebSocket's peer. */
export const MAX_MESSAGE = 1024 * 1024;

/** How one is told that its message was longer. */
export const TOO_LONG = [1009, "A message has at most 1 MiB"] as const;

/** Seconds after which a WebSocket whose peer answers no ping is closed. */
export const SOCKET_IDLE = 60;

/** Bytes that a stream takes although it has said that its peer does not keep up; then the connection is cut. */
export const MAX_HELD = 1024 * 1024;

/** Bytes of a request's head, and how many headers are in it. */
export const MAX_HEAD = 16 * 1024;
export const MAX_HEADERS = 100;

/** Milliseconds for a whole head, and between two requests of one connection. */
export const HEAD_TIME = 10_000;

/** Slowest upload, in bytes a second. */
export const MIN_UPLOAD = 16 * 1024;

/** Descriptors that are kept for files, and for connections that the server opens itself. */
const MOST_KEPT = 4_096;

/**
 * How many connections may be open where the process may have so many descriptors. Where one cannot be accepted for want of a
 * descriptor, it waits, and wakes the process again at once, for ever; and files cannot be opened.
 */
export const connectionsWith = (descriptors: number): number =>
  Math.max(1, descriptors - Math.min(Math.ceil(descriptors / 3), MOST_KEPT));

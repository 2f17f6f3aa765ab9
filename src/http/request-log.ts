import type { ByteStream, HttpRequest, Reply } from "../ports/transport.ts";
import type { HttpDeps } from "./deps.ts";

/** The client of a logged request. Tenant and user may become known only after the request was passed to {@link loggedReply}. */
export interface LoggedClient {
  readonly id: string;
  /** Undefined until the client is authenticated. */
  tenant: string | undefined;
  /** The identity of the user, if the request comes from one. */
  user?: string;
  /** When the request arrived: milliseconds of the monotonic clock. The request may have waited in a queue since then. */
  readonly came: number;
}

/** The maximum number of characters of a path that are logged. */
const MAX_LOGGED_CHARACTERS = 300;

/**
 * Wraps a reply so that one line is logged when the response ends or the client disconnects. The line never contains headers, the query or
 * a body, because these may contain keys, tokens or state.
 */
export function loggedReply(
  { clock, logger, requestLog }: Pick<HttpDeps, "clock" | "logger" | "requestLog">,
  request: HttpRequest,
  reply: Reply,
  client: LoggedClient,
): Reply {
  const { id, came } = client;
  const { method, path } = request;
  let status = 0;
  let bytes = 0;
  let over = false;
  let onAbort: (() => void) | undefined;
  const end = (how: { readonly left?: true; readonly cut?: true } = {}) => {
    if (over) return;
    over = true;
    const ms = Math.round((clock.mono() - came) * 1000) / 1000;
    const fields = {
      method,
      path: path.slice(0, MAX_LOGGED_CHARACTERS),
      status,
      ms,
      bytes,
      request_id: id,
      tenant: client.tenant,
      ...(client.user !== undefined && { user: client.user }),
    };
    logger[requestLog]("request", { ...fields, ...how });
  };
  reply.onAbort(() => {
    end({ left: true });
    onAbort?.();
  });

  const counted = (stream: ByteStream): ByteStream => ({
    write(piece) {
      bytes += Buffer.byteLength(piece);
      return stream.write(piece);
    },
    onDrain: (listener) => stream.onDrain(listener),
    end(piece) {
      bytes += piece === undefined ? 0 : Buffer.byteLength(piece);
      stream.end(piece);
      end();
    },
    close() {
      stream.close();
      end({ cut: true });
    },
  });

  return {
    send(code, headers, body) {
      status = code;
      bytes = body === undefined || method === "HEAD" ? 0 : Buffer.byteLength(body);
      reply.send(code, headers, body);
      end();
    },
    open(code, headers, first) {
      status = code;
      bytes = Buffer.byteLength(first);
      return counted(reply.open(code, headers, first));
    },
    onAbort(listener) {
      onAbort = listener;
    },
    get aborted() {
      return reply.aborted;
    },
    get isPeerLost() {
      return reply.isPeerLost === true;
    },
  };
}

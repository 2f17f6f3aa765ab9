import type { ByteStream, HttpRequest, Reply } from "../ports/transport.ts";
import type { HttpDeps } from "./deps.ts";

interface Who {
  readonly id: string;
  /** Undefined: nobody whom we know. */
  readonly tenant: string | undefined;
  /** When the request came, by the clock's `mono`: it may have waited for its turn. */
  readonly came: number;
}

/** Characters of a path that are logged. */
const LONGEST = 300;

/**
 * The same reply, which logs a line once it has ended: never a header, a query or a body, since keys, tokens and state may
 * be in them.
 */
export function loggedReply(
  { clock, logger, requestLog }: Pick<HttpDeps, "clock" | "logger" | "requestLog">,
  request: HttpRequest,
  reply: Reply,
  { id, tenant, came }: Who,
): Reply {
  const { method, path } = request;
  let status = 0;
  let bytes = 0;
  let over = false;
  let onAbort: (() => void) | undefined;
  const end = (how: { readonly left?: true; readonly cut?: true } = {}) => {
    if (over) return;
    over = true;
    const ms = Math.round((clock.mono() - came) * 1000) / 1000;
    const fields = { method, path: path.slice(0, LONGEST), status, ms, bytes, request_id: id, tenant };
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
  };
}

import { ServiceError } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Door } from "../door/door.ts";
import type { Journal } from "../ports/journal.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Handlers, Socket, Upgrade } from "../ports/transport.ts";
import type { Hub } from "../stream/hub.ts";
import { frames, viewOf } from "../stream/view.ts";
import { mirror } from "./mirror.ts";
import { type MirrorParams, mirrorParams } from "./params.ts";

export interface UpgradeDeps {
  readonly journal: Journal;
  readonly hub: Hub;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly door: Door;
  /** Shows live actors. */
  readonly inspect: (socket: Socket, tenant: string, query: string) => void;
  /** At which level connections are logged. */
  readonly requestLog: LogLevel;
}

const RUN = /^\/threads\/([^/]+)\/runs\/([^/]+)\/stream$/;

/** Close codes are 4000 + the status that the same request would get over HTTP. */
const UNAUTHORIZED = 4401;
const UNKNOWN = 4404;
const INVALID = 4422;

/** Routes WebSockets. What is wrong with a known address is told by a close code: browsers show no refused upgrade. */
export function createUpgrade(deps: UpgradeDeps): Handlers["upgrade"] {
  const { door, logger, requestLog } = deps;
  return (request) => {
    const { tenant, refusal } = door.meetSocket(request);
    logger[requestLog]("socket", { path: request.path.slice(0, 300), tenant, refused: refusal?.message });
    // A foreign page gets no socket at all.
    if (refusal !== undefined) return refuse(403, refusal.message);
    // Clients that are told by a code stop; after a refused upgrade they try for ever.
    if (tenant === undefined) {
      return {
        kind: "accept",
        open: (socket) => socket.close(UNAUTHORIZED, "A valid key or token is needed"),
      };
    }
    const path = door.path(request.path) ?? "";
    if (path === "/inspect") {
      const { query } = request;
      return { kind: "accept", open: (socket) => deps.inspect(socket, tenant, query) };
    }
    const match = RUN.exec(path);
    if (match === null) return refuse(404, `There is no WebSocket at ${request.path.slice(0, 200)}`);
    // The request is gone once this call has returned.
    const { query } = request;
    const lastEventId = request.header("last-event-id");
    return {
      kind: "accept",
      open(socket) {
        openMirror(deps, socket, { tenant, thread: match[1] ?? "", run: match[2] ?? "", query, lastEventId });
      },
    };
  };
}

function refuse(status: number, detail: string): Upgrade {
  const headers = { "content-type": "application/json" };
  return { kind: "refuse", status, headers, body: JSON.stringify({ detail }) };
}

interface Address {
  readonly tenant: string;
  readonly thread: string;
  readonly run: string;
  readonly query: string;
  readonly lastEventId: string | undefined;
}

function openMirror(deps: UpgradeDeps, socket: Socket, address: Address): void {
  const { tenant, thread, run, query, lastEventId } = address;
  const threadId = parseUuid(thread);
  const runId = parseUuid(run);
  if (threadId === undefined) return socket.close(INVALID, "thread_id is not a UUID");
  if (runId === undefined) return socket.close(INVALID, "run_id is not a UUID");
  let params: MirrorParams;
  try {
    params = mirrorParams(query, lastEventId);
  } catch (cause) {
    return socket.close(INVALID, reasonOf(cause));
  }
  const key: ThreadKey = { tenant, thread: threadId };
  let gone = false;
  socket.onClose(() => (gone = true));
  find(deps.journal, key, runId).then(
    (found) => {
      if (gone) return;
      if (typeof found === "string") return socket.close(UNKNOWN, found);
      const reader = deps.hub.follow(key, found, { after: params.after ?? -1 });
      const view = viewOf(params.modes ?? found.kwargs.stream_mode, found.kwargs.subgraphs, frames);
      mirror(reader, socket, view, { scheduler: deps.scheduler, logger: deps.logger });
    },
    (cause: unknown) => {
      deps.logger.error("a run to be mirrored could not be read", { run: runId, error: String(cause) });
      if (!gone) socket.close(1011, "The run could not be read");
    },
  );
}

/** The run, or what is unknown. */
async function find(journal: Journal, key: ThreadKey, run: string): Promise<RunRecord | string> {
  const found = await journal.run(key, run);
  if (found !== undefined) return found;
  const thread = await journal.thread(key);
  return thread === undefined ? `Thread with ID ${key.thread} not found` : `Run ${run} not found`;
}

/** Bytes that a close frame's reason may have. */
const REASON = 123;

function reasonOf(cause: unknown): string {
  const text = cause instanceof ServiceError ? cause.message : "The parameters are not valid";
  return Buffer.byteLength(text) <= REASON ? text : text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, REASON);
}

import { ServiceError, threadNotFound } from "../model/errors.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import type { Socket } from "../ports/transport.ts";
import { frameFormat } from "../stream/websocket-frames.ts";
import { createView, render } from "../stream/rendering.ts";
import type { AcceptedUpgrade, WebSocketDeps } from "./deps.ts";
import { sendEvents } from "./send-events.ts";
import { readSocketParams, uuidOf } from "./socket-params.ts";

/** Sends one run's events until the run ends. */
export async function openRunSocket(
  deps: WebSocketDeps,
  socket: Socket,
  asked: AcceptedUpgrade,
): Promise<void> {
  let gone = false;
  socket.onClose(() => (gone = true));
  const [thread, id] = asked.parts;
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(thread, "thread_id") };
  const runId = uuidOf(id, "run_id");
  const { after = -1, modes } = readSocketParams(asked.query, asked.lastEventId);
  const run = await find(deps.journal, key, runId);
  if (gone) return;
  const view = createView(modes ?? run.kwargs.stream_mode, run.kwargs.subgraphs, frameFormat(asked.packed));
  const { scheduler, logger } = deps;
  const memory = { budget: deps.streamMemory, tenant: key.tenant };
  const reader = deps.hub.follow(key, run, { after });
  sendEvents(reader, socket, (segment) => render(segment, view), { scheduler, memory, logger });
}

async function find(journal: Journal, key: ThreadKey, run: string): Promise<RunRecord> {
  const found = await journal.sharedRun(key, run);
  if (found !== undefined) return found;
  if ((await journal.thread(key)) === undefined) throw threadNotFound(key.thread);
  throw new ServiceError("run.not_found", `Run ${run} not found`);
}

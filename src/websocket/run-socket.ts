import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { frameFormat } from "../stream/websocket-frames.ts";
import { streamModesOf } from "../schemas/stream-params.ts";
import { createView, render } from "../stream/rendering.ts";
import type { AcceptedUpgrade, SocketHandlerDeps } from "./deps.ts";
import { sendEvents } from "./send-events.ts";
import { lastEventIdOf, parseSocketQuery, uuidOf } from "./socket-params.ts";

/** Sends one run's events until the run ends. */
export async function openRunSocket(
  deps: SocketHandlerDeps,
  socket: Socket,
  asked: AcceptedUpgrade,
): Promise<void> {
  let gone = false;
  socket.onClose(() => (gone = true));
  const { runs } = asked.service;
  const [thread, id] = asked.parts;
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(thread, "thread_id") };
  const runId = uuidOf(id, "run_id");
  const query = parseSocketQuery(asked.query);
  const after = lastEventIdOf(query, asked.lastEventId) ?? -1;
  const modes = streamModesOf(query);
  const isWhole = query.flag("stream_subgraphs") ?? false;
  await runs.keepForReading(key, async () => {
    const run = await runs.findForReading(key, runId);
    if (gone) return;
    const subgraphs = isWhole || run.kwargs.subgraphs;
    const view = createView(modes ?? run.kwargs.stream_mode, subgraphs, frameFormat(asked.packed));
    const { scheduler, logger } = deps;
    const memory = { budget: deps.streamMemory, tenant: key.tenant };
    const reader = runs.follow(key, run, after);
    sendEvents(reader, socket, (segment) => render(segment, view), { scheduler, memory, logger });
  });
}

import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { webSocketFormat } from "../stream/websocket-frames.ts";
import { streamModesOf } from "../schemas/stream-params.ts";
import { createView, render } from "../stream/rendering.ts";
import type { AcceptedUpgrade, SocketHandlerDeps } from "./deps.ts";
import { sendEvents } from "./send-events.ts";
import { lastEventIdOf, parseSocketQuery, parsePathUuid } from "./socket-params.ts";

/** Sends the events of one run over a WebSocket until the run ends. */
export async function openRunSocket(
  deps: SocketHandlerDeps,
  socket: Socket,
  accepted: AcceptedUpgrade,
): Promise<void> {
  let gone = false;
  socket.onClose(() => (gone = true));
  const { runs } = accepted.service;
  const [thread, id] = accepted.parts;
  const key: ThreadKey = { tenant: accepted.tenant, thread: parsePathUuid(thread, "thread_id") };
  const runId = parsePathUuid(id, "run_id");
  const query = parseSocketQuery(accepted.query);
  const after = lastEventIdOf(query, accepted.lastEventId) ?? -1;
  const modes = streamModesOf(query);
  const isWhole = query.flag("stream_subgraphs") ?? false;
  await runs.keepForReading(key, async () => {
    const run = await runs.findForReading(key, runId);
    if (gone) return;
    const subgraphs = isWhole || run.kwargs.subgraphs;
    const view = createView(modes ?? run.kwargs.stream_mode, subgraphs, webSocketFormat(accepted.packed));
    const { scheduler, logger } = deps;
    const memory = { budget: deps.streamMemory, tenant: accepted.budgetOwner };
    const reader = runs.follow(key, run, after);
    sendEvents(reader, socket, (slice) => render(slice, view), { scheduler, memory, logger });
  });
}

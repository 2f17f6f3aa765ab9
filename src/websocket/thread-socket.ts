import type { JsonObject } from "../model/json.ts";
import { threadSocketModes } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { webSocketFormat } from "../stream/websocket-frames.ts";
import { showsRunEnds, createThreadRenderer } from "../stream/thread-stream-rendering.ts";
import { threadModesOf } from "../schemas/stream-params.ts";
import { createCommandHandler } from "./thread-socket-commands.ts";
import { CommandQueue } from "./command-queue.ts";
import type { AcceptedUpgrade, SocketHandlerDeps } from "./deps.ts";
import { type SendAnswer, sendEvents } from "./send-events.ts";
import { encodeAnswer, errorAnswerOf } from "./socket-answers.ts";
import { lastEventIdOf, parseSocketQuery, parsePathUuid } from "./socket-params.ts";

/** Sends the events of all runs of a thread over a WebSocket, and executes the commands that the client sends. */
export async function openThreadSocket(
  deps: SocketHandlerDeps,
  socket: Socket,
  accepted: AcceptedUpgrade,
): Promise<void> {
  const { scheduler, streamMemory: budget, logger } = deps;
  let gone = false;
  socket.onClose(() => (gone = true));
  const key: ThreadKey = { tenant: accepted.tenant, thread: parsePathUuid(accepted.parts[0], "thread_id") };
  const query = parseSocketQuery(accepted.query);
  const after = lastEventIdOf(query, accepted.lastEventId);
  const subgraphs = query.flag("stream_subgraphs") ?? false;
  const showsStates = query.flag("stream_states") ?? true;
  const modes = { ...threadModesOf(query, threadSocketModes), subgraphs, showsStates };
  const opened = accepted.service.runs
    .followThread(key, after, showsRunEnds(modes))
    .then((reader): SendAnswer | undefined => {
      if (gone) {
        reader.close();
        return undefined;
      }
      const render = createThreadRenderer(reader, modes, (run) => webSocketFormat(accepted.packed, run));
      return sendEvents(reader, socket, render, {
        scheduler,
        memory: { budget, tenant: accepted.budgetOwner },
        logger,
      });
    });
  const answer = async (reply: JsonObject) => (await opened)?.(encodeAnswer(accepted.packed, reply));
  const command = createCommandHandler(deps, accepted, key);
  const commands = new CommandQueue(
    async (id, body) => {
      // The command waits until the thread has been found.
      await opened;
      await answer({ type: "ack", id, ...(await command(body)) });
    },
    (id, cause) => {
      answer(errorAnswerOf(id, cause)).catch(() => undefined);
    },
    () => deps.budget.share(accepted.budgetOwner).next(),
  );
  socket.onMessage((message) => commands.take(message));
  await opened;
}

import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { packMessage } from "../codec/msgpack.ts";
import { frameFormat } from "../stream/websocket-frames.ts";
import { render } from "../stream/rendering.ts";
import { threadView } from "../stream/thread-stream-views.ts";
import { failureDetailsOf } from "../schemas/error-responses.ts";
import { createCommandHandler } from "./command-handler.ts";
import { PendingCommands } from "./pending-commands.ts";
import type { AcceptedUpgrade, WebSocketDeps } from "./deps.ts";
import { type SendAnswer, sendEvents } from "./send-events.ts";
import { readSocketParams, uuidOf } from "./socket-params.ts";

/** Sends the events of all runs of a thread, and executes commands. */
export async function openThreadSocket(
  deps: WebSocketDeps,
  socket: Socket,
  asked: AcceptedUpgrade,
): Promise<void> {
  const { scheduler, streamMemory: budget, logger } = deps;
  let gone = false;
  socket.onClose(() => (gone = true));
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(asked.parts[0], "thread_id") };
  const { after, modes } = readSocketParams(asked.query, asked.lastEventId);
  const opened = deps.runs.followThread(key, after).then((reader): SendAnswer | undefined => {
    if (gone) {
      reader.close();
      return undefined;
    }
    const view = threadView(reader, modes, (run) => frameFormat(asked.packed, run));
    return sendEvents(reader, socket, (segment) => render(segment, view()), {
      scheduler,
      memory: { budget, tenant: key.tenant },
      logger,
    });
  });
  const answer = async (told: JsonObject) =>
    (await opened)?.(asked.packed ? packMessage(told) : JSON.stringify(told));
  const command = createCommandHandler(deps, key);
  const commands = new PendingCommands(
    async (id, body) => {
      // Commands that come before the thread is found wait for it.
      await opened;
      await answer({ type: "ack", id, ...(await command(body)) });
    },
    (id, cause) => {
      const { status, body } = failureDetailsOf(cause);
      answer({ type: "error", id, status, ...body }).catch(() => undefined);
    },
    () => deps.budget.share(key.tenant).next(),
  );
  socket.onMessage((message) => commands.take(message));
  await opened;
}

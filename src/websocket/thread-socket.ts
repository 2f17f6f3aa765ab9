import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { packMessage } from "../codec/msgpack.ts";
import { frameFormat } from "../stream/websocket-frames.ts";
import { threadView } from "../stream/thread-stream-views.ts";
import { failureDetailsOf } from "../schemas/error-responses.ts";
import { TOO_MANY_COMMANDS } from "./close-codes.ts";
import { createCommandHandler } from "./command-handler.ts";
import { PendingCommands } from "./pending-commands.ts";
import type { AcceptedUpgrade, WebSocketDeps } from "./deps.ts";
import { type EventMirror, mirrorEvents } from "./event-sender.ts";
import { readSocketParams, uuidOf } from "./socket-params.ts";

/** Answers that a peer may leave unread. */
const UNTAKEN = 128;

/** Sends the events of all runs of a thread, and executes commands. */
export async function openThreadSocket(
  deps: WebSocketDeps,
  socket: Socket,
  asked: AcceptedUpgrade,
): Promise<void> {
  const { scheduler, logger } = deps;
  let gone = false;
  socket.onClose(() => (gone = true));
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(asked.parts[0], "thread_id") };
  const { after, modes } = readSocketParams(asked.query, asked.lastEventId);
  const opened = deps.runs.followThread(key, after).then((reader): EventMirror | undefined => {
    if (gone) {
      reader.close();
      return undefined;
    }
    const view = threadView(reader, modes, (run) => frameFormat(asked.packed, run));
    return mirrorEvents(reader, socket, view, { scheduler, logger });
  });
  const pack = (answer: JsonObject) => (asked.packed ? packMessage(answer) : JSON.stringify(answer));
  const answer = async (told: JsonObject) => {
    const untaken = (await opened)?.say(pack(told)) ?? 0;
    if (untaken > UNTAKEN) socket.close(...TOO_MANY_COMMANDS);
  };
  const command = createCommandHandler(deps, key);
  const commands = new PendingCommands(
    async (id, body) => answer({ type: "ack", id, ...(await command(body)) }),
    (id, cause) => {
      const { status, body } = failureDetailsOf(cause);
      answer({ type: "error", id, status, ...body }).catch(() => undefined);
    },
    () => deps.budget.share(key.tenant).next(),
  );
  // Commands that come before the thread is found wait for it.
  const found = opened.then(() => undefined);
  found.catch(() => undefined);
  socket.onMessage((message) => commands.take(message, found));
  await opened;
}

import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Socket } from "../ports/transport.ts";
import type { Frames } from "../stream/websocket-frames.ts";
import { type PumpOutput, StreamPump } from "../stream/stream-pump.ts";
import { parseCommand, executeCommand, errorAnswer, successAnswer } from "../schemas/protocol-commands.ts";
import type { RawBody } from "../schemas/body.ts";
import { SubscriptionFeed } from "./subscriptions.ts";
import { TOO_MANY_COMMANDS, refuseSocket } from "./close-codes.ts";
import { PendingCommands } from "./pending-commands.ts";
import type { AcceptedUpgrade, WebSocketDeps } from "./deps.ts";
import { SocketWriter } from "./socket-writer.ts";
import { uuidOf } from "./socket-params.ts";

/**
 * Milliseconds within which subscriptions are grouped: a client that reconnects makes all of its subscriptions again.
 */
const TOGETHER = 5;
/** Answers that a peer may leave unread. */
const UNTAKEN = 128;
/** Serves the thread-centric protocol (version 2): commands in, answers and events out. */
export async function openProtocolSocket(
  deps: WebSocketDeps,
  socket: Socket,
  asked: AcceptedUpgrade,
): Promise<void> {
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(asked.parts[0], "thread_id") };
  const { protocol, scheduler, budget, logger, requestLog } = deps;
  const feed = new SubscriptionFeed(protocol, key);
  const outlet = new SocketWriter(socket);
  // No `shed`: events for a slow peer stay buffered, because they depend on earlier ones and cannot be read again
  // from the middle.
  const kept: PumpOutput<Frames> = {
    put: (frames) => outlet.put(frames),
    flush: () => outlet.flush(),
    finish: (outcome) => outlet.finish(outcome),
  };
  const pump = new StreamPump(feed.reader, feed.render, kept, { scheduler, logger });
  let gone = false;
  let cancelStart: Cancel = () => undefined;
  socket.onDrain(pump.drained);
  socket.onClose(() => {
    gone = true;
    cancelStart();
    pump.left();
  });

  const say = (answer: JsonObject): void => {
    if (gone) return;
    outlet.say(JSON.stringify(answer));
    pump.nudge();
    if (outlet.backlog > UNTAKEN) socket.close(...TOO_MANY_COMMANDS);
  };

  async function done(body: RawBody): Promise<void> {
    const command = parseCommand(body);
    const { id, method, params } = command;
    logger[requestLog]("command", { thread: key.thread, type: method.slice(0, 40) });
    const answer = async (result: JsonObject) =>
      say(successAnswer(id, result, key.thread, await protocol.lastEventNumber(key)));
    switch (method) {
      case "subscription.subscribe":
        return answer({ subscription_id: feed.subscribe(params) });
      case "subscription.unsubscribe":
        if (feed.unsubscribe(params)) return answer({});
        return say(error(id, "no_such_subscription", "There is no such subscription on this socket"));
      case "subscription.reconnect":
        return say(error(id, "not_supported", "Subscribe again, with `since`: the last event that was seen"));
      default:
        return answer(await executeCommand(protocol, key, command));
    }
  }

  const commands = new PendingCommands(
    (_, body) => done(body),
    (id, cause) => say(errorAnswer(typeof id === "number" ? id : null, cause)),
    () => budget.share(key.tenant).next(),
    () => {
      cancelStart();
      cancelStart = scheduler.after(TOGETHER, () => {
        feed.start().catch((cause: unknown) => refuseSocket(socket, cause));
      });
    },
  );
  socket.onMessage((message) => commands.take(message, Promise.resolve()));
  pump.start();
}

const error = (id: number, error: string, message: string): JsonObject => ({
  type: "error",
  id,
  error,
  message,
});

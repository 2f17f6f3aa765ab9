import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Socket } from "../ports/transport.ts";
import {
  parseCommand,
  executeCommand,
  errorAnswer,
  successAnswer,
} from "../schemas/execute-protocol-command.ts";
import type { RawBody } from "../schemas/read-body.ts";
import { mayHaveLargeProtocolEvents } from "../stream/protocol/thread-protocol-rendering.ts";
import { SubscriptionFeed } from "./subscriptions.ts";
import { refuseSocket } from "./refuse-socket.ts";
import { CommandQueue } from "./command-queue.ts";
import type { AcceptedUpgrade, SocketHandlerDeps } from "./deps.ts";
import { sendEvents } from "./send-events.ts";
import { parsePathUuid } from "./socket-params.ts";

/**
 * Milliseconds for which new subscriptions are collected before they start together. A client that reconnects sends all of its
 * subscriptions one after the other.
 */
const COLLECT_MS = 5;

/** Encodes, as a message, the error for a socket that cannot be served. */
const encodeRefusal = (cause: unknown): string => JSON.stringify(errorAnswer(null, cause));

/** Serves the thread-centric protocol (version 2) over a WebSocket: executes commands, and sends answers and events. */
export async function openProtocolSocket(
  deps: SocketHandlerDeps,
  socket: Socket,
  accepted: AcceptedUpgrade,
): Promise<void> {
  const key: ThreadKey = { tenant: accepted.tenant, thread: parsePathUuid(accepted.parts[0], "thread_id") };
  const { protocol } = accepted.service;
  const { scheduler, budget, logger, requestLog } = deps;
  const feed = new SubscriptionFeed(protocol, key);
  let cancelStart: Cancel = () => undefined;
  const onDone = () => cancelStart();
  const memory = {
    budget: deps.streamMemory,
    tenant: accepted.budgetOwner,
    mayBeLarge: mayHaveLargeProtocolEvents,
  };
  // `false`: protocol events are computed from earlier events, so they cannot be read again from the middle of a run.
  const send = sendEvents(feed.reader, socket, feed.render, { scheduler, memory, logger, onDone }, false);
  const say = (answer: JsonObject): void => send(JSON.stringify(answer));

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
        return answer(await executeCommand(protocol, key, command, accepted.configurable, "socket"));
    }
  }

  const commands = new CommandQueue(
    (_, body) => done(body),
    (id, cause) => say(errorAnswer(typeof id === "number" ? id : null, cause)),
    () => budget.share(accepted.budgetOwner).next(),
    () => {
      cancelStart();
      cancelStart = scheduler.after(COLLECT_MS, () => {
        feed.start().catch((cause: unknown) => refuseSocket(socket, cause, encodeRefusal));
      });
    },
  );
  socket.onMessage((message) => commands.take(message));
}

const error = (id: number, error: string, message: string): JsonObject => ({
  type: "error",
  id,
  error,
  message,
});

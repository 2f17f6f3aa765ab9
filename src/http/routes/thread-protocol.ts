import { HEARTBEAT } from "../../codec/sse.ts";
import { ServiceError } from "../../model/errors.ts";
import { eventTestOf } from "../../stream/protocol/event-filter.ts";
import {
  mayHaveLargeProtocolEvents,
  createProtocolSseRenderer,
} from "../../stream/protocol/thread-protocol-rendering.ts";
import { failureDetailsOf } from "../../schemas/error-to-response.ts";
import {
  parseCommand,
  executeCommand,
  errorAnswer,
  successAnswer,
} from "../../schemas/execute-protocol-command.ts";
import { subscriptionOf } from "../../schemas/protocol-schemas.ts";
import { lastEventIdInHeader } from "../../schemas/stream-params.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { pumpRendered, SSE_HEADERS, streamStartHeaders } from "../sse.ts";

/** Routes of the thread-centric protocol (version 2) over HTTP. */
export function protocolRoutes({
  scheduler,
  budget: time,
  streamMemory: budget,
  logger,
  traffic,
  configurableHeaders,
  isForPeers,
}: RouteDeps): readonly Route[] {
  async function command(call: RouteCall): Promise<void> {
    const key = call.thread();
    const asked = parseCommand(await call.body());
    const { protocol } = call.service;
    try {
      if (asked.method.startsWith("subscription.")) {
        throw new ServiceError("unsupported", "Over HTTP a stream is subscribed to by opening it");
      }
      const result = await executeCommand(protocol, key, asked, configurableHeaders(call.request));
      call.json(successAnswer(asked.id, result, key.thread, await protocol.lastEventNumber(key)));
    } catch (cause) {
      // Temporary errors (429 and 5xx) are reported by the HTTP status, so that HTTP clients retry automatically.
      if (failureDetailsOf(cause).status >= 429) throw cause;
      call.json(errorAnswer(asked.id, cause));
    }
  }

  async function stream(call: RouteCall): Promise<void> {
    const key = call.thread();
    const subscription = subscriptionOf(await call.body());
    const { filter } = subscription;
    // Another process of this server that continues a broken stream for its client names the last event in this header, and leaves the
    // client's body as it is.
    const last = call.request.header("last-event-id");
    const since = last === undefined ? subscription.since : lastEventIdInHeader(last);
    const reader = await call.service.protocol.follow(key, {
      isNew: since === undefined,
      after: since === undefined ? [] : [since],
    });
    if (call.reply.aborted) return reader.close();
    const isWanted = eventTestOf(filter);
    const wanted = since ?? reader.cursor;
    const headers = { ...SSE_HEADERS, ...(isForPeers && streamStartHeaders(reader)) };
    const rendered = createProtocolSseRenderer(reader, (event) => event.seq > wanted && isWanted(event));
    const left = pumpRendered(reader, call.open(headers, HEARTBEAT), rendered, {
      scheduler,
      memory: { budget, tenant: call.budgetOwner, mayBeLarge: mayHaveLargeProtocolEvents },
      time: time.share(call.budgetOwner),
      logger,
      traffic,
    });
    call.reply.onAbort(left);
  }

  return [
    { method: "POST", path: "/threads/:thread_id/commands", access: "users", handle: command },
    { method: "POST", path: "/threads/:thread_id/stream/events", access: "users", handle: stream },
    // The same stream under the path that the protocol's specification names.
    { method: "POST", path: "/threads/:thread_id/stream", access: "users", handle: stream },
  ];
}

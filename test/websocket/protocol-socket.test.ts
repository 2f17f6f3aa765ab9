import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { ThreadProtocol } from "../../src/service/thread-protocol.ts";
import type { SocketHandlerDeps, SocketService } from "../../src/websocket/deps.ts";
import { openProtocolSocket } from "../../src/websocket/protocol-socket.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { FakeSocket } from "../stream/peers.ts";
import { HeldScheduler, KEY, Lines } from "../stream/support.ts";

test("an error that does not fit into the close reason is sent as an error of the protocol", async () => {
  const detail = "x".repeat(200);
  const scheduler = new HeldScheduler();
  const protocol: Partial<ThreadProtocol> = {
    follow: () => Promise.reject(new ServiceError("validation.failed", detail)),
    lastEventNumber: async () => 0,
  };
  const deps = {
    scheduler,
    budget: new TimeBudget(new SimulatedClock(), scheduler),
    streamMemory: new ResponseMemoryBudget(scheduler),
    logger: new Lines(),
    requestLog: "debug",
  } as Partial<SocketHandlerDeps> as SocketHandlerDeps;
  const socket = new FakeSocket();
  await openProtocolSocket(deps, socket, {
    tenant: KEY.tenant,
    user: undefined,
    budgetOwner: KEY.tenant,
    service: { protocol: protocol as ThreadProtocol } as SocketService,
    parts: [KEY.thread],
    query: "",
    lastEventId: undefined,
    configurable: undefined,
    packed: false,
  });
  socket.receive(
    JSON.stringify({ id: 1, method: "subscription.subscribe", params: { channels: ["values"] } }),
  );
  await scheduler.settle();
  await scheduler.pass(5);
  expect(socket.messages.map((message) => JSON.parse(message) as unknown)).toEqual([
    expect.objectContaining({ type: "success", id: 1 }),
    { type: "error", id: null, error: "invalid_argument", message: detail },
  ]);
  expect(socket.closed?.[0]).toBe(4422);
});

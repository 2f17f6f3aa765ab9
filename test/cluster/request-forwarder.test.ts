import { expect, test } from "vitest";
import { createRequestForwarder } from "../../src/cluster/request-forwarder.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import type { PeerReader, PeerResponse, Peers } from "../../src/ports/peers.ts";
import type { HttpRequest, Reply } from "../../src/ports/transport.ts";

const response = (status: number, type: string, read: (reader: PeerReader) => void): PeerResponse => ({
  status,
  headers: { "content-type": type },
  read: (reader) => void setImmediate(() => read(reader)),
  resume: () => undefined,
});

test("a stream that breaks before its first event, and is refused then, is answered by the refusal", async () => {
  const refusal = Buffer.from(JSON.stringify({ detail: "Thread not found", code: "thread.not_found" }));
  const responses = [
    response(200, "text/event-stream", (reader) => reader.broken()),
    response(404, "application/json", (reader) => {
      reader.piece(refusal);
      reader.end();
    }),
  ];
  const peers: Partial<Peers> = { request: async () => responses.shift() as PeerResponse };
  const forwarder = createRequestForwarder({
    own: undefined,
    count: 1,
    isOwner: () => false,
    peers: peers as Peers,
    newId: () => crypto.randomUUID(),
    clock: { now: () => 0, mono: () => 0 } as never,
    scheduler: systemScheduler,
  });
  const sent: unknown[] = [];
  const reply = {
    aborted: false,
    onAbort: () => undefined,
    send: (status: number, _: unknown, body: Uint8Array) => sent.push(status, Buffer.from(body).toString()),
    open: (status: number, _: unknown, first: Uint8Array) => {
      sent.push(status, Buffer.from(first).toString());
      return { write: () => true, onDrain: () => undefined, end: () => undefined, close: () => undefined };
    },
  } as unknown as Reply;
  const request = {
    method: "GET",
    path: "/threads/x/stream",
    query: "",
    header: () => undefined,
    headers: () => [],
  } as unknown as HttpRequest;
  await forwarder.request("x", request, reply, {
    client: { tenant: "t", user: undefined, id: "r", headers: {} },
    startsRun: false,
    count: () => undefined,
  });
  expect(sent).toEqual([404, refusal.toString()]);
});

import { expect, test } from "vitest";
import { createRequestForwarder } from "../../src/cluster/request-forwarder.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { PeerLost, type PeerReader, type PeerResponse, type Peers } from "../../src/ports/peers.ts";
import type { HttpRequest, Reply } from "../../src/ports/transport.ts";

const response = (status: number, type: string, read: (reader: PeerReader) => void): PeerResponse => ({
  status,
  headers: { "content-type": type },
  read: (reader) => void setImmediate(() => read(reader)),
  resume: () => undefined,
});

/** Forwards a request to a process that answers with each of `responses` in turn. Returns what the client gets. */
async function forwarded(
  request: Partial<HttpRequest>,
  responses: (PeerResponse | PeerLost)[],
  startsRun = false,
): Promise<readonly unknown[]> {
  const peers: Partial<Peers> = {
    request: async () => {
      const next = responses.shift();
      if (next instanceof PeerLost) throw next;
      return next as PeerResponse;
    },
  };
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
  const text = (bytes: Uint8Array | string) => Buffer.from(bytes as Uint8Array).toString();
  const reply = {
    aborted: false,
    onAbort: () => undefined,
    send: (status: number, _: unknown, body: Uint8Array) => sent.push(status, text(body)),
    open: (status: number, _: unknown, first: Uint8Array) => {
      sent.push(status, text(first));
      return {
        write: (bytes: Uint8Array) => sent.push(text(bytes)) > 0,
        onDrain: () => undefined,
        end: (bytes?: Uint8Array | string) => void (bytes && sent.push(text(bytes))),
        close: () => sent.push("cut"),
      };
    },
  } as unknown as Reply;
  const asked = { query: "", header: () => undefined, headers: () => [], body: async () => "{}", ...request };
  await forwarder.request("x", asked as unknown as HttpRequest, reply, {
    client: { tenant: "t", user: undefined, id: "r", headers: {} },
    startsRun,
    count: () => undefined,
  });
  return sent;
}

test("a stream that breaks before its first event, and is refused then, is answered by the refusal", async () => {
  const refusal = Buffer.from(JSON.stringify({ detail: "Thread not found", code: "thread.not_found" }));
  const responses = [
    response(200, "text/event-stream", (reader) => reader.broken()),
    response(404, "application/json", (reader) => {
      reader.piece(refusal);
      reader.end();
    }),
  ];
  const sent = await forwarded({ method: "GET", path: "/threads/x/stream" }, responses);
  expect(sent).toEqual([404, refusal.toString()]);
});

test("a wait whose response has begun is asked again until the new process accepts requests; a refusal is then its result", async () => {
  const refusal = Buffer.from(JSON.stringify({ detail: "The run is gone", code: "request.gone" }));
  const responses = [
    response(200, "application/json", (reader) => {
      reader.piece(Buffer.from("\n"));
      reader.broken();
    }),
    response(503, "application/json", (reader) => reader.end()),
    response(409, "application/json", (reader) => {
      reader.piece(refusal);
      reader.end();
    }),
  ];
  const sent = await forwarded({ method: "POST", path: "/runs/wait" }, responses, true);
  expect(sent).toEqual([
    200,
    "\n",
    JSON.stringify({ __error__: { error: "ServiceError", message: "The run is gone" } }),
  ]);
});

test("a request with an idempotency key that starts no run is not sent again, since the key is not heeded", async () => {
  const ended = response(200, "application/json", (reader) => {
    reader.piece(Buffer.from("{}"));
    reader.end();
  });
  const header = (name: string) => (name === "idempotency-key" ? "k" : undefined);
  const copy = { method: "POST", path: "/threads/x/copy", header };
  const lost = new PeerLost(true, undefined);
  await expect(forwarded(copy, [lost, ended])).rejects.toMatchObject({ code: "storage.unavailable" });
  expect(await forwarded({ ...copy, path: "/threads/x/runs" }, [lost, ended], true)).toEqual([200, "{}"]);
});

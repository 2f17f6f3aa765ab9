import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { respondToWebRequest, sendWebResponse } from "../../src/http/web-exchange.ts";
import { failureResponseOf } from "../../src/schemas/error-to-response.ts";
import { createBodyLimits } from "../../src/ports/body-memory.ts";
import { createBodyOpener } from "../../src/transport/request-body.ts";
import { openTransport } from "../../src/transport/open-transport.ts";
import { describeOverEachTransport } from "../transport/each.ts";
import { refuseUpgrades, scheduler, signal } from "../transport/rig.ts";

const host = "127.0.0.1";

describeOverEachTransport("the response of a project's application", (kind) => {
  /** Serves one response; resolves with its port, and with a promise of the end of its sending. */
  async function serving(response: () => Response) {
    const open = await openTransport(kind);
    const ended = signal();
    const options = { headers: {}, isHead: false, onAbort: () => undefined, onLateError: () => undefined };
    const transport = await open(
      {
        request: (_, reply) => {
          reply.onAbort(() => undefined);
          void sendWebResponse(response(), reply, options).then(ended.fire);
        },
        upgrade: refuseUpgrades,
      },
      { host, port: 0, maxBody: 1, scheduler },
    );
    onTestFinished(() => transport.close());
    return { port: transport.address.port, ended: ended.promise };
  }

  /** A client that reads nothing. */
  async function ask(port: number) {
    const socket = connect(port, host).pause();
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return socket;
  }

  test("is over when a client leaves that took no more of it", async () => {
    let pulls = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulls++;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const { port, ended } = await serving(() => new Response(body));
    const socket = await ask(port);
    let before = -1;
    // The buffers are full: nothing more was read between two polls.
    await expect.poll(() => before === (before = pulls), { interval: 100 }).toBe(true);
    socket.destroy();
    await ended;
  });

  test("of a known length is not read on when the client has left", async () => {
    let isCancelled = false;
    const pulled = signal();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from("half ")),
      pull: () => pulled.fire(),
      cancel: () => void (isCancelled = true),
    });
    const { port, ended } = await serving(() => new Response(body, { headers: { "content-length": "10" } }));
    const socket = await ask(port);
    await pulled.promise;
    socket.destroy();
    await ended;
    expect(isCancelled).toBe(true);
  });

  test("that is longer than it says is not gathered", async () => {
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(Buffer.from("more and ")),
    });
    const { port, ended } = await serving(() => new Response(body, { headers: { "content-length": "5" } }));
    const response = await fetch(`http://${host}:${port}`);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain("more and ");
    await reader?.cancel();
    await ended;
  });

  test("of a known length has it", async () => {
    const { port } = await serving(() => new Response("tea", { headers: { "content-length": "3" } }));
    const response = await fetch(`http://${host}:${port}`);
    expect([response.headers.get("content-length"), await response.text()]).toEqual(["3", "tea"]);
  });
});

describe("the body of a web request", () => {
  const MIB = 1024 * 1024;

  /** Responds with the length of the body, or with why it cannot be read. */
  function reader() {
    const openBody = createBodyOpener(createBodyLimits({ maxBody: 4 * MIB, maxBodies: 8 * MIB, scheduler }));
    const ask = async (body: unknown, { signal: left = new AbortController().signal } = {}) => {
      const init = { method: "POST", duplex: "half", body, signal: left } as RequestInit;
      return said(body instanceof Request ? body : new Request("http://localhost/", init));
    };
    const said = async (request: Request) => {
      const response = await respondToWebRequest(
        (asked, reply) =>
          void asked.body("one").then(
            (bytes) => reply.send(200, {}, String(bytes.length)),
            (cause: unknown) => {
              const { status, body: text } = failureResponseOf(cause);
              reply.send(status, {}, text);
            },
          ),
        request,
        openBody,
      );
      return `${response.status} ${await response.text()}`;
    };
    return ask;
  }

  /** A body of this many MiB, which ends on request. */
  function held(size: number) {
    const [taken, ended] = [signal(), signal()];
    let isCancelled = false;
    let left = size;
    const stream = new ReadableStream(
      {
        async pull(to) {
          if (left-- > 0) return to.enqueue(new Uint8Array(MIB));
          taken.fire();
          await ended.promise;
          to.close();
        },
        cancel: () => void (isCancelled = true),
      },
      { highWaterMark: 0 },
    );
    return { stream, taken: taken.promise, end: ended.fire, isCancelled: () => isCancelled };
  }

  test("is counted with all others: one for which there is no memory is refused, until one of them has been read", async () => {
    const ask = reader();
    // One tenant may have half of the eight MiB.
    const [first, second] = [held(3), held(3)];
    const one = ask(first.stream);
    await first.taken;
    expect(await ask(second.stream)).toMatch(/^429 .*server.busy/);
    expect(second.isCancelled()).toBe(true);
    expect(await ask("small")).toBe("200 5");
    first.end();
    expect(await one).toBe(`200 ${3 * MIB}`);
    const third = held(3);
    third.end();
    expect(await ask(third.stream)).toBe(`200 ${3 * MIB}`);
    expect(await ask(held(5).stream)).toMatch(/^413 /);
  });

  test("gives its memory back when the request is aborted", async () => {
    const ask = reader();
    const left = new AbortController();
    const first = held(3);
    const one = ask(first.stream, { signal: left.signal });
    await first.taken;
    expect(await ask(held(3).stream)).toMatch(/^429 /);
    left.abort(new Error("left"));
    await expect(one).rejects.toThrow("left");
    const other = held(3);
    other.end();
    expect(await ask(other.stream)).toBe(`200 ${3 * MIB}`);
  });

  test("is refused with 400 when it was read, is being read, breaks off, or is not bytes", async () => {
    const ask = reader();
    const [read, locked] = ["read", "locked"].map(
      (body) => new Request("http://localhost/", { method: "POST", body }),
    ) as [Request, Request];
    await read.text();
    locked.body?.getReader();
    for (const request of [read, locked]) expect(await ask(request)).toMatch(/^400 .*read already/);
    const failing = new ReadableStream({ pull: () => Promise.reject(new Error("lost")) });
    expect(await ask(failing)).toMatch(/^400 .*broken off/);
    const text = new ReadableStream({ start: (to) => to.enqueue("text") });
    expect(await ask(text)).toMatch(/^400 .*a chunk of the type string, not bytes/);
  });
});

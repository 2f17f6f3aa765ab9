import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { sendWebResponse } from "../../src/http/web-exchange.ts";
import { openTransport } from "../../src/transport/open-transport.ts";
import { describeOverEachTransport } from "../transport/each.ts";
import { refuseUpgrades, scheduler, signal } from "../transport/rig.ts";

const host = "127.0.0.1";

describeOverEachTransport("the response of a project's application", (kind) => {
  /** Serves one response; resolves with its port, and with when the sending of it ended. */
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
    // Full: nothing more was taken from it between two looks.
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

import type * as Uws from "uWebSockets.js";
import { expect, onTestFinished, test } from "vitest";
import type { Handlers } from "../../src/ports/transport.ts";
import { openTransport } from "../../src/transport/open-transport.ts";
import { transportContract } from "../contracts/transport.ts";
import { describeOverEachTransport } from "./each.ts";
import { echo, refuseUpgrades, scheduler } from "./rig.ts";
import { Wire } from "./wire.ts";

const uws = await openTransport();
const node = await openTransport("node");
describeOverEachTransport("the contract", (kind) => transportContract(kind, kind === "uws" ? uws : node));

test.runIf(uws.kind === "uws").each(["any", "a given"])(
  "uws: %s port is its own, also when somebody would share it",
  async (which) => {
    const raw = (await import(uws.why)) as typeof Uws;
    const options = { host: "127.0.0.1", maxBody: 1, scheduler };
    const handlers = { request: echo, upgrade: refuseUpgrades };
    const any = await uws(handlers, { ...options, port: 0 });
    const { port } = any.address;
    if (which === "a given") await any.close();
    const server = which === "any" ? any : await uws(handlers, { ...options, port });
    const other = raw.App();
    // Without the option for exclusive use, the port would be shared with others.
    expect(await new Promise((resolve) => other.listen("127.0.0.1", port, resolve))).toBe(false);
    await server.close();
  },
);

// uWebSockets drops it: clients should wait for the response, but not all do.
test("node: what a client sends with its handshake, and right after it, is not lost", async () => {
  const handlers: Handlers = {
    request: echo,
    upgrade: () => ({
      kind: "accept",
      open: (socket) => socket.onMessage((message) => void socket.send(message)),
    }),
  };
  const transport = await node(handlers, { host: "127.0.0.1", port: 0, maxBody: 1, scheduler });
  onTestFinished(() => transport.close());
  const client = await Wire.open(transport.address.port);
  // Masked with zeros, which changes nothing.
  const frame = (text: string) => `\u0081${String.fromCharCode(0x80 + text.length)}\0\0\0\0${text}`;
  const handshake =
    "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  client.send(handshake + frame("a"));
  client.send(frame("b"));
  const answer = await client.until((text) => text.endsWith("\u0001b"));
  client.socket.destroy();
  const [head, frames] = answer.split("\r\n\r\n");
  expect(head).toContain("101");
  expect(frames).toBe("\u0081\u0001a\u0081\u0001b");
});

test("the choice says which and why", async () => {
  expect((await openTransport("node")).why).toBe("asked for");
  expect(uws.why).not.toBe("");
});

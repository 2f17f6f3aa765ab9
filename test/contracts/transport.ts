import { describe, expect, test } from "vitest";
import type { TransportOpener } from "../../src/ports/transport.ts";
import { echo, refuseUpgrades, rig, scheduler, url } from "../transport/rig.ts";
import { bodyContract } from "./transport-bodies.ts";
import { framingContract } from "./transport-framing.ts";
import { requestContract } from "./transport-requests.ts";
import { socketContract } from "./transport-sockets.ts";
import { streamContract } from "./transport-streams.ts";

/** The contract of every transport; run for each one. */
export function transportContract(kind: string, open: TransportOpener): void {
  describe(`transport ${kind}`, () => {
    const made = rig(open);
    const { serve } = made;
    describe("requests", () => {
      requestContract(made);
    });
    describe("requests that can be read in two ways", () => {
      framingContract(made);
    });
    describe("the memory of bodies", () => {
      bodyContract(made);
    });
    describe("streams", () => {
      streamContract(made);
    });
    describe("WebSockets", () => {
      socketContract(made);
    });

    const listen = (host: string, port: number) =>
      open({ request: echo, upgrade: refuseUpgrades }, { host, port, maxBody: 1, scheduler });

    test("a port that is taken is refused with a message and the system's code", async () => {
      const { port } = (await serve(echo)).address;
      await expect(listen("127.0.0.1", port)).rejects.toMatchObject({
        code: "server.address",
        message: `Cannot listen at 127.0.0.1:${port}: port ${port} is taken`,
        cause: { code: "EADDRINUSE" },
      });
    });

    test.each([0, 7_999])(
      "an address of another machine is refused with a message and the system's code, at port %d",
      async (port) => {
        await expect(listen("192.0.2.1", port)).rejects.toMatchObject({
          code: "server.address",
          message: `Cannot listen at 192.0.2.1:${port}: 192.0.2.1 is not an address of this machine`,
          cause: { code: "EADDRNOTAVAIL" },
        });
        await expect(listen("2001:db8::1", port)).rejects.toMatchObject({
          message: expect.stringContaining(`Cannot listen at [2001:db8::1]:${port}: `),
        });
      },
    );

    test("an unknown host is refused with a message and the system's code", async () => {
      await expect(listen("no-such-host.invalid", 0)).rejects.toMatchObject({
        code: "server.address",
        // Without a name server it cannot be told.
        message: expect.stringMatching(/: (?:there is no host named|the address of) "no-such-host\.invalid"/),
        cause: { code: expect.stringMatching(/^(?:ENOTFOUND|EAI_AGAIN)$/) },
      });
    });

    test("a port is free at once when its server has closed, connections and all", async () => {
      const first = await serve(echo);
      expect((await fetch(url(first))).status).toBe(200);
      await first.close();
      const options = { host: "127.0.0.1", port: first.address.port, maxBody: 1, scheduler };
      const second = await open({ request: echo, upgrade: refuseUpgrades }, options);
      try {
        expect((await fetch(url(second))).status).toBe(200);
        await expect(open({ request: echo, upgrade: refuseUpgrades }, options)).rejects.toMatchObject({
          code: "server.address",
        });
      } finally {
        await second.close();
      }
    });

    test("a connection above the bound is closed at once, those that are open go on, a WebSocket counts while it is open", async () => {
      const transport = await made.serve(echo, () => ({ kind: "accept", open: () => undefined }), {
        maxConnections: 3,
      });
      const socket = await made.dial(transport);
      socket.send(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      expect(await socket.until((text) => text.includes("\r\n\r\n"))).toContain("101 Switching");
      const wire = await made.dial(transport);
      await made.dial(transport);
      for (let i = 0; i < 3; i++) expect(await (await made.dial(transport)).rest()).toBe("");
      wire.send("GET /on HTTP/1.1\r\nHost: x\r\n\r\n");
      expect(await wire.until((text) => text.includes("}"))).toContain('"/on"');
      expect(wire.closed).toBe(false);
      for (const gone of [socket, wire]) {
        gone.destroy();
        let answer = "";
        while (answer === "") {
          const next = await made.dial(transport);
          next.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
          answer = await next.until((text) => text.includes("}"));
        }
        expect(answer).toContain('"/next"');
      }
      expect(await (await made.dial(transport)).rest()).toBe("");
    });

    test("two in one process share nothing", async () => {
      const one = await serve((_, reply) => reply.send(200, {}, "one"));
      const two = await serve((_, reply) => reply.send(200, {}, "two"));
      expect(await (await fetch(url(one))).text()).toBe("one");
      await one.close();
      await one.close();
      expect(await (await fetch(url(two))).text()).toBe("two");
      await expect(fetch(url(one))).rejects.toThrow("fetch failed");
    });
  });
}

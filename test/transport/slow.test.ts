import { describe, expect, test } from "vitest";
import { openTransport } from "../../src/transport/open-transport.ts";
import { describeOverEachTransport } from "./each.ts";
import { echo, rig } from "./rig.ts";
import type { Wire } from "./wire.ts";

/**
 * Clients that send a little now and then, to hold connections. The limits are the platform's own, in real seconds:
 * this is for CI.
 */
// At once, because they only wait.
describe.concurrent("what a slow peer sends", () => {
  describeOverEachTransport("what a slow peer sends", (kind) => {
    const made = rig(async (...args) => (await openTransport(kind))(...args));

    /** Sends `piece` every second until the connection is closed; returns how many seconds that took. */
    async function drip(head: string, piece: string): Promise<number> {
      const transport = await made.serve(echo);
      const wire: Wire = await made.dial(transport);
      wire.send(head);
      const start = performance.now();
      const timer = setInterval(() => wire.send(piece), 1_000);
      await wire.rest();
      clearInterval(timer);
      return (performance.now() - start) / 1_000;
    }

    test.runIf(process.env["CI"] === "true")("what drips is cut off", { timeout: 60_000 }, async () => {
      const seconds = await Promise.all([
        // A head without an end, a body, the rest of a body that was refused, and nothing at all.
        drip("GET / HTTP/1.1\r\nHost: x\r\n", "a: b\r\n"),
        drip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n", "x"),
        drip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n", "x"),
        drip("", ""),
      ]);
      for (const each of seconds) expect(each).toBeLessThan(30);
    });
  });
});

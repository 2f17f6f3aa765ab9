import { describe } from "vitest";
import { openTransport } from "../../src/transport/open-transport.ts";

export type TransportKind = "uws" | "node";

const preferred = await openTransport();

/** Why uWebSockets cannot load here, with the server's own message; undefined if it can. */
const missing = preferred.kind === "uws" ? undefined : preferred.why;

const transports = (["uws", "node"] as const).map((transport) => {
  const isSkipped = transport === "uws" && missing !== undefined;
  return { transport, isSkipped, name: isSkipped ? `${transport} (skipped: ${missing})` : transport };
});

/** Runs a suite over each transport. Where uWebSockets cannot load, its half is skipped, and its title says why. */
export function describeOverEachTransport(title: string, suite: (transport: TransportKind) => void): void {
  for (const { transport, isSkipped, name } of transports) {
    describe.skipIf(isSkipped)(`${title} over ${name}`, () => {
      suite(transport);
    });
  }
}

import { describe } from "vitest";
import { isInCluster } from "../e2e/support/suite-variant.ts";
import { openTransport } from "../../src/transport/open-transport.ts";

export type TransportKind = "uws" | "node";

const preferred = await openTransport();

/** Why uWebSockets cannot load here, with the server's own message; undefined if it can. */
const missing = preferred.kind === "uws" ? undefined : preferred.why;

/** Why a suite does not run over Node's server; undefined if it does. */
const passedOver = isInCluster
  ? "nodes of a cluster share their ports, which it can from Node 22.12 on"
  : undefined;

const transports = (["uws", "node"] as const).map((transport) => {
  const reason = transport === "uws" ? missing : passedOver;
  const name = reason === undefined ? transport : `${transport} (skipped: ${reason})`;
  return { transport, isSkipped: reason !== undefined, name };
});

/** Runs a suite over each transport. A half that cannot run is skipped, and its title says why. */
export function describeOverEachTransport(title: string, suite: (transport: TransportKind) => void): void {
  for (const { transport, isSkipped, name } of transports) {
    describe.skipIf(isSkipped)(`${title} over ${name}`, () => {
      suite(transport);
    });
  }
}

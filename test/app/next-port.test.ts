import { createServer, type AddressInfo, type Server } from "node:net";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { withNextPort } from "../../src/app/next-port.ts";
import type { Transport } from "../../src/ports/transport.ts";
import { openTransport } from "../../src/transport/open-transport.ts";
import { echo, refuseUpgrades, scheduler } from "../transport/rig.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const host = "127.0.0.1";

async function occupy(port: number): Promise<Server> {
  const server = createServer().listen({ host, port });
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return server;
}

/** Two consecutive ports that are both taken; returns the first. */
async function twoTaken(): Promise<number> {
  for (;;) {
    const first = await occupy(0);
    const { port } = first.address() as AddressInfo;
    const second = await occupy(port + 1).catch(() => undefined);
    if (second !== undefined) return port;
  }
}

describeOverEachTransport("a server that may take the next port", (kind) => {
  const open = async (port: number, address = host): Promise<Transport> => {
    const opener = withNextPort(await openTransport(kind));
    const handlers = { request: echo, upgrade: refuseUpgrades };
    const transport = await opener(handlers, { host: address, port, maxBody: 1, scheduler });
    onTestFinished(() => transport.close());
    return transport;
  };

  test("takes the next free port when its port is taken", async () => {
    const port = await twoTaken();
    const { address } = await open(port);
    expect(address.port).toBeGreaterThan(port + 1);
    expect(address.port).toBeLessThan(port + 100);
  });

  test("takes its own port when that is free", async () => {
    const free = await occupy(0);
    const { port } = free.address() as AddressInfo;
    free.close();
    await once(free, "close");
    expect((await open(port)).address.port).toBe(port);
  });

  test("tries no other port when the address cannot be used", async () => {
    await expect(open(7_999, "192.0.2.1")).rejects.toMatchObject({
      code: "server.address",
      cause: { code: "EADDRNOTAVAIL" },
    });
  });

  test("tries no port above 65535", async () => {
    const last = await occupy(65_535).catch(() => undefined);
    // Another process may have taken the port, which serves the test as well.
    expect(last === undefined || last.listening).toBe(true);
    await expect(open(65_535)).rejects.toMatchObject({
      code: "server.address",
      cause: { code: "EADDRINUSE" },
    });
  });
});

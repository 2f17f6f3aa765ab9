import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { echo, refuseUpgrades, type Rig } from "../transport/rig.ts";
import { parse, type Wire } from "../transport/wire.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const MIB = 1024 * 1024;

/** Sends the head of a body and its first bytes. */
function begin(wire: Wire, announced: number, bytes: number): Promise<void> {
  wire.send(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${announced}\r\n\r\n`);
  return new Promise((resolve) => wire.socket.write(Buffer.alloc(bytes, 120), () => resolve()));
}

const answered = (wire: Wire) => wire.until((text) => text.includes("\r\n\r\n")).then(parse);

const firstAnswered = (wires: readonly Wire[]): Promise<Wire> =>
  Promise.race(wires.map((wire) => answered(wire).then(() => wire)));

export function bodyContract({ serve, dial }: Rig): void {
  const large = { maxBody: 4 * MIB, maxBodies: 8 * MIB };

  test("what comes of a body whose request has been answered is not kept", async () => {
    const transport = await serve((_, reply) => reply.send(401, {}, "no key"), refuseUpgrades, large);
    collect();
    const before = process.memoryUsage().arrayBuffers;
    const wires = await Promise.all(Array.from({ length: 30 }, () => dial(transport)));
    await Promise.all(wires.map((wire) => begin(wire, 2 * MIB + 1, 2 * MIB)));
    for (const wire of wires) expect((await answered(wire)).status).toBe(401);
    const probe = await dial(transport);
    probe.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await answered(probe);
    // The sockets of this process release their memory a little later.
    const held = () => {
      collect();
      return process.memoryUsage().arrayBuffers - before;
    };
    await expect.poll(held).toBeLessThan(10 * MIB);
    // The rest of the body arrives, and the connection continues.
    const [wire] = wires as [Wire];
    const { bytes } = wire;
    wire.send("xGET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await wire.untilBytes(bytes + 1);
    expect(wire.text.match(/401 Unauthorized/g)).toHaveLength(2);
  });

  test("a large body for which there is no memory is refused, a small one is not, and it is free again afterwards", async () => {
    const transport = await serve(echo, refuseUpgrades, large);
    // Five bodies of almost two of eight MiB: the last one exceeds the budget.
    const wires = await Promise.all(Array.from({ length: 5 }, () => dial(transport)));
    await Promise.all(wires.map((wire) => begin(wire, 2 * MIB, 2 * MIB - 1)));
    const refused = await firstAnswered(wires);
    expect(parse(refused.text).body).toBe('{"code":"server.busy"}');
    const small = await dial(transport);
    await begin(small, 64 * 1024, 64 * 1024);
    expect((await answered(small)).status).toBe(200);
    // One is read, one is closed.
    const [first, second] = wires.filter((wire) => wire !== refused) as [Wire, Wire];
    first.send("x");
    expect(JSON.parse((await answered(first)).body)).toMatchObject({ length: 2 * MIB });
    second.destroy();
    const [one, two] = await Promise.all([dial(transport), dial(transport)]);
    for (const wire of [one, two]) await begin(wire, 2 * MIB, 2 * MIB);
    for (const wire of [one, two]) expect((await answered(wire)).status).toBe(200);
  });

  test("a tenant may use half of the memory for bodies", async () => {
    const transport = await serve(
      (request, reply) => {
        const read = request.body(request.path);
        echo({ ...request, body: () => read, header: () => undefined }, reply);
      },
      refuseUpgrades,
      large,
    );
    const send = async (tenant: string, bytes: number) => {
      const wire = await dial(transport);
      wire.send(`POST ${tenant} HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 * MIB}\r\n\r\n`);
      await new Promise((resolve) => wire.socket.write(Buffer.alloc(bytes, 120), resolve));
      return wire;
    };
    const wires = [];
    for (let i = 0; i < 3; i++) wires.push(await send("/hostile", 2 * MIB - 1));
    expect(parse((await firstAnswered(wires)).text).body).toBe('{"code":"server.busy"}');
    expect((await answered(await send("/other", 2 * MIB))).status).toBe(200);
  });
}

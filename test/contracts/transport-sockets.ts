import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Socket } from "../../src/ports/transport.ts";
import { echo, JSON_TYPE, signal, type Rig } from "../transport/rig.ts";
import { parse } from "../transport/wire.ts";

/** Serves sockets at `/ws` and refuses them elsewhere. */
async function sockets(rig: Rig, take: (socket: Socket) => void, protocol?: string) {
  const transport = await rig.serve(echo, (request) =>
    request.path === "/ws"
      ? { kind: "accept", open: take, ...(protocol !== undefined && { protocol }) }
      : { kind: "refuse", status: 403, headers: JSON_TYPE, body: '{"detail":"no"}' },
  );
  const dial = (path = "/ws", protocols: string[] = []) =>
    new WebSocket(`ws://127.0.0.1:${transport.address.port}${path}`, protocols, { perMessageDeflate: false });
  return { transport, dial };
}

const event = <T>(socket: WebSocket, name: string) =>
  new Promise<T>((resolve) => socket.once(name, (...args: unknown[]) => resolve(args as T)));

export function socketContract(rig: Rig): void {
  test("texts and bytes come back as they went", async () => {
    const { dial } = await sockets(rig, (socket) => socket.onMessage((message) => socket.send(message)));
    const client = dial();
    await event(client, "open");
    client.send("grüße");
    expect(await event<[Buffer, boolean]>(client, "message")).toEqual([Buffer.from("grüße"), false]);
    client.send(Buffer.from([0, 255, 1]));
    expect(await event<[Buffer, boolean]>(client, "message")).toEqual([Buffer.from([0, 255, 1]), true]);
    client.close();
  });

  test("we close with a code and a reason; the listener is told once", async () => {
    let closes = 0;
    let socket: Socket | undefined;
    const { dial } = await sockets(rig, (made) => {
      socket = made;
      made.onClose(() => closes++);
      made.close(4404, "thread not found");
    });
    const client = dial();
    const [code, reason] = await event<[number, Buffer]>(client, "close");
    expect([code, reason.toString()]).toEqual([4404, "thread not found"]);
    await expect.poll(() => closes).toBe(1);
    expect(socket?.send("late")).toBe(false);
    socket?.close(1000, "again");
  });

  test("the peer closes: the listener is told", async () => {
    const told = signal();
    const { dial } = await sockets(rig, (socket) => socket.onClose(told.fire));
    const client = dial();
    await event(client, "open");
    client.close(1000);
    await expect(told.promise).resolves.toBeUndefined();
  });

  test("a refused upgrade is an HTTP answer", async () => {
    const { dial } = await sockets(rig, () => undefined);
    const client = dial("/other");
    client.on("error", () => undefined);
    const [, answer] = await event<[unknown, { statusCode: number; headers: Record<string, string> }]>(
      client,
      "unexpected-response",
    );
    expect(answer.statusCode).toBe(403);
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  test("a subprotocol is named only when we chose it", async () => {
    const { dial } = await sockets(rig, (socket) => socket.close(1000, ""), "heddle.msgpack");
    const client = dial("/ws", ["other", "heddle.msgpack"]);
    await event(client, "open");
    expect(client.protocol).toBe("heddle.msgpack");
  });

  test("a message above 1 MiB closes the socket", async () => {
    let messages = 0;
    const { dial } = await sockets(rig, (socket) => socket.onMessage(() => messages++));
    const client = dial();
    await event(client, "open");
    client.on("error", () => undefined);
    client.send(Buffer.alloc(1024 * 1024 + 1));
    await event(client, "close");
    expect(messages).toBe(0);
  });

  test.each([
    ["one by one", 300, 60_000],
    ["together", 300, 60_000],
    ["together", 9_000, 2_000],
  ])(
    "a peer that does not read: send says so, drain tells, nothing is lost: %s, %i of %i",
    async (how, COUNT, size) => {
      let sent = 0;
      let blocked = 0;
      const { dial } = await sockets(rig, (socket) => {
        /** Sends until the peer does not keep up, or `most` messages are sent. */
        const some = (most: number): boolean => {
          for (let i = 0; i < most && sent < COUNT; i++) {
            if (!socket.send(`${sent++}:${"m".repeat(size)}`)) return false;
          }
          return true;
        };
        const pump = () => {
          while (sent < COUNT) {
            let all = false;
            const free = how === "together" ? socket.together(() => (all = some(7))) : (all = some(1));
            if (free && all) continue;
            blocked++;
            return;
          }
          socket.close(1000, "all");
        };
        socket.onDrain(pump);
        socket.onMessage(pump);
      });
      const client = dial();
      await event(client, "open");
      const got: number[] = [];
      client.on("message", (data: Buffer) => got.push(Number.parseInt(data.toString(), 10)));
      client.pause();
      client.send("go");
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(sent).toBeLessThan(COUNT);
      client.resume();
      await event(client, "close");
      expect(blocked).toBeGreaterThan(0);
      expect(got).toEqual(Array.from({ length: COUNT }, (_, i) => i));
    },
  );

  test("a peer that takes none of what we go on sending is cut off", async () => {
    const closed = signal();
    const { dial } = await sockets(rig, (socket) => {
      socket.onClose(closed.fire);
      socket.onMessage(() => {
        for (let i = 0; i < 400; i++) socket.send("m".repeat(65_536));
      });
    });
    const client = dial();
    await event(client, "open");
    client.on("error", () => undefined);
    client.pause();
    client.send("go");
    await expect(closed.promise).resolves.toBeUndefined();
    client.terminate();
  });

  test("a handshake that is none is refused", async () => {
    const { transport } = await sockets(rig, () => undefined);
    const one = await rig.dial(transport);
    one.send(
      "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 7\r\n\r\n",
    );
    expect(parse(await one.rest()).status).toBe(400);
  });
}

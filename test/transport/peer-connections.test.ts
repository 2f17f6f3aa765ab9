import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import {
  Cancellation,
  MISDIRECTED_STATUS,
  type PeerAddress,
  PeerLost,
  type PeerResponse,
  type Peers,
} from "../../src/ports/peers.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import type { Handlers } from "../../src/ports/transport.ts";
import { FRAME, PEER_PROTOCOL } from "../../src/transport/peer-frames.ts";
import { openPeerServer, type PeerServer } from "../../src/transport/peer-server.ts";
import { createNodePeers } from "../../src/transport/peer-connections.ts";

const KEY = Buffer.alloc(32, 1);
const asked = { method: "GET", path: "/", headers: { "x-name": "\u00f6" } };

/** Called when a request has come that is never answered. */
let onNever: () => void = () => undefined;
/** Called when a request has come that is answered later, with the function that answers it. */
let onLater: (send: () => void) => void = () => undefined;
/** The paths of the requests that were carried out. */
const carriedOut = new Set<string>();

/** Handles the requests of one test, instead of {@link handlers}. */
let onRequest: Handlers["request"] | undefined;

const handlers: Handlers = {
  request: (request, reply) => {
    if (onRequest !== undefined) return onRequest(request, reply);
    if (request.path === "/elsewhere") return reply.send(MISDIRECTED_STATUS, {});
    if (request.path === "/never") return onNever();
    if (request.path === "/later") return onLater(() => reply.send(200, {}, "later"));
    carriedOut.add(request.path);
    reply.send(200, {}, `${request.path} ${request.header("x-name")}`);
  },
  upgrade: () => ({
    kind: "accept",
    open: (socket) => socket.onMessage((message) => void socket.send(`echo ${String(message)}`)),
  }),
};

/** The server of shard 1, which listens in a network. */
function openServer(): Promise<PeerServer> {
  const own = { host: "127.0.0.1", port: 0 };
  const secured = { shard: 1, key: KEY };
  return openPeerServer(handlers, own, { maxBody: 1024, scheduler: systemScheduler }, secured);
}

async function listening(): Promise<PeerAddress> {
  const server = await openServer();
  onTestFinished(() => server.close());
  return server.address;
}

function peersOf(
  addressOf: (shard: number) => PeerAddress | undefined,
  key: Uint8Array = KEY,
  scheduler = systemScheduler,
) {
  const peers = createNodePeers(addressOf, scheduler, key);
  onTestFinished(() => peers.close());
  return peers;
}

/** A network that can hold back what is sent to a server, until the server ends the connection. */
async function slowNetwork(to: PeerAddress) {
  let isHolding = false;
  let onHeld: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (onHeld = resolve));
  const network = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect({
      ...(to as { readonly host: string; readonly port: number }),
      allowHalfOpen: true,
    });
    const kept: Buffer[] = [];
    client.on("data", (bytes) => {
      if (!isHolding) return void server.write(bytes);
      kept.push(bytes);
      onHeld();
    });
    server.on("data", (bytes) => client.write(bytes));
    server.on("end", () => {
      for (const bytes of kept) server.write(bytes);
      client.end();
    });
    client.on("end", () => server.end());
    for (const socket of [client, server]) socket.on("error", () => undefined);
  });
  await once(network.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void network.close());
  const { port } = network.address() as AddressInfo;
  return { address: { host: "127.0.0.1", port }, hold: () => void (isHolding = true), held };
}

function textOf(response: PeerResponse): Promise<string> {
  const pieces: Uint8Array[] = [];
  return new Promise((resolve, reject) => {
    response.read({
      piece: (bytes) => pieces.push(bytes) > 0,
      end: () => resolve(Buffer.concat(pieces).toString()),
      broken: () => reject(new Error("broken")),
    });
  });
}

const failure = (peers: Peers, shard: number, path = "/"): Promise<unknown> =>
  peers.request(shard, { ...asked, path }).then(
    () => "answered",
    (cause: unknown) => (cause instanceof PeerLost ? { wasSent: cause.wasSent } : cause),
  );

test("requests and sockets go through a network", async () => {
  const address = await listening();
  const peers = peersOf(() => address);
  for (const path of ["/first", "/second"]) {
    // oxlint-disable-next-line no-await-in-loop -- the second one over the connection of the first
    expect(await textOf(await peers.request(1, { ...asked, path }))).toBe(`${path} \u00f6`);
  }
  const socket = await peers.open(1, asked);
  const answer = new Promise((resolve) => socket.onMessage(resolve));
  socket.send("x");
  expect(await answer).toBe("echo x");
});

test("another key, another shard, and a shard without an address get nothing, and nothing was sent", async () => {
  const address = await listening();
  const isUnsent = { wasSent: false };
  expect(
    await failure(
      peersOf(() => address, Buffer.alloc(32, 2)),
      1,
    ),
  ).toEqual(isUnsent);
  expect(
    await failure(
      peersOf(() => address),
      2,
    ),
  ).toEqual(isUnsent);
  expect(
    await failure(
      peersOf(() => undefined),
      1,
    ),
  ).toEqual(isUnsent);
  expect(
    await failure(
      peersOf(() => address),
      1,
      "/elsewhere",
    ),
  ).toEqual(isUnsent);
  await expect(peersOf(() => address, Buffer.alloc(32, 2)).open(1, asked)).rejects.toThrow(PeerLost);
});

test("who does not speak TLS gets no answer", async () => {
  const address = await listening();
  const raw = connect(address as { readonly host: string; readonly port: number });
  let got = "";
  raw.setEncoding("latin1").on("data", (text: string) => (got += text));
  raw.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await once(raw, "close");
  expect(got).not.toContain("HTTP");
});

test.each(Array.from({ length: 8 }, (_, turns) => [turns]))(
  "a request that is on its way when its server closes is answered, or else was not carried out, and its sender knows (%i turns later)",
  async (turns) => {
    const server = await openServer();
    const peers = peersOf(() => server.address);
    const paths = ["/a", "/b", "/c"];
    // The connections that the requests use again.
    await Promise.all(paths.map(async (path) => textOf(await peers.request(1, { ...asked, path }))));
    carriedOut.clear();
    const isEarly = turns % 2 === 0;
    const early = isEarly ? paths.map((path) => failure(peers, 1, path)) : [];
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    for (let i = 0; i < turns >> 1; i++) await nextTurn();
    const closed = server.close();
    const outcomes = await Promise.all(isEarly ? early : paths.map((path) => failure(peers, 1, path)));
    expect(outcomes).toEqual(paths.map((path) => (carriedOut.has(path) ? "answered" : { wasSent: false })));
    await closed;
    expect(await failure(peers, 1)).toEqual({ wasSent: false });
  },
);

test("a request that arrives only after its server has ended the connection was not carried out, and its sender knows", async () => {
  const server = await openServer();
  const network = await slowNetwork(server.address);
  const peers = peersOf(() => network.address);
  await textOf(await peers.request(1, asked));
  carriedOut.clear();
  network.hold();
  const outcome = failure(peers, 1, "/held");
  await network.held;
  await server.close();
  expect([await outcome, carriedOut.has("/held")]).toEqual([{ wasSent: false }, false]);
});

test("a server that closes waits for the answer of a request that it has read", async () => {
  const server = await openServer();
  const peers = peersOf(() => server.address);
  const arrived = new Promise<() => void>((resolve) => (onLater = resolve));
  const answer = peers.request(1, { ...asked, path: "/later" });
  const send = await arrived;
  const closed = server.close();
  await nextTurn();
  send();
  expect(await textOf(await answer)).toBe("later");
  await closed;
});

test("a request whose connection is in its handshake when its server closes is answered, or else was not carried out, and its sender knows", async () => {
  const server = await openServer();
  const peers = peersOf(() => server.address);
  carriedOut.clear();
  const outcome = failure(peers, 1, "/new");
  await nextTurn();
  await server.close();
  expect(await outcome).toEqual(carriedOut.has("/new") ? "answered" : { wasSent: false });
});

test("a request to a process whose shard has moved is broken off, as lost", async () => {
  const address = await listening();
  let now: PeerAddress | undefined = address;
  const peers = peersOf(() => now);
  await textOf(await peers.request(1, asked));
  const arrived = new Promise<void>((resolve) => (onNever = resolve));
  const waiting = failure(peers, 1, "/never");
  await arrived;
  now = undefined;
  peers.dropUnused();
  expect(await waiting).toEqual({ wasSent: true });
});

/** A scheduler whose timers fire twenty times as early. `fired` counts them. */
function fastScheduler() {
  let fired = 0;
  const scheduler: Scheduler = {
    ...systemScheduler,
    after: (ms, task, isAwaited) =>
      systemScheduler.after(
        ms / 20,
        () => {
          fired++;
          task();
        },
        isAwaited,
      ),
  };
  return { scheduler, fired: () => fired };
}

test("a process that hangs is lost: its requests fail, and its sockets are closed; a later request reaches its successor", async () => {
  const server = await openServer();
  onTestFinished(() => server.close());
  const network = await slowNetwork(server.address);
  let now = network.address;
  const peers = peersOf(() => now, KEY, fastScheduler().scheduler);
  const socket = await peers.open(1, asked);
  const closed = new Promise((resolve) => socket.onClose(resolve));
  await textOf(await peers.request(1, asked));
  network.hold();
  const lost = await peers.request(1, { ...asked, path: "/never" }).catch((cause: unknown) => cause);
  expect(lost).toMatchObject({ name: "PeerLost", wasSent: true, isUnresponsive: true });
  expect(await closed).toBe(1006);
  await expect(peers.open(1, asked)).rejects.toMatchObject({ name: "PeerLost", isUnresponsive: true });
  now = server.address as typeof now;
  expect(await textOf(await peers.request(1, asked))).toBe("/ \u00f6");
});

test("a request that takes long at a process that responds is answered", async () => {
  const address = await listening();
  const { scheduler, fired } = fastScheduler();
  const peers = peersOf(() => address, KEY, scheduler);
  const arrived = new Promise<() => void>((resolve) => (onLater = resolve));
  const answer = peers.request(1, { ...asked, path: "/later" });
  const send = await arrived;
  // More checks than fit into the time after which a process is taken to hang.
  await expect.poll(fired).toBeGreaterThan(10);
  send();
  expect(await textOf(await answer)).toBe("later");
});

test("a process that accepts no request as soon as it is connected has carried none out, and its sender knows", async () => {
  const directory = mkdtempSync(join(tmpdir(), "heddle-peers-"));
  const path = join(directory, "1");
  const goAway = Buffer.alloc(9);
  goAway.writeUInt8(FRAME.goAway, 4);
  const server = createServer((socket) => {
    socket.once("data", () => {
      const head = `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${PEER_PROTOCOL}\r\n\r\n`;
      socket.end(Buffer.concat([Buffer.from(head), goAway]));
    });
  });
  await once(server.listen(path), "listening");
  onTestFinished(() => {
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const peers = peersOf(() => ({ path }));
  expect(await failure(peers, 1)).toEqual({ wasSent: false });
  expect(await failure(peers, 1)).toEqual({ wasSent: false });
});

/** Opens a server at a Unix socket or in a network, whose requests `handle` answers. Returns the connections to it. */
async function connected(where: "Unix socket" | "network", handle: Handlers["request"]) {
  onRequest = handle;
  const directory = mkdtempSync(join(tmpdir(), "heddle-peers-"));
  const isUnix = where === "Unix socket";
  const own = isUnix ? { path: join(directory, "1") } : { host: "127.0.0.1", port: 0 };
  const options = { maxBody: 8 * 1024 * 1024, scheduler: systemScheduler };
  const server = await openPeerServer(handlers, own, options, isUnix ? undefined : { shard: 1, key: KEY });
  onTestFinished(async () => {
    onRequest = undefined;
    await server.close();
    rmSync(directory, { recursive: true });
  });
  return peersOf(() => server.address);
}

/** Collects a response until `limit` bytes have come, then reads no more until `resume` is called. */
function slowly(response: PeerResponse, limit: number) {
  const pieces: Uint8Array[] = [];
  let size = 0;
  let onFull: () => void = () => undefined;
  const full = new Promise<void>((resolve) => (onFull = resolve));
  let most = limit;
  const outcome = new Promise<string>((resolve) =>
    response.read({
      piece: (bytes) => {
        pieces.push(bytes);
        size += bytes.length;
        if (size < most) return true;
        onFull();
        return false;
      },
      end: () => resolve("end"),
      broken: () => resolve("broken"),
    }),
  );
  const resume = () => {
    most = Infinity;
    response.resume();
  };
  return { full, outcome, resume, bytes: () => Buffer.concat(pieces) };
}

const PLACES = [["Unix socket"], ["network"]] as const;
const isTurned = (count: number) => Promise.all(Array.from({ length: count }, () => nextTurn()));

describe.each(PLACES)("over a %s", (where) => {
  test("large bodies arrive complete, beside small ones that do not wait for them", async () => {
    const peers = await connected(where, (request, reply) => {
      void request.body().then((body) => {
        reply.send(200, { "x-length": String(body.length), "x-name": "\u4e2d" }, body);
      });
    });
    const large = Buffer.alloc(5_000_000, "0123456789");
    const order: string[] = [];
    const post = async (name: string, body: Buffer) => {
      const response = await peers.request(1, { ...asked, method: "POST", body });
      const text = await textOf(response);
      order.push(name);
      return { response, isSame: text === body.toString() };
    };
    const both = await Promise.all([post("large", large), post("small", Buffer.from("small"))]);
    expect(both.map(({ isSame, response }) => [isSame, response.length, response.headers])).toEqual([
      [true, 5_000_000, { "x-length": "5000000", "x-name": "\u4e2d" }],
      [true, 5, { "x-length": "5", "x-name": "\u4e2d" }],
    ]);
    expect(order).toEqual(["small", "large"]);
  });

  test("a client that reads slowly slows the response down, holds up no other one, and gets all of it", async () => {
    const total = 20_000_000;
    let written = 0;
    const peers = await connected(where, (request, reply) => {
      if (request.path === "/other") return reply.send(200, {}, "other");
      const piece = () => Buffer.alloc(10_000, String((written++ * 7) % 10));
      const stream = reply.open(200, {}, piece());
      const more = () => {
        while (written < total / 10_000) if (!stream.write(piece())) return;
        stream.end();
      };
      stream.onDrain(more);
      more();
    });
    const response = await peers.request(1, asked);
    const reader = slowly(response, 50_000);
    await reader.full;
    await isTurned(20);
    expect(await textOf(await peers.request(1, { ...asked, path: "/other" }))).toBe("other");
    const sentMeanwhile = written * 10_000;
    expect(sentMeanwhile).toBeLessThan(400_000);
    reader.resume();
    expect(await reader.outcome).toBe("end");
    const digits = Array.from({ length: total / 10_000 }, (_, i) => String((i * 7) % 10).repeat(10_000));
    expect(reader.bytes().toString() === digits.join("")).toBe(true);
  });

  test("many large responses at once arrive complete", async () => {
    const peers = await connected(where, (_, reply) => {
      let left = 40;
      const stream = reply.open(200, {}, Buffer.alloc(50_000));
      const more = () => {
        while (left-- > 0) if (!stream.write(Buffer.alloc(50_000))) return;
        stream.end();
      };
      stream.onDrain(more);
      more();
    });
    const texts = Array.from({ length: 20 }, async () => textOf(await peers.request(1, asked)));
    expect((await Promise.all(texts)).map((text) => text.length)).toEqual(
      Array.from({ length: 20 }, () => 41 * 50_000),
    );
  });

  test("a cancelled request is aborted at the process that serves it, before its response and while it is read", async () => {
    const aborted: string[] = [];
    let onArrived: () => void = () => undefined;
    let onAborted: () => void = () => undefined;
    const peers = await connected(where, (request, reply) => {
      reply.onAbort(() => {
        aborted.push(request.path);
        onAborted();
      });
      if (request.path === "/stream") reply.open(200, {}, "begun");
      onArrived();
    });
    const arrived = new Promise<void>((resolve) => (onArrived = resolve));
    const early = new Cancellation();
    const waiting = peers.request(1, { ...asked, path: "/wait" }, early).catch((cause: unknown) => cause);
    await arrived;
    const first = new Promise<void>((resolve) => (onAborted = resolve));
    early.cancel();
    expect(await waiting).toBeInstanceOf(PeerLost);
    await first;
    const late = new Cancellation();
    const reader = slowly(await peers.request(1, { ...asked, path: "/stream" }, late), 1);
    await reader.full;
    const second = new Promise<void>((resolve) => (onAborted = resolve));
    late.cancel();
    expect(await reader.outcome).toBe("broken");
    await second;
    expect(aborted).toEqual(["/wait", "/stream"]);
  });

  test("a response that is broken off is broken for its reader, after what was sent before", async () => {
    const peers = await connected(where, (_, reply) => {
      const stream = reply.open(200, {}, "begun");
      setImmediate(() => stream.close());
    });
    const reader = slowly(await peers.request(1, asked), Infinity);
    expect([await reader.outcome, reader.bytes().toString()]).toEqual(["broken", "begun"]);
  });

  test("a body that is too large is refused, and the connection goes on", async () => {
    const peers = await connected(where, (request, reply) => {
      request.body().then(
        (body) => reply.send(200, {}, String(body.length)),
        () => reply.send(413, {}, "too large"),
      );
    });
    const post = (body: Buffer) => peers.request(1, { ...asked, method: "POST", body });
    const [refused, taken] = await Promise.all([
      post(Buffer.alloc(9 * 1024 * 1024)),
      post(Buffer.alloc(3_000_000)),
    ]);
    expect([refused.status, await textOf(refused), taken.status, await textOf(taken)]).toEqual([
      413,
      "too large",
      200,
      "3000000",
    ]);
  });
});

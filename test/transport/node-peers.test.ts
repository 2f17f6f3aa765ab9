import { connect } from "node:net";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import {
  MISDIRECTED,
  type PeerAddress,
  PeerLost,
  type PeerResponse,
  type Peers,
} from "../../src/ports/peers.ts";
import type { Handlers } from "../../src/ports/transport.ts";
import { openPeerServer, type PeerServer } from "../../src/transport/node-peer-server.ts";
import { createNodePeers } from "../../src/transport/node-peers.ts";

const KEY = Buffer.alloc(32, 1);
const asked = { method: "GET", path: "/", headers: { "x-name": "\u00f6" } };
const never = new AbortController().signal;

/** Called when a request has come that is never answered. */
let onNever: () => void = () => undefined;

const handlers: Handlers = {
  request: (request, reply) => {
    if (request.path === "/elsewhere") return reply.send(MISDIRECTED, {});
    if (request.path === "/never") return onNever();
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

function peersOf(addressOf: (shard: number) => PeerAddress | undefined, key: Uint8Array = KEY) {
  const peers = createNodePeers(addressOf, systemScheduler, key);
  onTestFinished(() => peers.close());
  return peers;
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
  peers.request(shard, { ...asked, path }, never).then(
    () => "answered",
    (cause: unknown) => (cause instanceof PeerLost ? { wasSent: cause.wasSent } : cause),
  );

test("requests and sockets go through a network", async () => {
  const address = await listening();
  const peers = peersOf(() => address);
  for (const path of ["/first", "/second"]) {
    // oxlint-disable-next-line no-await-in-loop -- the second one over the connection of the first
    expect(await textOf(await peers.request(1, { ...asked, path }, never))).toBe(`${path} \u00f6`);
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

test("a server that closes answers a request that is on its way on a connection in use before, and takes no further ones", async () => {
  const server = await openServer();
  const peers = peersOf(() => server.address);
  await textOf(await peers.request(1, asked, never));
  const answer = peers.request(1, asked, never);
  const closed = server.close();
  expect(await textOf(await answer)).toBe("/ \u00f6");
  await closed;
  await expect(peers.request(1, asked, never)).rejects.toMatchObject({ wasSent: false });
});

test("a request to a process whose shard has moved is broken off, as lost", async () => {
  const address = await listening();
  let now: PeerAddress | undefined = address;
  const peers = peersOf(() => now);
  await textOf(await peers.request(1, asked, never));
  const arrived = new Promise<void>((resolve) => (onNever = resolve));
  const waiting = failure(peers, 1, "/never");
  await arrived;
  now = undefined;
  peers.dropUnused();
  expect(await waiting).toEqual({ wasSent: true });
});

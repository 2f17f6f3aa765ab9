import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemHttpClient as client } from "../../src/platform/http-client.ts";
import { cert, key } from "../fixtures/certificate.ts";

async function listening(server: Server, host = "127.0.0.1"): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

const serving = (listener: (...of: Parameters<RequestListener>) => unknown) =>
  listening(createServer((...of) => void listener(...of)));

const post = (url: string, more: { signal?: AbortSignal; body?: string } = {}) =>
  client.post({
    url: new URL(url),
    address: "127.0.0.1",
    headers: { "x-own": "1", "content-type": "application/json" },
    body: "{}",
    signal: new AbortController().signal,
    ...more,
  });

test("posts to the address that it is given, under the name of the URL", async () => {
  const seen: unknown[] = [];
  const port = await serving(async (request, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    seen.push([request.method, request.url, request.headers["host"], request.headers["x-own"], body]);
    response.writeHead(503, { "retry-after": "7" }).end("busy");
  });
  // No name server knows this name.
  const answer = await post(`http://hooks.invalid:${port}/in/é?a=b&c`, { body: '{"é":1}' });
  expect(answer).toEqual({ status: 503, retryAfter: "7" });
  expect(seen).toEqual([["POST", "/in/%C3%A9?a=b&c", `hooks.invalid:${port}`, "1", '{"é":1}']]);
});

test("follows no redirect", async () => {
  let asked = 0;
  const port = await serving((_, response) => {
    asked++;
    response.writeHead(302, { location: `http://127.0.0.1:${port}/elsewhere` }).end();
  });
  expect((await post(`http://hooks.invalid:${port}/`)).status).toBe(302);
  expect(asked).toBe(1);
});

test("reads an endless answer no further than it must", async () => {
  let ended = () => {};
  const cut = new Promise<void>((resolve) => (ended = resolve));
  const port = await serving((_, response) => {
    response.writeHead(200);
    const more = (): void => {
      while (response.write("x".repeat(65_536)));
    };
    response.on("drain", more).on("close", ended);
    more();
  });
  expect((await post(`http://hooks.invalid:${port}/`)).status).toBe(200);
  await cut;
});

test("is told to stop, and fails", async () => {
  const stop = new AbortController();
  const port = await serving(() => stop.abort());
  await expect(post(`http://hooks.invalid:${port}/`, { signal: stop.signal })).rejects.toThrow("aborted");
});

test("fails where nobody listens, and where no HTTP is spoken", async () => {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  await expect(post(`http://hooks.invalid:${port}/`)).rejects.toThrow("ECONNREFUSED");
  const odd = createServer();
  odd.on("connection", (socket) => socket.end("nonsense\r\n\r\n"));
  await expect(post(`http://hooks.invalid:${await listening(odd)}/`)).rejects.toThrow("Parse Error");
});

test("over TLS asks for the URL's name, and takes no certificate that nobody vouches for", async () => {
  const names: string[] = [];
  const server = createTlsServer({
    cert,
    key,
    SNICallback: (name, done) => {
      names.push(name);
      done(null);
    },
  });
  const port = await listening(server as unknown as Server);
  await expect(post(`https://hooks.test:${port}/`)).rejects.toThrow("self-signed");
  expect(names).toEqual(["hooks.test"]);
  await expect(post(`https://127.0.0.1:${port}/`)).rejects.toThrow("self-signed");
  expect(names).toEqual(["hooks.test"]);
});

test("localhost is known without a name server", async () => {
  const found = await client.resolve("localhost", new AbortController().signal);
  expect(found.every((address) => address === "127.0.0.1" || address === "::1")).toBe(true);
  expect(found).not.toEqual([]);
});

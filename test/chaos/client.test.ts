import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { expect, test } from "vitest";
import { Client } from "./client.ts";

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/** A server that resets a connection at its n-th request; `answers`: the number of requests that each connection serves, in their order. */
async function resetting(answers: readonly number[]) {
  let connections = 0;
  const server = createServer((socket: Socket) => {
    let left = answers[connections++] ?? 0;
    socket.on("error", () => undefined);
    socket.on("data", () => {
      if (left-- > 0) socket.write(ANSWER);
      else socket.resetAndDestroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new Client((server.address() as AddressInfo).port);
  const close = () => {
    client.close();
    server.close();
  };
  return { client, close };
}

test("a request on a connection that was closed while it was idle is sent once more", async () => {
  const { client, close } = await resetting([1, 1]);
  expect(await client.json("GET", "/")).toEqual({ status: 200, json: {} });
  expect(await client.json("POST", "/", { some: "body" })).toEqual({ status: 200, json: {} });
  expect(client.repeated).toBe(1);
  close();
});

test("a connection that breaks at its first request, or again, is reported", async () => {
  const { client, close } = await resetting([0, 1, 0]);
  await expect(client.json("GET", "/")).rejects.toThrow(/ECONNRESET|hang up/);
  expect(client.repeated).toBe(0);
  await client.json("GET", "/");
  await expect(client.json("GET", "/")).rejects.toThrow(/ECONNRESET|hang up/);
  expect(client.repeated).toBe(0);
  close();
});

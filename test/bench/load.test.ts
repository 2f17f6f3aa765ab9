import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { perform } from "../../bench/load/perform.ts";

test("partitioned jobs send all requests for a thread over the connection that has made it", async () => {
  const makers = new Map<string, Socket>();
  const wrong: string[] = [];
  let runs = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const thread = request.url?.split("/")[2];
      if (thread === undefined) {
        makers.set(`t${makers.size}`, request.socket);
        return response.end(JSON.stringify({ thread_id: `t${makers.size - 1}` }));
      }
      runs++;
      if (makers.get(thread) !== request.socket) wrong.push(thread);
      return response.end("{}");
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const job = {
    host: "127.0.0.1",
    port,
    connections: 3,
    method: "POST",
    total: 20,
    partitioned: true,
    body: "{}",
    answer: "text",
  } as const;
  const { collected } = await perform({ ...job, paths: ["/threads"], collect: "thread_id" });
  const result = await perform({ ...job, paths: collected.map((id) => `/threads/${id}/runs`) });
  expect({ runs, wrong, failures: result.failures, connections: new Set(makers.values()).size }).toEqual({
    runs: 20,
    wrong: [],
    failures: 0,
    connections: 3,
  });
});

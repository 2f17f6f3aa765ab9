import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Told {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

/** A real HTTP server that receives webhooks. `answer` returns the status for the nth request. */
export async function receiver(answer: (nth: number) => number = () => 200) {
  const told: Told[] = [];
  let waiting: (() => void)[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    const json = JSON.parse(text) as Told["json"];
    told.push({ path: request.url ?? "", headers: request.headers as Told["headers"], text, json });
    response.writeHead(answer(told.length)).end();
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    told,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves with the received webhooks when there are `count`. */
    async until(count: number): Promise<readonly Told[]> {
      while (told.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
      return told;
    },
  };
}

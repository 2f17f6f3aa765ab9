import { createServer, type IncomingMessage } from "node:http";

/**
 * Listens on this machine for one webhook request, and returns its parsed body.
 * @param ask starts a run whose webhook is this URL
 */
export async function receiveWebhook(ask: (url: string) => Promise<unknown>): Promise<unknown> {
  let receive: (body: Promise<unknown>) => void = () => undefined;
  const received = new Promise<unknown>((resolve) => (receive = resolve));
  const server = createServer((request, response) => {
    receive(bodyOf(request));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await ask(`http://127.0.0.1:${(server.address() as { readonly port: number }).port}/`);
    return await received;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += String(part);
  return JSON.parse(text) as unknown;
}

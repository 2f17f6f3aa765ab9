import { createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "./load/connection.ts";
import { TextReceiver } from "./load/receivers.ts";

/** Returns a TCP port of this machine that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Whether the server responds to one request with status 200. The request uses {@link Connection}, because loading an
 * HTTP client would take time that is measured.
 */
async function respondsAt(port: number, path: string): Promise<boolean> {
  try {
    const connection = await Connection.open("127.0.0.1", port, Connection.buffer());
    const status = await new Promise<number>((resolve) => {
      const receiver: TextReceiver = new TextReceiver((lost) =>
        resolve(lost === undefined ? receiver.status : 0),
      );
      connection.send(Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`), receiver);
    });
    connection.close();
    return status === 200;
  } catch {
    // Nothing listens on the port yet.
    return false;
  }
}

/**
 * Waits until the server responds with status 200, and tries again every two milliseconds.
 * @throws Error with the text that `ended` returns as soon as it is not undefined, or after `seconds` seconds
 */
export async function firstAnswer(
  port: number,
  path: string,
  ended: () => string | undefined,
  seconds = 60,
): Promise<void> {
  const began = performance.now();
  while (!(await respondsAt(port, path))) {
    const why = ended();
    if (why !== undefined) throw new Error(why);
    if (performance.now() - began > seconds * 1000) throw new Error(`no ${path} within ${seconds} s`);
    await sleep(2);
  }
}

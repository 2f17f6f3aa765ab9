import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request as openRequest } from "node:https";
import { expect, onTestFinished, test } from "vitest";
import { createShardApp } from "../../src/app.ts";
import { clientHeaders } from "../../src/cluster/forwarded-headers.ts";
import { CALL_PATH } from "../../src/cluster/process-calls.ts";
import { packCall } from "../../src/codec/value-encoding.ts";
import { graph } from "../../src/index.ts";
import { DEFAULT_TENANT } from "../../src/model/thread.ts";
import { MISDIRECTED_STATUS, type PeerAddress } from "../../src/ports/peers.ts";
import { SHARED_KEY_TLS } from "../../src/transport/peer-connections.ts";
import { postJson } from "../e2e/support/wire.ts";

const KEY = Buffer.alloc(32, 1);

test.each([
  ["request of a client", "/threads", Buffer.from(JSON.stringify({ metadata: { is: "late" } }))],
  [
    "call of another process",
    CALL_PATH,
    packCall({ part: "threads", name: "create", args: [DEFAULT_TENANT, { metadata: { is: "late" } }] }),
  ],
])(
  "a %s that comes before a shard's process begins to stop, and is refused afterwards, is misdirected",
  async (_, path, body) => {
    let address: PeerAddress | undefined;
    let onRunning: (end: () => void) => void = () => undefined;
    const running = new Promise<() => void>((resolve) => (onRunning = resolve));
    const waits = () => new Promise<object>((resolve) => onRunning(() => resolve({})));
    const app = await createShardApp(
      { graphs: { waits: graph({ state: {}, nodes: { waits }, edges: { start: "waits" } }) } },
      {
        number: 0,
        count: 1,
        network: {
          own: { host: "127.0.0.1", port: 0 },
          addressOf: () => address,
          key: KEY,
          isOwner: () => true,
          onListening: (bound) => (address = bound),
        },
      },
    );
    onTestFinished(() => app.close(0));
    const { thread_id } = await postJson<{ thread_id: string }>(`${app.url}/threads`, {});
    await postJson(`${app.url}/threads/${thread_id}/runs`, { assistant_id: "waits", input: {} });
    const end = await running;

    const secured: object = {
      ...SHARED_KEY_TLS,
      pskCallback: () => ({ psk: KEY, identity: "0" }),
      checkServerIdentity: () => undefined,
    };
    const request = openRequest({
      ...secured,
      ...(address as PeerAddress & { readonly port: number }),
      method: "POST",
      path,
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        // The server says when it has the head of the request.
        expect: "100-continue",
        ...clientHeaders({ tenant: DEFAULT_TENANT, user: undefined }),
      },
    });
    request.flushHeaders();
    await once(request, "continue");
    const closed = app.close();
    request.end(body);
    const [response] = (await once(request, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(MISDIRECTED_STATUS);
    response.resume();
    end();
    await closed;
  },
);

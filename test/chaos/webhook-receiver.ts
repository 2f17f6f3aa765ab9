import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { DeliveredWebhook } from "./checkers/webhooks.ts";
import type { Client } from "./client.ts";
import type { SeededRandom } from "./random.ts";

/** Milliseconds: the limit for the delivery of all pending webhooks. */
const REST = 20_000;

/**
 * Receives webhooks in the driver's process, so that no crash of the server can affect the received data. Refuses some
 * of them.
 */
export class WebhookReceiver {
  readonly delivered: DeliveredWebhook[] = [];
  readonly #server: Server;

  constructor(dice: SeededRandom) {
    this.#server = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      request.on("end", () => {
        if (dice.chance(0.1)) return void request.socket.destroy();
        if (dice.chance(0.1)) return void response.writeHead(503).end();
        const { run_id, status } = JSON.parse(text) as { run_id: string; status: string };
        this.delivered.push({ run: run_id, status, id: String(request.headers["x-webhook-id"]) });
        response.writeHead(204).end();
      });
    });
  }

  /** Starts listening. Resolves with the URL. */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/**
 * Makes the server retry pending deliveries until none is left. Resolves with the deliveries that are still pending.
 */
export async function settle(client: Client): Promise<readonly unknown[]> {
  const deadline = performance.now() + REST;
  for (;;) {
    const { json } = await client.json("GET", "/webhooks/deliveries?limit=1000");
    const owed = json as { readonly id: string; readonly attempts: number; readonly status: string }[];
    if (owed.length === 0 || performance.now() > deadline) return owed;
    for (const { id, attempts, status } of owed) {
      // Retries at once instead of at the scheduled time.
      if (attempts > 0 || status === "dead") await client.json("POST", `/webhooks/deliveries/${id}/retry`);
    }
    await sleep(100);
  }
}

import { createWebSocketReceiver } from "@statelyai/inspect";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

/** A message of the inspection feed, as the vendor's receiver hands it out, with our members beside its own. */
export interface Inspected {
  readonly type: "@xstate.actor" | "@xstate.event" | "@xstate.snapshot";
  readonly sessionId: string;
  readonly rootId: string;
  readonly createdAt: string;
  readonly id: null;
  readonly _version: string;
  readonly seq: number;
  readonly kind: "thread" | "run" | "task" | "graph";
  readonly machine: string;
  readonly thread_id: string;
  readonly run_id?: string;
  readonly name?: string;
  readonly parentId?: string;
  readonly definition?: string;
  readonly sourceId?: string;
  readonly event?: { readonly type: string };
  readonly snapshot?: {
    readonly status: string;
    readonly value: unknown;
    readonly context: Record<string, unknown>;
    readonly tags: readonly string[];
    readonly children: object;
  };
}

export interface Inspecting {
  readonly messages: readonly Inspected[];
  /** The first message for which that holds, once it is there. */
  until(isIt: (message: Inspected) => boolean): Promise<Inspected>;
  /** How an actor stands, as far as was told. */
  value(session: string): unknown;
}

/** The vendor's own receiver, as it is. */
export function inspect(url: string, query = ""): Inspecting {
  const receiver = createWebSocketReceiver({ server: addressOf(url, query) });
  const messages: Inspected[] = [];
  let waiting: (() => void)[] = [];
  receiver.subscribe((event) => {
    messages.push(event as unknown as Inspected);
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  });
  return {
    messages,
    async until(isIt) {
      for (;;) {
        const found = messages.find(isIt);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    value: (session) =>
      messages.findLast(({ sessionId, snapshot }) => sessionId === session && snapshot !== undefined)
        ?.snapshot?.value,
  };
}

const addressOf = (url: string, query: string) => `${url.replace("http", "ws")}/inspect${query}`;

/** How a socket ends that is not let in: its code and reason, or the status of a refused upgrade. */
export function refused(url: string, query = "", origin?: string): Promise<{ code: number; reason: string }> {
  const socket = new WebSocket(addressOf(url, query), origin === undefined ? {} : { origin });
  onTestFinished(() => socket.terminate());
  return new Promise((resolve) => {
    socket.on("close", (code, reason) => resolve({ code, reason: String(reason) }));
    socket.on("unexpected-response", (_, response) =>
      resolve({ code: response.statusCode ?? 0, reason: "" }),
    );
    socket.on("error", () => undefined);
  });
}

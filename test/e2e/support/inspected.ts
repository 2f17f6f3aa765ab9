import { createWebSocketReceiver } from "@statelyai/inspect";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

/** A message of the inspection feed, as the vendor's receiver delivers it, with Heddle's additional members. */
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
  /** Resolves with the first message that matches. */
  until(isIt: (message: Inspected) => boolean): Promise<Inspected>;
  /** Returns the last reported state of an actor. */
  value(session: string): unknown;
}

/** The vendor's own receiver, unchanged. */
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

/** Returns how a refused socket ends: its close code and reason, or the status of the refused upgrade. */
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

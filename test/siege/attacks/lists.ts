import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expectList } from "../client.ts";
import { defineAttack, type Siege } from "../siege.ts";

/** The thread of an attack, by server, because attacks have no state of their own. */
const threads = new WeakMap<Siege["server"], string>();

const threadOf = ({ server }: Siege): string => threads.get(server) ?? "";

export const history = defineAttack({
  name: "history",
  sent: "history with limit 1000 on a thread of many runs, three times at once",
  full: { size: 1000 },
  small: { size: 150, memory: 160 },
  async prepare({ hostile, server }, runs: number) {
    const thread = await hostile.thread();
    threads.set(server, thread);
    for (let i = 0; i < runs; i++) {
      await hostile.run(thread, "chat", { messages: [{ type: "human", content: "x".repeat(400) }] });
    }
  },
  async attack(siege) {
    const asked = { limit: 1000 };
    const path = `/threads/${threadOf(siege)}/history`;
    const answers = await Promise.all([1, 2, 3].map(() => siege.hostile.send("POST", path, asked)));
    for (const answer of answers) expectList(answer);
  },
});

export const largeStates = defineAttack({
  name: "large-states",
  sent: "threads/search over many large states",
  full: { size: { threads: 30, bytes: 15 * 1024 * 1024 } },
  small: { size: { threads: 24, bytes: 4 * 1024 * 1024 }, memory: 150 },
  async prepare({ hostile }, { threads: count, bytes }: { threads: number; bytes: number }) {
    for (let i = 0; i < count; i++) {
      await hostile.run(await hostile.thread(), "keep", { text: "x".repeat(bytes) });
    }
  },
  async attack({ hostile }) {
    expectList(await hostile.send("POST", "/threads/search", { limit: 1000 }));
  },
});

/**
 * Milliseconds during which nothing is read: clients that read nothing for 10 s are disconnected, and others in the
 * queue continue.
 */
const UNREAD_FOR = { full: 25_000, small: 3_000 };

/** Milliseconds that a list of the other tenant may take. */
const LIST_WAIT = 1_000;

interface UnreadSize {
  /** Requests of each kind. */
  readonly count: number;
  readonly bytes: number;
  readonly ms: number;
}

async function keepLargeState(siege: Siege, { bytes }: UnreadSize): Promise<void> {
  const thread = await siege.hostile.thread();
  threads.set(siege.server, thread);
  await siege.hostile.run(thread, "keep", { text: "x".repeat(bytes) });
}

export const unreadStates = defineAttack({
  name: "unread-states",
  sent: "a large state asked for many times in six ways, by clients that read nothing of the answers",
  full: { size: { count: 40, bytes: 14 * 1024 * 1024, ms: UNREAD_FOR.full } },
  small: { size: { count: 20, bytes: 1024 * 1024, ms: UNREAD_FOR.small } },
  prepare: keepLargeState,
  async attack(siege, { count, ms }) {
    const { hostile } = siege;
    const thread = `/threads/${threadOf(siege)}`;
    const [run] = await hostile.json<{ run_id: string }[]>("GET", `${thread}/runs?select=run_id`);
    const kinds = [
      ["GET", `${thread}/state`],
      ["POST", `${thread}/history`, { limit: 100 }],
      ["POST", `${thread}/runs/wait`, { assistant_id: "keep", multitask_strategy: "enqueue" }],
      ["GET", `${thread}/runs/${run?.run_id}/stream?stream_mode=values&stream_mode=debug`],
      ["GET", `${thread}/stream?last_event_id=0`],
      ["POST", `${thread}/stream/events`, { channels: ["values"], since: 0 }],
    ] as const;
    const opened = kinds.flatMap(([method, path, body]) => ask(hostile, count, method, path, body));
    try {
      await sleep(ms);
      // Small responses are served meanwhile, to the same tenant too.
      await hostile.json("GET", `${thread}/runs?select=run_id&limit=1`);
    } finally {
      for (const socket of opened) socket.destroy();
    }
  },
});

export const unreadSearches = defineAttack({
  name: "unread-searches",
  sent: "searches that find a large state, by clients that read nothing of the answers",
  full: { size: { count: 120, bytes: 14 * 1024 * 1024, ms: UNREAD_FOR.full } },
  small: { size: { count: 60, bytes: 4 * 1024 * 1024, ms: UNREAD_FOR.small }, memory: 200 },
  prepare: keepLargeState,
  async attack({ hostile, other }, { count, ms }: UnreadSize) {
    const opened = ask(hostile, count, "POST", "/threads/search", { limit: 10 });
    try {
      const end = performance.now() + ms;
      // Lists of others are served meanwhile.
      while (performance.now() < end) {
        const began = performance.now();
        expectList(await other.send("POST", "/threads/search", { limit: 10 }));
        const took = Math.round(performance.now() - began);
        if (took > LIST_WAIT) throw new Error(`a list of the other tenant took ${took} ms`);
        await sleep(100);
      }
    } finally {
      for (const socket of opened) socket.destroy();
    }
  },
});

function ask(
  { url, headers }: Siege["hostile"],
  count: number,
  method: string,
  path: string,
  body?: object,
): readonly Socket[] {
  const { hostname, port } = new URL(url);
  const text = body === undefined ? "" : JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    host: hostname,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  }).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  return Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname);
    // The server disconnects clients that read nothing.
    socket.on("error", () => undefined);
    socket.pause();
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${text}`);
    return socket;
  });
}

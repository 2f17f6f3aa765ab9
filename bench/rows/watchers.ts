import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../server.ts";
import { body, warmUp } from "./heddle.ts";
import { makeThreads, perform, waitFor, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";
import { watch } from "./watched.ts";

/** What one more watcher of a run costs: each event is made once, and written to each. */

/** Seconds after which the run starts, so that all who watch it are there. */
const DELAY = 4;
/** Of those, the milliseconds before the start in which nobody comes any more. */
const QUIET = 500;

/** A run that starts later. Answers its address. */
async function delayedRun(bench: Bench, server: Server, count: number): Promise<string> {
  const [thread = ""] = await makeThreads(bench, server, 1);
  const { collected } = await perform(bench, server, {
    connections: 1,
    method: "POST",
    paths: [`/threads/${thread}/runs`],
    total: 1,
    body: body("emit", { count, size: 100 }, { stream_mode: ["custom"], after_seconds: DELAY }),
    answer: "text",
    collect: "run_id",
  });
  return `/threads/${thread}/runs/${collected[0] ?? ""}/stream?stream_mode=custom`;
}

interface Watched {
  /** All of them have come, and have got all events once it resolves. */
  readonly done: Promise<void>;
}

/** By server-sent events: the load process joins so many times. */
function bySse(bench: Bench, server: Server, path: string, watchers: number, events: number): Watched {
  const joined = perform(bench, server, {
    connections: watchers,
    method: "GET",
    paths: [path],
    total: watchers,
    answer: "events",
  });
  return {
    done: joined.then((result) => {
      // `metadata` may come first.
      if (result.events < watchers * events) throw new Error(`${result.events} events came, too few`);
    }),
  };
}

/** By the WebSocket mirror: the sockets are the bench's own. */
async function bySocket(server: Server, path: string, watchers: number, events: number): Promise<Watched> {
  const sockets = await Promise.all(Array.from({ length: watchers }, () => watch(server, path)));
  return {
    done: waitFor(() => sockets.every(({ frames }) => frames >= events)).finally(() => {
      for (const socket of sockets) socket.close();
    }),
  };
}

/** CPU for one event that reaches one watcher. */
function row(kind: "sse" | "ws", watchers: number): Row {
  const name = `watchers-${kind}`;
  return {
    name: `${name}-${watchers}`,
    rounds: 1,
    what: `one run's custom events of 100 bytes, taken by ${watchers.toLocaleString("en-US")} ${kind === "sse" ? "joined streams" : "sockets of its mirror"}; CPU for one event to one of them`,
    ...(watchers === 1
      ? {}
      : {
          target: "no dearer than with one watcher",
          goals: [{ figure: "cpu_us" as const, to: `${name}-1`, most: 1 }],
          against: [{ row: `${name}-1`, figure: "cpu_us" as const }],
        }),
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        await warmUp(bench, server);
        const deliveries = 1_000_000 * bench.scale;
        const events = Math.max(100, Math.round(deliveries / (watchers === 1 ? 5 : watchers)));
        const watchOnce = async () => {
          const path = await delayedRun(bench, server, events);
          const asked = performance.now();
          const { done } =
            kind === "sse"
              ? bySse(bench, server, path, watchers, events)
              : await bySocket(server, path, watchers, events);
          await sleep(Math.max(0, DELAY * 1000 - QUIET - (performance.now() - asked)));
          const cpu = server.cpu();
          const began = performance.now() + QUIET;
          await done;
          return { used: server.cpu() - cpu, seconds: (performance.now() - began) / 1000 };
        };
        await watchOnce();
        const { used, seconds } = await watchOnce();
        const told = events * watchers;
        return { per_s: told / seconds, cpu_us: (used / told) * 1e6 };
      }),
  };
}

export const watchers: readonly Row[] = [
  ...[1, 100, 1_000].map((count) => row("sse", count)),
  ...[1, 100, 1_000].map((count) => row("ws", count)),
];

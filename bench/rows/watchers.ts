import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../server.ts";
import { body, warmUp } from "./heddle.ts";
import { makeThreads, perform, waitFor, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";
import { watch } from "./watched.ts";

/**
 * Rows for the cost of each further client that watches a run: the server should serialise an event once, and only
 * write it once per client.
 */

/** Seconds between the creation of the run and its start, so that all watchers can connect before. */
const START_DELAY_SECONDS = 4;
/** CPU time is measured from this many milliseconds before the start of the run, when all watchers have connected. */
const CONNECT_MARGIN_MS = 500;

/** Creates a run that starts after {@link START_DELAY_SECONDS}. Returns the path of its stream. */
async function delayedRun(bench: Bench, server: Server, count: number): Promise<string> {
  const [thread = ""] = await makeThreads(bench, server, 1);
  const { collected } = await perform(bench, server, {
    connections: 1,
    method: "POST",
    paths: [`/threads/${thread}/runs`],
    total: 1,
    body: body("emit", { count, size: 100 }, { stream_mode: ["custom"], after_seconds: START_DELAY_SECONDS }),
    answer: "text",
    collect: "run_id",
  });
  return `/threads/${thread}/runs/${collected[0] ?? ""}/stream?stream_mode=custom`;
}

interface Watched {
  /** Resolves when all watchers have received all events. Rejects if events are missing. */
  readonly done: Promise<void>;
}

/** Watches the run by server-sent events: each of the load process's connections joins the run's stream once. */
function bySse(bench: Bench, server: Server, path: string, watcherRows: number, events: number): Watched {
  const joined = perform(bench, server, {
    connections: watcherRows,
    method: "GET",
    paths: [path],
    total: watcherRows,
    answer: "events",
  });
  return {
    done: joined.then((result) => {
      // The server may also send each watcher a `metadata` event, so more events are no error.
      if (result.events < watcherRows * events) throw new Error(`${result.events} events came, too few`);
    }),
  };
}

/** Watches the run by WebSocket. The sockets belong to the bench's own process. */
async function bySocket(server: Server, path: string, watchers: number, events: number): Promise<Watched> {
  const sockets = await Promise.all(Array.from({ length: watchers }, () => watch(server, path)));
  return {
    done: waitFor(() => sockets.every(({ frames }) => frames >= events)).finally(() => {
      for (const socket of sockets) socket.close();
    }),
  };
}

/** A row that measures the CPU time for delivering one event to one watcher. */
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
          await sleep(
            Math.max(0, START_DELAY_SECONDS * 1000 - CONNECT_MARGIN_MS - (performance.now() - asked)),
          );
          const cpu = server.cpu();
          const began = performance.now() + CONNECT_MARGIN_MS;
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

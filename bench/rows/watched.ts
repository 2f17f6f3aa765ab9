import { once } from "node:events";
import { WebSocket } from "ws";
import type { Server } from "../server.ts";
import { body, warmUp } from "./heddle.ts";
import { makeThreads, measure, perform, waitFor, withServer, type Request } from "./measure.ts";
import type { Figures, Row } from "./row.ts";

/**
 * Opens a WebSocket that counts the messages it receives. It belongs to the bench's own process, so that it uses no
 * CPU time of the server or of the load process.
 */
export async function watch(server: Server, path: string): Promise<{ frames: number; close(): void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}${path}`);
  const watcher = { frames: 0, close: () => socket.terminate() };
  socket.on("message", () => watcher.frames++);
  await once(socket, "open");
  return watcher;
}

/**
 * A row that streams the custom events of one run to the client that started it, and to `mirrors` sockets on the same
 * thread.
 */
function mirrorRow(name: string, mirrors: number, target: string): Row {
  return {
    name,
    what: `one run that emits 200,000 custom events of 100 bytes, read by its stream and by ${mirrors} socket(s)`,
    target,
    against: [
      { row: "custom-1", figure: "per_s" },
      { row: "custom-1", figure: "cpu_us" },
    ],
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        await warmUp(bench, server);
        const count = Math.max(10, Math.round((200_000 / Math.max(1, mirrors / 4)) * bench.scale));
        const stream = (threads: readonly string[]): Request => ({
          connections: 1,
          method: "POST",
          paths: threads.map((thread) => `/threads/${thread}/runs/stream`),
          total: threads.length,
          body: body("emit", { count, size: 100 }, { stream_mode: ["custom"] }),
          answer: "events",
        });
        await perform(bench, server, stream(await makeThreads(bench, server, 1)));
        const [thread = ""] = await makeThreads(bench, server, 1);
        const path = `/threads/${thread}/stream?stream_mode=custom`;
        const watchers = await Promise.all(Array.from({ length: mirrors }, () => watch(server, path)));
        const before = server.cpu();
        const { figures } = await measure(bench, server, stream([thread]), "event");
        await waitFor(() => watchers.every(({ frames }) => frames >= count));
        const used = server.cpu() - before;
        for (const watcher of watchers) watcher.close();
        // CPU time is taken after the last socket has received its events, which may be after the end of the stream.
        return { ...figures, cpu_us: (used / count) * 1e6 };
      }),
  };
}

/** Rows that measure what watching clients cost the server. */
export const watchedRows: readonly Row[] = [
  {
    name: "inspect-256",
    what: "as wait-256, with one watcher of all actors (`/inspect`), which takes every frame",
    target: "stated",
    against: [
      { row: "wait-256", figure: "per_s" },
      { row: "wait-256", figure: "cpu_us" },
    ],
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        const total = Math.max(256, Math.round(6_000 * bench.scale));
        await warmUp(bench, server);
        const ids = await makeThreads(bench, server, total);
        const watcher = await watch(server, "/inspect");
        const { figures } = await measure(bench, server, {
          connections: 256,
          method: "POST",
          paths: ids.map((id) => `/threads/${id}/runs/wait`),
          total,
          body: body("one", { value: 1 }),
          answer: "text",
        });
        if (watcher.frames < total) throw new Error(`the watcher was told of ${watcher.frames} changes only`);
        watcher.close();
        return { ...figures, frames: watcher.frames / total };
      }),
  },
  mirrorRow("mirror-1", 1, "stated"),
];

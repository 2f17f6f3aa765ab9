import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { graph } from "../../src/index.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, postJson } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes that this process uses, including memory outside the heap. */
async function held(): Promise<number> {
  // Native memory is released in later turns.
  for (let i = 0; i < 5; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const MIB = 1024 * 1024;
const SOCKETS = 24;
/** More events than the system's buffers of a connection can hold. */
const EVENTS = 900;
const BYTES = 32 * 1024;
/** Milliseconds for which a client may read nothing, and how long it does so here. */
const STALL = 10_000;

describeOverEachTransport("sockets that take nothing,", (transport) => {
  test("are closed with a reason, and cost less than a MiB each; the run does not wait for them", async () => {
    const go = latch();
    const stalls = new Set<() => void>();
    const scheduler: Scheduler = {
      soon: (task) => systemScheduler.soon(task),
      after(ms, task) {
        if (ms !== STALL) return systemScheduler.after(ms, task);
        stalls.add(task);
        return () => stalls.delete(task);
      },
    };
    const burst = graph({
      state: {},
      nodes: {
        emit: async (_, ctx) => {
          await unlessAborted(go.passed, ctx.signal);
          for (let i = 0; i < EVENTS; i++) {
            ctx.emit(`${i}:`.padEnd(BYTES, "x"));
            if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
          }
        },
      },
      edges: { start: "emit" },
    });
    const { url, complaints } = await serve({
      transport,
      scheduler,
      data: await directory(),
      graphs: { burst },
    });
    const thread = await newThread(url);
    const body = { assistant_id: "burst", input: {}, stream_mode: "custom" };
    const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, body);
    const run = `${url}/threads/${thread}/runs/${run_id}`;
    const sockets = await Promise.all(
      Array.from({ length: SOCKETS }, (_, n) =>
        dial(n % 2 === 0 ? `${run}/stream` : `${url}/threads/${thread}/stream`, { packed: n % 4 < 2 }),
      ),
    );
    for (const { socket } of sockets) socket.pause();
    const before = await held();
    const others = stalls.size;
    go.pass();
    await (await get(`${run}/join`)).text();
    // The server may not have filled the buffers of all connections when the run has ended.
    await expect.poll(() => stalls.size).toBe(others + SOCKETS);
    // The rest of the run's log is in memory once, however many clients read it. Memory that is released late, such
    // as that of native code and of other tests in this process, does not count.
    const each = async () => ((await held()) - before) / SOCKETS;
    await expect.poll(each, { timeout: 30_000 }).toBeLessThan(MIB);
    for (const task of stalls) task();
    for (const { socket } of sockets) socket.resume();
    for (const { closed, frames } of sockets) {
      const { code, reason } = await closed;
      expect([code, reason]).toEqual([1013, expect.stringContaining("last_event_id")]);
      expect(frames.length).toBeGreaterThan(1);
      expect(frames.length).toBeLessThan(EVENTS);
    }
    // A client that reconnects gets the rest.
    const [first] = sockets;
    const last = first?.frames.at(-1)?.id;
    const again = await dial(`${run}/stream?last_event_id=${last}`);
    await again.closed;
    expect((first?.frames.length ?? 0) + again.frames.length).toBe(EVENTS + 1);
    expect(complaints).toEqual([]);
    // The garbage of the other tests in this process is collected, too.
  }, 60_000);
});

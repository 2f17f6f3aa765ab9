import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../server.ts";
import type { Job, JobResult } from "../load/job.ts";
import { Probe } from "../probe.ts";
import type { Bench, Figures } from "./row.ts";

export type Request = Omit<Job, "host" | "port">;

export interface Measured {
  readonly result: JobResult;
  readonly figures: Figures;
}

/** Performs a job on a server without measuring it. Throws if a request fails. */
export async function perform(bench: Bench, server: Server, request: Request): Promise<JobResult> {
  const result = await bench.load.perform({ host: "127.0.0.1", port: server.port, ...request });
  if (result.failures > 0) {
    throw new Error(
      `${result.failures} of ${result.requests} requests failed, one with: ${result.failure ?? "?"}`,
    );
  }
  return result;
}

/**
 * Performs a job and measures its cost. CPU and bytes are given per operation, which is an event or a request as
 * `each` says; synced batches are given per request.
 */
export async function measure(
  bench: Bench,
  server: Server,
  request: Request,
  each: "request" | "event" = "request",
): Promise<Measured> {
  const before = await server.stats();
  const cpu = server.cpu();
  const probe = await Probe.start(server.port);
  const result = await perform(bench, server, request);
  const used = server.cpu() - cpu;
  const ok = probe.stop();
  const after = await server.stats();
  const operations = each === "event" ? result.events : result.requests;
  const stored =
    before.storage === undefined || after.storage === undefined
      ? {}
      : {
          synced: (after.storage.synced - before.storage.synced) / result.requests,
          stored_bytes: (after.storage.bytes - before.storage.bytes) / operations,
        };
  return {
    result,
    figures: {
      per_s: operations / result.seconds,
      p50_ms: result.latency.p50,
      p99_ms: result.latency.p99,
      cpu_us: (used / operations) * 1e6,
      load_us: (result.cpu / operations) * 1e6,
      ok_p99_ms: ok.p99,
      ...stored,
      ...(result.first === null ? {} : { first_p50_ms: result.first.p50, first_p99_ms: result.first.p99 }),
      ...(request.answer === "events" ? { sent_bytes: result.bytes / operations } : {}),
    },
  };
}

export async function withServer<S extends Server, T>(
  starting: Promise<S>,
  use: (server: S) => Promise<T>,
): Promise<T> {
  const server = await starting;
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

/** Creates threads and returns their ids. Rows do not measure this. */
export async function makeThreads(
  bench: Bench,
  server: Server,
  count: number,
  over: Pick<Request, "connections" | "partitioned"> = { connections: Math.min(64, count) },
): Promise<readonly string[]> {
  const result = await perform(bench, server, {
    ...over,
    method: "POST",
    paths: ["/threads"],
    total: count,
    body: "{}",
    answer: "text",
    collect: "thread_id",
  });
  return result.collected;
}

/** Waits until `isSo` returns true. Throws after a minute. */
export async function waitFor(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error("It did not come to pass within a minute");
    await sleep(20);
  }
}

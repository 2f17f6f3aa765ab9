import { expect, test } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { silentLogger } from "../../src/platform/log.ts";
import type { NodeExecutor } from "../../src/ports/node-executor.ts";
import type { WorkerThread } from "../../src/ports/worker-thread.ts";
import type { FromWorker, ToWorker } from "../../src/workers/worker-messages.ts";
import { startWorkerPool } from "../../src/workers/worker-pool.ts";
import { Timers } from "../http/support.ts";

/** A worker thread whose messages and end the test decides. */
class ScriptedThread implements WorkerThread<ToWorker, readonly FromWorker[]> {
  #take: (messages: readonly FromWorker[]) => void = () => undefined;
  #ended: (why: string) => void = () => undefined;

  post(): void {}

  onMessage(take: (messages: readonly FromWorker[]) => void): void {
    this.#take = take;
  }

  onEnd(listener: (why: string) => void): void {
    this.#ended = listener;
  }

  async terminate(): Promise<void> {
    this.#ended("terminated");
  }

  send(message: FromWorker): void {
    this.#take([message]);
  }
}

const local: NodeExecutor = {
  run: () => Promise.reject(new Error("not in this test")),
  close: async () => undefined,
};

test("a worker whose graphs can no longer be loaded is started again ever less often, and the log says why", async () => {
  const scheduler = new Timers();
  const threads: ScriptedThread[] = [];
  const logged: (JsonObject | undefined)[] = [];
  const starting = startWorkerPool({
    count: 1,
    spawn: () => (threads.push(new ScriptedThread()), threads.at(-1) as ScriptedThread),
    local,
    serves: () => true,
    scheduler,
    logger: { ...silentLogger, warn: (_, fields) => void logged.push(fields) },
  });
  const last = () => threads.at(-1) as ScriptedThread;
  last().send({ t: "ready" });
  const host = await starting;
  await last().terminate();
  for (const delay of [200, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]) {
    const { length } = threads;
    expect(logged.at(-1)).toMatchObject({ left: 0, delay_ms: delay });
    scheduler.advance(delay - 1);
    expect(threads).toHaveLength(length);
    scheduler.advance(1);
    expect(threads).toHaveLength(length + 1);
    last().send({ t: "refused", error: { error: "SyntaxError", message: "Unexpected token" } });
  }
  expect(logged.at(-1)).toMatchObject({ error: "Unexpected token" });
  // One that is ready ends the waiting.
  scheduler.advance(10_000);
  last().send({ t: "ready" });
  await last().terminate();
  expect(logged.at(-1)).toEqual({ left: 0, delay_ms: 200 });
  await host.close();
});

test("calls that wait for a worker when the workers are closed, or come later, fail", async () => {
  const thread = new ScriptedThread();
  const starting = startWorkerPool({
    count: 1,
    spawn: () => thread,
    local: { ...local, close: async () => undefined },
    serves: () => true,
    scheduler: new Timers(),
    logger: silentLogger,
  });
  thread.send({ t: "ready" });
  const host = await starting;
  const call = () =>
    host.run(
      {} as Parameters<NodeExecutor["run"]>[0],
      { signal: new AbortController().signal } as Parameters<NodeExecutor["run"]>[1],
    );
  // No worker is left, so the call waits for the next one.
  await thread.terminate();
  const waiting = call();
  await host.close();
  const failed = {
    kind: "failed",
    error: { error: "WorkerLostError", message: "The worker threads have been closed" },
  };
  expect([await waiting, await call()]).toEqual([failed, failed]);
});

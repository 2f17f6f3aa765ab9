/* oxlint-disable unicorn/require-post-message-target-origin -- a worker's postMessage, not a window's */
/**
 * Measures what it costs to run a node function in a worker thread: the state is sent to the worker, and a small
 * update comes back. The control calls the same function in this thread. Also measures tokens that the worker sends
 * back one by one, or several in a message.
 */
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { pack, unpack } from "msgpackr";
import { summarize } from "../stats.ts";
import { cpuByThread, cpuSince } from "./threads.ts";

interface Call {
  readonly id: number;
  readonly form: "clone" | "bytes";
  readonly input: unknown;
  /** The number of tokens that the worker sends back, `gather` of them in each message. */
  readonly tokens: number;
  readonly gather: number;
}

interface Done {
  readonly id: number;
  readonly update?: unknown;
  readonly tokens?: readonly string[];
}

const body = async (state: { readonly n: number }) => ({ n: state.n + 1, note: "x".repeat(60) });

/** Returns a state of about `size` bytes: messages of 200 characters, as in a conversation. */
function stateOf(size: number) {
  const messages = Array.from({ length: Math.max(1, Math.round(size / 320)) }, (_, i) => ({
    type: i % 2 === 0 ? "human" : "ai",
    id: `0190a1f8-0000-7000-8000-${String(i).padStart(12, "0")}`,
    content: "w".repeat(200),
    additional_kwargs: {},
    response_metadata: {},
  }));
  return { n: 1, messages };
}

if (!isMainThread) {
  parentPort?.on("message", (call: Call) => {
    const input = call.form === "bytes" ? unpack(call.input as Uint8Array) : call.input;
    let gathered: string[] = [];
    for (let i = 0; i < call.tokens; i++) {
      gathered.push("word ");
      if (gathered.length === call.gather || i === call.tokens - 1) {
        parentPort?.postMessage({ id: call.id, tokens: gathered } satisfies Done);
        gathered = [];
      }
    }
    void body(input as { n: number }).then((update) =>
      parentPort?.postMessage({ id: call.id, update } satisfies Done),
    );
  });
}

class Remote {
  readonly #worker = new Worker(fileURLToPath(import.meta.url));
  readonly #waiting = new Map<number, () => void>();
  #id = 0;
  tokens = 0;

  constructor() {
    this.#worker.on("message", (done: Done) => {
      if (done.tokens !== undefined) {
        this.tokens += done.tokens.length;
        return;
      }
      this.#waiting.get(done.id)?.();
      this.#waiting.delete(done.id);
    });
  }

  call(form: Call["form"], state: unknown, tokens = 0, gather = 1): Promise<void> {
    const id = this.#id++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      if (form === "clone") {
        this.#worker.postMessage({ id, form, input: state, tokens, gather } satisfies Call);
        return;
      }
      // Copied, because `pack` reuses its buffer, and `postMessage` detaches the buffer that it transfers.
      const input = Uint8Array.from(pack(state));
      this.#worker.postMessage({ id, form, input, tokens, gather } satisfies Call, [input.buffer]);
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

async function measure(
  name: string,
  call: () => Promise<void>,
  total: number,
  together: number,
): Promise<string[]> {
  for (let i = 0; i < total / 5; i++) await call();
  const latencies: number[] = [];
  let left = total;
  const before = cpuByThread();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: together }, async () => {
      while (left-- > 0) {
        const began = performance.now();
        await call();
        latencies.push(performance.now() - began);
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const { main, others } = cpuSince(before);
  const { p50, p99 } = summarize(latencies);
  const us = (value: number) => ((value / total) * 1e6).toFixed(1);
  return [
    name,
    String(together),
    Math.round(total / seconds).toLocaleString("en-US"),
    (p50 * 1000).toFixed(0),
    (p99 * 1000).toFixed(0),
    us(main),
    us(others),
  ];
}

/** Runs the measurement and returns the rows of a table. */
export async function nodeWorker(): Promise<string[][]> {
  const lines: string[][] = [];
  const remote = new Remote();
  for (const size of [1_000, 100_000]) {
    const state = stateOf(size);
    const total = size > 10_000 ? 2_000 : 20_000;
    const kb = `${size / 1000} KB`;
    for (const together of [1, 64]) {
      lines.push(
        await measure(`in this thread, ${kb}`, async () => void (await body(state)), total, together),
      );
      lines.push(await measure(`worker, cloned, ${kb}`, () => remote.call("clone", state), total, together));
      lines.push(
        await measure(`worker, msgpack moved, ${kb}`, () => remote.call("bytes", state), total, together),
      );
    }
  }
  const small = stateOf(300);
  for (const gather of [1, 16, 256]) {
    const each = 1_000;
    remote.tokens = 0;
    const calls = 200;
    const before = cpuByThread();
    const start = performance.now();
    for (let i = 0; i < calls; i++) await remote.call("clone", small, each, gather);
    const seconds = (performance.now() - start) / 1000;
    const { main, others } = cpuSince(before);
    const us = (value: number) => ((value / remote.tokens) * 1e6).toFixed(2);
    lines.push([
      `tokens from a worker, ${gather} to a message (per token)`,
      "1",
      Math.round(remote.tokens / seconds).toLocaleString("en-US"),
      "",
      "",
      us(main),
      us(others),
    ]);
  }
  await remote.stop();
  return lines;
}

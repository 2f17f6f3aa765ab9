import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { kwargsKey, runKey, threadPrefix } from "../../src/storage/keys.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { Server } from "./server.ts";

const said = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["said"] }) },
  edges: { start: "say" },
});

const byHand = {
  from: null,
  ns: "",
  supersteps: [[{ values: { log: ["by hand"] }, as_node: "say", at: "" }]],
};

/** A store with slow writes. */
class SlowKeyValueStore extends MemoryKeyValueStore {
  until: Promise<void> = Promise.resolve();

  override async batch(...write: Parameters<MemoryKeyValueStore["batch"]>): Promise<void> {
    await this.until;
    return super.batch(...write);
  }
}

/** A store that deletes the keys of a run just before it reads one of them, as a concurrent deletion may do. */
class TornKeyValueStore extends MemoryKeyValueStore {
  gone: readonly string[] = [];

  override get(key: string): Buffer | undefined {
    return this.gone.at(-1) === key || (this.gone.includes(key) && this.isGone) ? this.#go() : super.get(key);
  }

  isGone = false;

  #go(): undefined {
    this.isGone = true;
  }
}

test("a run that is deleted while it is being read is not there, and nothing is damaged", async () => {
  const kv = new TornKeyValueStore();
  const server = await Server.start(said, { kv });
  const key = await server.thread();
  const run = await server.admit(key);
  await server.do(server.system.settled(key, run.run_id));
  const prefix = threadPrefix(key);
  kv.gone = [runKey(prefix, run.run_id), kwargsKey(prefix, run.run_id)];
  expect(await server.record(key, run)).toBeUndefined();
});

describe("a run is deleted while the state is changed", () => {
  test("the next change starts from one that is still on its way to storage", async () => {
    const warned: string[] = [];
    const kv = new SlowKeyValueStore();
    const server = await Server.start(said, { warned, kv });
    const key = await server.thread();
    const run = await server.admit(key);
    await server.do(server.system.settled(key, run.run_id));
    let go: () => void = () => undefined;
    kv.until = new Promise((resolve) => (go = resolve));
    const asked: Promise<unknown>[] = [];
    for (const ask of [
      () => server.system.update(key, byHand),
      () => server.system.forget(key, run.run_id),
      () => server.system.update(key, byHand),
    ]) {
      asked.push(ask().catch((cause: unknown) => cause));
      await server.scheduler.settle();
    }
    go();
    const outcomes = await server.do(Promise.all(asked));
    expect(outcomes.filter((outcome) => outcome instanceof Error)).toEqual([]);
    expect(warned).toEqual([]);
    expect(await server.values(key)).toEqual({ log: ["said", "by hand", "by hand"] });
  });
});

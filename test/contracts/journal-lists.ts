import { expect, test } from "vitest";
import type { ChannelChange, ChannelRef } from "../../src/model/checkpoint.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { all, aCheckpoint, add, aRun, id, set, threadKey, Writer } from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

/** The state at each checkpoint, and its cost. */
export function listsContract(opened: Opened, supports: Supports): void {
  const writer = (n = 1): Writer => new Writer(() => opened().journal, threadKey(n));

  async function valuesAt(one: Writer, n: number, channels?: readonly string[]): Promise<JsonObject> {
    const { journal } = opened();
    const checkpoint = await journal.checkpoint(one.key, "", id(n));
    if (checkpoint === undefined) throw new Error(`no checkpoint ${n}`);
    return journal.sharedValues(one.key, checkpoint, channels);
  }

  async function refAt(one: Writer, n: number, channel: string): Promise<ChannelRef | undefined> {
    return (await opened().journal.checkpoint(one.key, "", id(n)))?.channels[channel];
  }

  /** Appends one checkpoint after another. */
  async function steps(one: Writer, changes: readonly { readonly [channel: string]: ChannelChange }[]) {
    for (const [i, change] of changes.entries()) {
      await one.append({ checkpoints: [aCheckpoint(i + 1, i === 0 ? null : i, change)] });
    }
  }

  test("lists grow, are cut and edited, and stay readable at every checkpoint", async () => {
    const one = writer();
    await steps(one, [
      { l: add(0, "a", "b") },
      { l: add(2, "c") },
      { x: set(1) },
      { l: add(1, "B", "C", "D") },
      { l: add(4) },
      { l: add(4, "e") },
      { l: add(2) },
      { l: add(2, "f") },
      { l: add(0) },
      { l: add(0, "g") },
      { l: { kind: "clear" } },
      { l: add(0, "h") },
      { l: set(["i", "j"]) },
      { l: add(2, "k") },
      { l: set("no list any more") },
      { l: add(0, "l") },
    ]);
    const expected: unknown[] = [
      ["a", "b"],
      ["a", "b", "c"],
      ["a", "b", "c"],
      ["a", "B", "C", "D"],
      ["a", "B", "C", "D"],
      ["a", "B", "C", "D", "e"],
      ["a", "B"],
      ["a", "B", "f"],
      [],
      ["g"],
      undefined,
      ["h"],
      ["i", "j"],
      ["i", "j", "k"],
      "no list any more",
      ["l"],
    ];
    for (const [i, l] of expected.entries()) expect((await valuesAt(one, i + 1)).l).toEqual(l);
    expect(await all(opened().journal.verify())).toEqual([]);
  });

  test("branches from one checkpoint do not touch one another", async () => {
    const one = writer();
    await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, "a") })] });
    // Concurrent, and within one append.
    await Promise.all([
      one.append({
        checkpoints: [aCheckpoint(2, 1, { l: add(1, "b") }), aCheckpoint(3, 2, { l: add(2, "c") })],
      }),
      one.append({
        checkpoints: [aCheckpoint(4, 1, { l: add(1, "x") }), aCheckpoint(5, 1, { l: add(1, "y") })],
      }),
    ]);
    opened().journal.release(one.key);
    await one.append({ checkpoints: [aCheckpoint(6, 1, { l: add(1, "z") })] });
    await one.append({ checkpoints: [aCheckpoint(7, 3, { l: add(3, "d") })] });
    for (const [n, l] of [
      [1, "a"],
      [2, "ab"],
      [3, "abc"],
      [4, "ax"],
      [5, "ay"],
      [6, "az"],
      [7, "abcd"],
    ] as const) {
      expect((await valuesAt(one, n)).l).toEqual([...l]);
    }
    expect(await all(opened().journal.verify())).toEqual([]);
  });

  test("a walk of appends, cuts and forks reads like plain arrays", async () => {
    const one = writer();
    // A fixed sequence of pseudo-random numbers, so that a failure can be repeated.
    let seed = 20_261_120;
    const below = (n: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
      return (seed >>> 8) % n;
    };
    const model: string[][] = [[]];
    await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0) })] });
    for (let n = 2; n <= 400; n++) {
      const parent = below(4) === 0 ? below(model.length) : model.length - 1;
      const before = model[parent] ?? [];
      const keep = below(3) === 0 ? below(before.length + 1) : before.length;
      const items = Array.from({ length: below(4) }, (_, i) => `${n}.${i}`);
      model.push([...before.slice(0, keep), ...items]);
      const made = one.append({ checkpoints: [aCheckpoint(n, parent + 1, { l: add(keep, ...items) })] });
      if (below(5) === 0) await made;
      if (below(20) === 0) opened().journal.release(one.key);
    }
    await one.append();
    if (supports.reopen) await opened().reopen();
    for (const [i, l] of model.entries()) expect((await valuesAt(one, i + 1)).l).toEqual(l);
    expect(await all(opened().journal.verify())).toEqual([]);
  });

  test("a list that was edited often is written anew, and stays whole", async () => {
    const one = writer();
    let model: number[] = [];
    let parent: number | null = null;
    for (let n = 1; n <= 300; n++) {
      const keep: number = Math.max(0, model.length - 1);
      model = [...model.slice(0, keep), n, n + 1_000];
      await one.append({ checkpoints: [aCheckpoint(n, parent, { l: add(keep, n, n + 1_000) })] });
      parent = n;
      const ref = await refAt(one, n, "l");
      expect(ref?.kind === "list" && ref.spans.length).toBeLessThanOrEqual(64);
      expect((await valuesAt(one, n)).l).toEqual(model);
    }
  });

  test("the bytes of a run and of its checkpoint do not grow with the runs before it", async () => {
    const one = writer();
    await one.append();
    const cost: number[] = [];
    let parent: number | null = null;
    for (let n = 1; n <= 300; n++) {
      const before = opened().bytes();
      const run = aRun(one.key, 1_000 + n);
      const items = [`message ${n} `.repeat(20), "and its answer"];
      await one.start(run);
      await one.settle(run, { checkpoints: [aCheckpoint(n, parent, { l: add(2 * (n - 1), ...items) })] });
      cost.push(opened().bytes() - before);
      parent = n;
      if (n % 50 === 0) opened().journal.release(one.key);
    }
    expect(cost.at(-1)).toBeLessThan((cost[1] ?? 0) * 1.1);
    const ref = await refAt(one, 300, "l");
    expect(ref?.kind === "list" && ref.spans.length).toBe(1);
  });

  test("only the channels asked for are read", async () => {
    const one = writer();
    await one.append({ checkpoints: [aCheckpoint(1, null, { l: add(0, 1), x: set(1), y: set(null) })] });
    expect(await valuesAt(one, 1, ["x", "y"])).toEqual({ x: 1, y: null });
    expect(await valuesAt(one, 1, ["x", "nothing", "toString"])).toEqual({ x: 1 });
    expect(await valuesAt(one, 1, [])).toEqual({});
  });

  test("a long list comes whole", async () => {
    const one = writer();
    const made: Promise<void>[] = [];
    for (let n = 1; n <= 1_200; n++) {
      made.push(one.append({ checkpoints: [aCheckpoint(n, n === 1 ? null : n - 1, { l: add(n - 1, n) })] }));
    }
    await Promise.all(made);
    const values = await valuesAt(one, 1_200);
    expect(values.l).toEqual(Array.from({ length: 1_200 }, (_, i) => i + 1));
  });

  test("values come back exactly", async () => {
    const value = {
      numbers: [0, -1, 1.5, 1e21, -1e-7, 2 ** 53, 2 ** 63, 4_294_967_296, Number.MIN_VALUE],
      texts: ["", "é ✓ 😀 한글", "\ud800", `${"x".repeat(5_000)}\udc00`, "\ufffd", "__proto__", "\u0000"],
      "": { nested: [[[]], [{}], [null, true, false]] },
      "\udfff": 1,
      constructor: "own",
      toString: null,
    };
    const one = writer();
    const own = JSON.parse('{"__proto__":{"a":1},"b":2}') as unknown;
    await one.append({
      checkpoints: [aCheckpoint(1, null, { value: set(value), list: add(0, own, value) })],
    });
    const values = await valuesAt(one, 1);
    expect(values).toEqual({ value, list: [own, value] });
    expect(JSON.stringify(values)).toBe(JSON.stringify({ value, list: [own, value] }));
  });
}

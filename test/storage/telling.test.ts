import { expect, test } from "vitest";
import { Telling } from "../../src/storage/telling.ts";

/** A loop whose turns are told apart, and whose time passes only by work. */
function aLoop() {
  let now = 0;
  const turns: number[][] = [];
  const tasks: (() => void)[] = [];
  const telling = new Telling(
    { now: () => now, mono: () => now },
    { soon: (task) => void tasks.push(task), after: () => () => undefined },
  );
  /** The sizes of the turns in which `count` writers are told, each of whom goes on for `each` ms. */
  async function tell(count: number, each: number): Promise<number[]> {
    turns.length = 0;
    turns.push([]);
    const done = telling.tell(count, (index) => {
      turns.at(-1)?.push(index);
      now += each;
    });
    let isDone = false;
    void done.then(() => (isDone = true));
    await Promise.resolve();
    while (!isDone) {
      turns.push([]);
      tasks.shift()?.();
      for (let i = 0; i < 5; i++) await Promise.resolve();
    }
    telling.turned();
    expect(turns.flat()).toEqual(Array.from({ length: count }, (_, i) => i));
    return turns.map((turn) => turn.length);
  }
  return { telling, tell, pass: (ms: number) => (now += ms) };
}

test("those who are quick are told in one turn", async () => {
  const { tell } = aLoop();
  expect(await tell(50, 0.2)).toEqual([50]);
  expect(await tell(100, 0.2)).toEqual([100]);
  expect(await tell(150, 0.2)).toEqual([100, 50]);
});

test("those who go on for long are told a few a turn, never fewer than eight", async () => {
  const { tell } = aLoop();
  expect(await tell(50, 1)).toEqual([50]);
  expect(await tell(50, 1)).toEqual([20, 20, 10]);
  expect(await tell(20, 9)).toEqual([20]);
  expect(await tell(20, 9)).toEqual([8, 8, 4]);
});

test("what they took is forgotten as others are quicker", async () => {
  const { tell } = aLoop();
  await tell(50, 8);
  let turns = 0;
  for (let batch = 0; batch < 8; batch++) turns = (await tell(50, 0.1)).length;
  expect(turns).toBe(1);
});

test("a rest of the loop is nobody's work", async () => {
  const { telling, tell, pass } = aLoop();
  await tell(10, 0.2);
  await telling.tell(10, () => undefined);
  telling.rested();
  pass(1_000);
  telling.turned();
  expect(await tell(100, 0.2)).toEqual([100]);
});

test("nobody is told nothing", async () => {
  const { telling } = aLoop();
  await telling.tell(0, () => expect.unreachable());
});

import { expect, test } from "vitest";
import { AcknowledgementBatcher } from "../../src/storage/acknowledgement-batcher.ts";

/** An event loop with distinguishable turns, whose time advances only through work. */
function aLoop() {
  let now = 0;
  const turns: number[][] = [];
  const tasks: (() => void)[] = [];
  const telling = new AcknowledgementBatcher(
    { now: () => now, mono: () => now },
    { soon: (task) => void tasks.push(task), after: () => () => undefined },
  );
  /** The number of writers acknowledged in each turn, for `count` writers whose callbacks take `each` ms. */
  async function tell(count: number, each: number): Promise<number[]> {
    turns.length = 0;
    turns.push([]);
    const done = telling.acknowledge(count, (index) => {
      turns.at(-1)?.push(index);
      now += each;
    });
    let isDone = false;
    void done.then(() => (isDone = true));
    await Promise.resolve();
    while (!isDone) {
      turns.push([]);
      for (const task of tasks.splice(0)) task();
      for (let i = 0; i < 5; i++) await Promise.resolve();
    }
    telling.measure();
    expect(turns.flat()).toEqual(Array.from({ length: count }, (_, i) => i));
    return turns.map((turn) => turn.length).filter((size) => size > 0);
  }
  return { telling, tell, pass: (ms: number) => (now += ms) };
}

test("those who are quick are told in one turn", async () => {
  const { tell } = aLoop();
  expect(await tell(50, 0.2)).toEqual([50]);
  expect(await tell(75, 0.2)).toEqual([75]);
  expect(await tell(100, 0.2)).toEqual([75, 25]);
});

test("those who go on for long are told a few a turn, never fewer than eight", async () => {
  const { tell } = aLoop();
  expect(await tell(50, 1)).toEqual([50]);
  expect(await tell(50, 1)).toEqual([15, 15, 15, 5]);
  expect(await tell(20, 9)).toEqual([15, 5]);
  expect(await tell(20, 9)).toEqual([8, 8, 4]);
});

test("the longest counts, and is forgotten by and by as others are quicker", async () => {
  const { tell } = aLoop();
  await tell(50, 0.5);
  expect(await tell(60, 0.125)).toEqual([30, 30]);
  // An eighth of the measured duration, 0.5 ms, decays after each turn: of the 0.375 ms above 0.125.
  expect(await tell(200, 0.125)).toEqual([36, 39, 43, 47, 35]);
});

test("runs that end do not make those that begin forgotten", async () => {
  const { tell } = aLoop();
  await tell(64, 2);
  for (let i = 0; i < 5; i++) {
    await tell(64, 0.05);
    // Each callback takes 2 ms: the loop is blocked for 36 ms, not for 128.
    expect(await tell(64, 2)).toEqual([18, 8, 8, 8, 8, 8, 6]);
  }
});

test("a rest of the loop is nobody's work", async () => {
  const { telling, tell, pass } = aLoop();
  await tell(10, 0.2);
  await telling.acknowledge(10, () => undefined);
  telling.skipMeasure();
  pass(1_000);
  telling.measure();
  expect(await tell(70, 0.2)).toEqual([70]);
});

test("nobody is told nothing", async () => {
  const { telling } = aLoop();
  await telling.acknowledge(0, () => expect.unreachable());
});

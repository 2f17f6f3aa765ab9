import { expect, test } from "vitest";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { protocol, THREAD } from "../http/support.ts";

/** An event loop with distinguishable turns, whose time advances only through work. */
function aLoop() {
  let now = 0;
  let tasks: (() => void)[] = [];
  const begun: number[] = [];
  const budget = new TimeBudget(
    { now: () => now, mono: () => now },
    {
      soon: (task) => void tasks.push(task),
      // A pause is over by the next turn.
      after: (_, task) => {
        tasks.push(task);
        return () => undefined;
      },
    },
  );
  let count = 0;
  return {
    /** Adds this many requests of a tenant in this turn, each of which takes `ms`. */
    come(many: number, ms: number, tenant = "a"): void {
      for (let i = 0; i < many; i++) {
        const name = count++;
        budget.take(tenant, () => {
          begun.push(name);
          now += ms;
        });
      }
    },
    /** A request that fails at once. */
    fail(): void {
      budget.take("a", () => {
        throw new Error("it fails");
      });
    },
    /** Runs what was deferred to the next turn. Other work has taken 40 ms by then. */
    turn(): void {
      now += 40;
      const due = tasks;
      tasks = [];
      for (const task of due) task();
    },
    begun,
    isIdle: () => tasks.length === 0,
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

test("a few begin at once, turn after turn, and nothing is put off", () => {
  const { come, turn, begun, isIdle } = aLoop();
  for (let i = 0; i < 3; i++) {
    come(5, 9);
    expect(begun).toEqual(upTo(5 * (i + 1)));
    turn();
  }
  expect(isIdle()).toBe(true);
});

test("many that are quick begin at once", () => {
  const { come, turn, begun, isIdle } = aLoop();
  come(500, 0.02);
  expect(begun).toEqual(upTo(500));
  turn();
  expect(isIdle()).toBe(true);
});

test("what does not fit into a turn begins in those that follow, in its order, and who comes meanwhile after it", () => {
  const { come, turn, begun, isIdle } = aLoop();
  come(100, 1);
  // Requests whose time is not measured, and 15 ms.
  expect(begun).toEqual(upTo(30));
  turn();
  come(10, 1);
  expect(begun.length).toBe(30);
  const sizes: number[] = [];
  for (let before = 30; begun.length < 110; before = begun.length) {
    turn();
    sizes.push(begun.length - before);
  }
  expect(sizes).toEqual([15, 15, 15, 15, 15, 5]);
  expect(begun).toEqual(upTo(110));
  turn();
  expect(isIdle()).toBe(true);
  come(3, 1);
  expect(begun).toEqual(upTo(113));
});

test("a tenant's one request does not wait for all of another tenant's", () => {
  const { come, turn, begun } = aLoop();
  come(100, 1);
  expect(begun).toEqual(upTo(30));
  come(1, 1, "b");
  turn();
  turn();
  expect(begun.slice(30)).toEqual([30, 100, ...upTo(44).slice(31)]);
});

test("thousands that have waited are not all put off to one turn", () => {
  const { come, turn, begun } = aLoop();
  come(16, 20);
  come(1_000, 0.01);
  turn();
  turn();
  expect(begun.length).toBe(16 + 256);
});

test("one that fails as it begins keeps nobody from beginning", () => {
  const { come, fail, turn, begun, isIdle } = aLoop();
  for (let i = 0; i < 100; i++) expect(fail).toThrow("it fails");
  turn();
  expect(isIdle()).toBe(true);
  come(40, 0.1);
  expect(begun).toEqual(upTo(40));
});

/** A piece of long work: items of `ms` milliseconds and this many bytes each, recorded by name when they are done. */
function worker(budget: TimeBudget, pass: (ms: number) => void, lane: string, ms: number, bytes = 0) {
  const work = { done: 0, isOver: false };
  const run = async (items: number) => {
    const share = budget.share(lane);
    for (let i = 0; i < items; i++) {
      pass(ms);
      work.done++;
      if (share.isSpent(bytes)) await share.next();
    }
    work.isOver = true;
  };
  return { work, run };
}

function aWorkLoop() {
  let now = 0;
  let tasks: (() => void)[] = [];
  const clock = { now: () => now, mono: () => now };
  const pauses: number[] = [];
  const scheduler = {
    soon: (task: () => void) => void tasks.push(task),
    // A pause is over by the next turn.
    after: (ms: number, task: () => void) => {
      pauses.push(ms);
      tasks.push(task);
      return () => undefined;
    },
  };
  const budget = new TimeBudget(clock, scheduler);
  return {
    budget,
    pass: (ms: number) => void (now += ms),
    now: () => now,
    pauses,
    /** Runs one turn, with the promise callbacks of each task; returns how long its work took. */
    async turn(): Promise<number> {
      const [due, began] = [tasks, now];
      tasks = [];
      for (const task of due) {
        task();
        await new Promise((resolve) => setImmediate(resolve));
      }
      return now - began;
    },
  };
}

test("ten searches at once take no more of a turn than one, and all of them go on", async () => {
  const loop = aWorkLoop();
  const workers = Array.from({ length: 10 }, () => worker(loop.budget, loop.pass, "a", 1));
  const ended = Promise.all(workers.map(({ run }) => run(100)));
  const turns: number[] = [];
  while (workers.some(({ work }) => !work.isOver)) turns.push(await loop.turn());
  await ended;
  expect(Math.max(...turns)).toBeLessThanOrEqual(20);
  expect(turns.reduce((sum, ms) => sum + ms)).toBeGreaterThan(900);
});

test("one lane's many wait for each other, another lane's one does not wait for them all", async () => {
  const loop = aWorkLoop();
  const many = Array.from({ length: 100 }, () => worker(loop.budget, loop.pass, "a", 2));
  for (const { run } of many) void run(1_000);
  const other = worker(loop.budget, loop.pass, "b", 2);
  void other.run(10);
  const began = loop.now();
  while (!other.work.isOver) await loop.turn();
  // Ten items of its own, two in each turn, alternating with others of 15 ms.
  expect(loop.now() - began).toBeLessThan(250);
  expect(many.every(({ work }) => work.done < 20)).toBe(true);
});

test("after work that took long and could not be divided there is a pause, so that it never delays the same request twice", async () => {
  const loop = aWorkLoop();
  const [long, short] = [worker(loop.budget, loop.pass, "a", 40), worker(loop.budget, loop.pass, "b", 1)];
  const ended = Promise.all([long.run(3), short.run(10)]);
  while (!long.work.isOver || !short.work.isOver) await loop.turn();
  await ended;
  const { length } = loop.pauses;
  expect(length).toBeGreaterThan(1);
  for (const ms of loop.pauses) expect(ms).toBeGreaterThanOrEqual(40);
  const quick = worker(loop.budget, loop.pass, "a", 1);
  const over = quick.run(100);
  while (!quick.work.isOver) await loop.turn();
  await over;
  expect(loop.pauses.length).toBe(length);
});

test("by bytes alone, as where time stands still, work lets others go on too", async () => {
  const loop = aWorkLoop();
  const { work, run } = worker(loop.budget, loop.pass, "a", 0, 100 * 1024);
  const ended = run(30);
  expect(work.done).toBe(3);
  for (let turns = 0; !work.isOver; turns++) {
    const before = work.done;
    await loop.turn();
    expect(work.done - before).toBeLessThanOrEqual(3);
    expect(turns).toBeLessThan(50);
  }
  await ended;
});

test("when so much has begun that others wait, /ok does not", async () => {
  let begun = 0;
  const { begin, timers, clock } = protocol({
    threads: {
      remove: () => {
        begun++;
        clock.advance(10);
        return Promise.reject(new ServiceError("thread.not_found", "no such thread"));
      },
    },
  });
  const asked = upTo(20).map(() => begin("DELETE", `/threads/${THREAD}`));
  const isOver = ({ ended }: { readonly ended: boolean }) => ended;
  const ok = await begin("GET", "/ok").until(isOver);
  expect([ok.status, ok.json]).toEqual([200, { ok: true }]);
  expect(begun).toBe(17);
  while (timers.pending > 0) timers.advance(0);
  expect(await Promise.all(asked.map(async (answer) => (await answer.until(isOver)).status))).toEqual(
    Array.from({ length: 20 }, () => 404),
  );
});

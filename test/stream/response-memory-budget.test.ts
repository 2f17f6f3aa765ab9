import { expect, test } from "vitest";
import { ResponseMemoryBudget, type ResponseMemoryShare } from "../../src/stream/response-memory-budget.ts";
import { HeldScheduler } from "./support.ts";

const make = (scheduler = new HeldScheduler()) =>
  new ResponseMemoryBudget(scheduler, { tenant: 100, all: 250 });

/** A read that ends on request. */
function slowRead() {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let hasBegun = false;
  const read = () => {
    hasBegun = true;
    return ended.then(() => "value");
  };
  return { read, end: () => end(), hasBegun: () => hasBegun };
}

test("two reads of a tenant are in progress at most; another tenant's do not wait", async () => {
  const budget = make();
  const reads = Array.from({ length: 3 }, slowRead);
  const values = reads.map(({ read }) => budget.read("a", read));
  const other = slowRead();
  const otherValue = budget.read("b", other.read);
  expect([...reads, other].map(({ hasBegun }) => hasBegun())).toEqual([true, true, false, true]);
  reads[0]?.end();
  await values[0];
  await Promise.resolve();
  expect(reads[2]?.hasBegun()).toBe(true);
  for (const { end } of [...reads, other]) end();
  expect(await Promise.all([...values, otherValue])).toEqual(["value", "value", "value", "value"]);
});

test("responses that were let in read what they need, however many of them were", async () => {
  const budget = make();
  const shares = [budget.share("a"), budget.share("a")];
  expect(shares.map((share) => share.beforeRead())).toEqual([undefined, undefined]);
  const reads = shares.map(() => slowRead());
  const values = reads.map(({ read }) => budget.read("a", read));
  expect(reads.map(({ hasBegun }) => hasBegun())).toEqual([true, true]);
  for (const { end } of reads) end();
  expect(await Promise.all(values)).toEqual(["value", "value"]);
  for (const share of shares) share.close();
});

test("a read that fails, in this turn or later, makes room for the next", async () => {
  const budget = make();
  const fail = () => {
    throw new Error("failed");
  };
  for (let i = 0; i < 5; i++) {
    expect(() => budget.read("a", fail)).toThrow("failed");
    // oxlint-disable-next-line no-await-in-loop -- each read must have ended before the next begins
    await expect(budget.read("a", () => Promise.reject(new Error("later")))).rejects.toThrow("later");
  }
  expect(budget.read("a", () => 1)).toBe(1);
});

test("a read that answers in this turn does not wait for memory, however much is in use", () => {
  const budget = make();
  const share = budget.share("a");
  expect(share.beforeRead()).toBeUndefined();
  share.afterRead(1_000);
  expect(budget.read("a", () => "small")).toBe("small");
});

test("responses of a tenant that uses little do not wait, nor for each other, however much another tenant uses", () => {
  const budget = make();
  const large = budget.share("a");
  expect(large.beforeRead()).toBeUndefined();
  large.afterRead(1_000);
  const small = [budget.share("b"), budget.share("b"), budget.share("b")];
  for (const share of small) {
    expect(share.beforeRead()).toBeUndefined();
    share.afterRead(1);
  }
  // Two reads of a tenant at a time.
  for (const share of small.slice(0, 2)) expect(share.beforeRead()).toBeUndefined();
});

test("a response waits until the tenant's others have been taken", async () => {
  const budget = make();
  const [first, second, third] = [budget.share("a"), budget.share("a"), budget.share("b")];
  expect(first.beforeRead()).toBeUndefined();
  first.afterRead(150);
  let isAdmitted = false;
  const waiting = second.beforeRead()?.then(() => (isAdmitted = true));
  expect(waiting).toBeInstanceOf(Promise);
  expect(third.beforeRead()).toBeUndefined();
  third.afterRead(50);
  expect(isAdmitted).toBe(false);
  first.setBytes(0);
  await waiting;
  expect(isAdmitted).toBe(true);
  for (const share of [first, second, third]) share.close();
});

test("a read in progress counts as much as the large value that was read last", async () => {
  const budget = make();
  const shares = Array.from({ length: 4 }, () => budget.share("a"));
  const [first, second, third, fourth] = shares as [
    ResponseMemoryShare,
    ResponseMemoryShare,
    ResponseMemoryShare,
    ResponseMemoryShare,
  ];
  expect(first.beforeRead()).toBeUndefined();
  first.afterRead(60);
  expect(second.beforeRead()).toBeUndefined();
  // 60 are in use, and 60 more are reserved.
  let isAdmitted = false;
  const waiting = third.beforeRead()?.then(() => (isAdmitted = true));
  expect(waiting).toBeInstanceOf(Promise);
  second.afterRead(10);
  await waiting;
  expect(isAdmitted).toBe(true);
  third.afterRead(10);
  expect(fourth.beforeRead()).toBeUndefined();
  for (const share of shares) share.close();
});

test("a response that takes nothing for 10 s is cut off while others wait", async () => {
  const scheduler = new HeldScheduler();
  const budget = make(scheduler);
  const stalled = budget.share("a");
  expect(stalled.beforeRead()).toBeUndefined();
  stalled.afterRead(150);
  stalled.onCut(() => stalled.close());
  const waiting = budget.share("a").beforeRead();
  for (let i = 0; i < 9; i++) {
    // oxlint-disable-next-line no-await-in-loop -- time passes in steps, as the timer fires
    await scheduler.pass(1_000);
  }
  expect(stalled.use.bytes).toBe(150);
  await scheduler.pass(1_000);
  await waiting;
  expect(stalled.use.bytes).toBe(0);
});

test("a response that waits for others is not cut off for it, and the only one of a tenant waits for nobody", async () => {
  const scheduler = new HeldScheduler();
  const budget = make(scheduler);
  const [others, own, waiting] = [budget.share("a"), budget.share("b"), budget.share("a")];
  expect(others.beforeRead()).toBeUndefined();
  others.afterRead(300);
  expect(own.beforeRead()).toBeUndefined();
  own.afterRead(10);
  // It has items in use, and requests the next one.
  expect(own.beforeRead()).toBeUndefined();
  own.afterRead(10);
  waiting.setBytes(5);
  let isCut = false;
  waiting.onCut(() => (isCut = true));
  const admitted = waiting.beforeRead();
  for (let i = 0; i < 15; i++) {
    others.progress();
    // oxlint-disable-next-line no-await-in-loop -- time advances in steps
    await scheduler.pass(1_000);
  }
  expect(isCut).toBe(false);
  others.close();
  await admitted;
});

test("a response that is closed while it waits leaves its place to the next", async () => {
  const budget = make();
  const [first, second, third] = [budget.share("a"), budget.share("a"), budget.share("a")];
  expect(first.beforeRead()).toBeUndefined();
  first.afterRead(150);
  expect(second.beforeRead()).toBeInstanceOf(Promise);
  const waiting = third.beforeRead();
  second.close();
  first.close();
  await waiting;
  expect(third.use.reading).toBe(1);
});

import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Refresher } from "../../src/dashboard/live/refresher.ts";
import { RequestError } from "../../src/dashboard/api-errors.ts";

/** A refresher whose reads the test completes in sequence. */
function refreshed() {
  const reads: {
    readonly resolve: (found: string) => void;
    readonly reject: (cause: Error) => void;
    readonly signal: AbortSignal;
  }[] = [];
  const taken: string[] = [];
  const errors: unknown[] = [];
  const refresher = new Refresher<string>({
    read: (signal) => new Promise((resolve, reject) => reads.push({ resolve, reject, signal })),
    take: (found) => taken.push(found),
    onError: (cause) => errors.push(cause),
  });
  onTestFinished(() => refresher.close());
  const settle = () => vi.advanceTimersByTimeAsync(0);
  return {
    refresher,
    reads,
    taken,
    errors,
    async answer(found: string) {
      reads.at(-1)?.resolve(found);
      await settle();
    },
    async fail(cause: Error) {
      reads.at(-1)?.reject(cause);
      await settle();
    },
  };
}

const unreachable = new TypeError("Failed to fetch");

describe("what a page shows", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("is read at once, and then when a change is reported, once for all changes of a moment", async () => {
    const { refresher, reads, taken, answer } = refreshed();
    await answer("a");
    expect(taken).toEqual(["a"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reads.length).toBe(1);
    for (let i = 0; i < 10; i++) refresher.request();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads.length).toBe(2);
    await answer("b");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(taken).toEqual(["a", "b"]);
    expect(reads.length).toBe(2);
  });

  test("is read while changes follow each other without a pause", async () => {
    const { refresher, reads, answer } = refreshed();
    await answer("a");
    for (let ms = 0; ms < 1_000; ms += 50) {
      refresher.request();
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(reads.length).toBe(2);
  });

  test("is read again when a change is reported during a read, and not before that has ended", async () => {
    const { refresher, reads, taken, answer } = refreshed();
    refresher.request();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reads.length).toBe(1);
    await answer("a");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reads.length).toBe(2);
    await answer("b");
    expect(taken).toEqual(["a", "b"]);
  });

  test("is read less often where a read takes long", async () => {
    const { refresher, reads, answer } = refreshed();
    await vi.advanceTimersByTimeAsync(500);
    await answer("a");
    refresher.request();
    await vi.advanceTimersByTimeAsync(999);
    expect(reads.length).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(reads.length).toBe(2);
    // However long changes continue, the read is not much later than that.
    await vi.advanceTimersByTimeAsync(60_000);
    await answer("b");
    refresher.request();
    await vi.advanceTimersByTimeAsync(2_500);
    expect(reads.length).toBe(3);
  });

  test("is read again after a failure, at growing intervals, or at once for a change", async () => {
    const { refresher, reads, taken, errors, answer, fail } = refreshed();
    const times: number[] = [];
    for (let i = 0; i < 8; i++) {
      await fail(unreachable);
      const [failed, before] = [performance.now(), reads.length];
      while (reads.length === before) await vi.advanceTimersByTimeAsync(100);
      times.push(performance.now() - failed);
    }
    expect(times).toEqual([300, 600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000]);
    expect(errors.length).toBe(8);
    await fail(new RequestError(503, "busy"));
    refresher.request();
    await vi.advanceTimersByTimeAsync(120);
    expect(reads.length).toBe(10);
    await answer("a");
    expect(taken).toEqual(["a"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reads.length).toBe(10);
  });

  test("is not read again by itself where it is not there", async () => {
    const { refresher, reads, errors, fail } = refreshed();
    await fail(new RequestError(404, "not found"));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([reads.length, errors.length]).toEqual([1, 1]);
    refresher.request();
    await vi.advanceTimersByTimeAsync(120);
    expect(reads.length).toBe(2);
  });

  test("is read at each poll again when a server that was down says that it is not there", async () => {
    const { refresher, reads, fail } = refreshed();
    await fail(unreachable);
    await vi.advanceTimersByTimeAsync(300);
    await fail(new RequestError(404, "not found"));
    refresher.poll();
    await vi.advanceTimersByTimeAsync(120);
    expect(reads.length).toBe(3);
  });

  test("of a server that is down is read at the next attempt, not at each poll; a reported change is read at once", async () => {
    const { refresher, reads, answer, fail } = refreshed();
    await answer("a");
    refresher.poll();
    await vi.advanceTimersByTimeAsync(120);
    expect(reads.length).toBe(2);
    // The attempts follow after 300, 600, 1,200 and 2,400 ms.
    const polling = setInterval(() => refresher.poll(), 50);
    for (let failures = 1; failures <= 4; failures++) {
      await fail(unreachable);
      await vi.advanceTimersByTimeAsync(300 * 2 ** (failures - 1) - 10);
      expect(reads.length).toBe(1 + failures);
      await vi.advanceTimersByTimeAsync(10);
      expect(reads.length).toBe(2 + failures);
    }
    await fail(unreachable);
    refresher.request();
    await vi.advanceTimersByTimeAsync(120);
    expect(reads.length).toBe(7);
    await answer("b");
    await vi.advanceTimersByTimeAsync(200);
    expect(reads.length).toBe(8);
    clearInterval(polling);
  });

  test.each(["answer", "fail"] as const)(
    "is not read while that is suspended, nor changed by the %s of a read from before",
    async (end) => {
      const { refresher, reads, taken, errors, answer, fail } = refreshed();
      refresher.suspend();
      expect(reads[0]?.signal.aborted).toBe(true);
      await (end === "answer" ? answer("late") : fail(unreachable));
      refresher.request();
      await vi.advanceTimersByTimeAsync(60_000);
      expect([reads.length, taken, errors]).toEqual([1, [], []]);
      refresher.resume();
      await vi.advanceTimersByTimeAsync(120);
      await answer("a");
      expect([reads.length, taken, errors]).toEqual([2, ["a"], []]);
    },
  );

  test.each(["answer", "fail"] as const)(
    "is not changed any more by the %s of a read that was left",
    async (end) => {
      const { refresher, reads, taken, errors, answer, fail } = refreshed();
      refresher.request();
      refresher.close();
      await (end === "answer" ? answer("late") : fail(unreachable));
      refresher.request();
      await vi.advanceTimersByTimeAsync(60_000);
      expect([reads.length, taken, errors]).toEqual([1, [], []]);
    },
  );
});

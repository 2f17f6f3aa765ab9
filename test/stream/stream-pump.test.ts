import { expect, test } from "vitest";
import { threadDeleted } from "../../src/model/errors.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { type PumpOutput, StreamPump } from "../../src/stream/stream-pump.ts";
import type { NoEventsReason, Reader } from "../../src/stream/run-reader.ts";
import { HeldScheduler, Lines } from "./support.ts";

test.each([
  ["whose log was cut meanwhile is no fault", true, new Error("closed"), "cut", []],
  ["since the thread was deleted, ends as deleted", false, threadDeleted(), "thread_deleted", []],
  ["is logged", false, new Error("closed"), "failed", ["a run's events could not be read"]],
] as const)("a read that fails, %s", async (_, isCut, error, outcome, logged) => {
  const lines = new Lines();
  const outcomes: string[] = [];
  const reader: Partial<Reader> = {
    isCut,
    next: () => Promise.reject(error),
    onReady: () => undefined,
    close: () => undefined,
  };
  const outlet: PumpOutput<never> = { put: () => true, flush: () => true, finish: () => undefined };
  const pump = new StreamPump(reader as Reader, () => undefined as never, outlet, {
    scheduler: new HeldScheduler(),
    logger: lines,
    onDone: (how) => outcomes.push(how),
  });
  pump.start();
  await new Promise((resolve) => setImmediate(resolve));
  expect(outcomes).toEqual([outcome]);
  expect(lines.lines).toEqual(logged);
});

/** A reader without events, which finds that out asynchronously. */
function idleReader() {
  let read: (reason: NoEventsReason) => void = () => undefined;
  const reader: Partial<Reader> = {
    next: () => new Promise<NoEventsReason>((resolve) => (read = resolve)),
    onReady: () => undefined,
    rest: () => undefined,
    close: () => undefined,
  };
  return { reader: reader as Reader, wait: () => read("wait") };
}

test.each([0, 1, 2, 3, 4, 5, 6])(
  "what is said %i turns after the last flush is sent as well",
  async (turns) => {
    const { reader, wait } = idleReader();
    const said: string[] = [];
    const sent: string[] = [];
    const say = (what: string): void => {
      said.push(what);
      pump.nudge();
    };
    const outlet: PumpOutput<never> = {
      put: () => true,
      flush: () => {
        const isFirst = sent.length === 0;
        sent.push(...said.splice(0));
        if (isFirst) void late();
        return true;
      },
      finish: () => undefined,
    };
    const late = async (): Promise<void> => {
      for (let turn = 0; turn < turns; turn++) await undefined;
      say("late");
    };
    const pump = new StreamPump(reader, () => undefined as never, outlet, {
      scheduler: new HeldScheduler(),
      logger: silentLogger,
    });
    pump.start();
    said.push("early");
    for (let i = 0; i < 3; i++) {
      wait();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(sent).toEqual(["early", "late"]);
  },
);

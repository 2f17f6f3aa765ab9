import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { RunEndCallbacks } from "../../actors/run-end-callbacks.ts";
import type { RunEnd } from "../../actors/thread-system-interface.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { someRun } from "../fixtures/runs.ts";

/** A read that ends on request. */
function held() {
  let answer: (record: RunRecord | undefined) => void = () => undefined;
  const read = () => new Promise<RunRecord | undefined>((resolve) => (answer = resolve));
  return { read, answer: (record: RunRecord | undefined) => answer(record) };
}

const names = { run_id: "r", thread_id: "t", assistant_id: "a", graph_id: "g" };
const pending = someRun({ ...names, status: "pending" });
const ended: RunEnd = {
  run: someRun({ ...names, status: "success" }),
  left: { values: { all: "done" }, waiting: null },
};

test.each([
  ["an older record of the run", pending],
  ["no run any more", undefined],
])("an end that comes while the record is read counts, although the read finds %s", async (_, found) => {
  const callbacks = new RunEndCallbacks();
  const { read, answer } = held();
  const end = callbacks.waitUnlessEnded(pending.run_id, read);
  callbacks.notify(pending.run_id, ended);
  answer(found);
  expect(await end).toBe(ended);
});

test("a run that has ended, or is unknown, is not waited for", async () => {
  const callbacks = new RunEndCallbacks();
  for (const record of [ended.run, undefined]) {
    expect(await callbacks.waitUnlessEnded(pending.run_id, () => record)).toEqual({ run: record });
  }
});

test("a run that has not ended is waited for", async () => {
  const callbacks = new RunEndCallbacks();
  const end = callbacks.waitUnlessEnded(pending.run_id, () => pending);
  await Promise.resolve();
  callbacks.notify(pending.run_id, ended);
  expect(await end).toBe(ended);
});

test("a read that fails takes nobody's end away", async () => {
  const callbacks = new RunEndCallbacks();
  const other = callbacks.waitForEnd(pending.run_id);
  const failing = callbacks.waitUnlessEnded(pending.run_id, () => Promise.reject(new Error("unreadable")));
  await expect(failing).rejects.toThrow("unreadable");
  callbacks.notify(pending.run_id, ended);
  expect(await other).toBe(ended);
});

test("once no more runs end here, all waits reject, and further ones at once", async () => {
  const callbacks = new RunEndCallbacks();
  const stop = new ServiceError("server.draining", "The server is stopping");
  const waits = [
    callbacks.waitForEnd(pending.run_id),
    callbacks.waitForEnd("another"),
    callbacks.waitUnlessEnded(pending.run_id, () => pending),
  ];
  callbacks.close(stop);
  for (const end of await Promise.allSettled([...waits, callbacks.waitForEnd(pending.run_id)]))
    expect(end).toEqual({ status: "rejected", reason: stop });
});

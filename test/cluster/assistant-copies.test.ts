import { expect, test } from "vitest";
import {
  ASSISTANT_COPY_MS,
  AssistantCopies,
  withCopiesForgotten,
} from "../../src/cluster/assistant-copies.ts";
import type { AssistantRecord } from "../../src/model/assistant.ts";
import type { Assistants } from "../../src/service/assistants.ts";
import { Timers } from "../http/support.ts";

const versioned = (version: number) => ({ version }) as AssistantRecord;

/** Copies of an assistant whose version is how often it has been asked for. */
function asked() {
  const state = { now: 0, times: 0 };
  const copies = new AssistantCopies({ mono: () => state.now });
  const find = () => copies.find("a", async () => versioned(++state.times));
  return { state, copies, find };
}

test("an assistant is asked for once, until its copy is too old", async () => {
  const { state, find } = asked();
  expect(await Promise.all([find(), find()])).toEqual([versioned(1), versioned(1)]);
  state.now = ASSISTANT_COPY_MS - 1;
  expect(find()).toEqual(versioned(1));
  state.now = ASSISTANT_COPY_MS;
  expect(await find()).toEqual(versioned(2));
});

test("an answer that was on its way when copies were discarded is not copied", async () => {
  const { copies, find } = asked();
  const early = find();
  copies.forget();
  const late = find();
  expect([await early, await late, find()]).toEqual([versioned(1), versioned(2), versioned(2)]);
});

test("an error is not copied", async () => {
  const { copies, find } = asked();
  await expect(copies.find("a", () => Promise.reject(new Error("none")))).rejects.toThrow("none");
  expect(await find()).toEqual(versioned(1));
});

test("a change is acknowledged when every process has discarded its copies, or when these are too old", async () => {
  const timers = new Timers();
  const order: string[] = [];
  const changes = ["update", "setLatest", "delete"] as const;
  const own = { update: async () => order.push("changed") } as unknown as Assistants;
  const answers: (() => void)[] = [];
  const wrapped = withCopiesForgotten(own, timers, () => [
    new Promise<void>((resolve) => answers.push(resolve)),
    Promise.reject(new Error("does not answer")),
  ]);
  const acknowledged = wrapped.update("t", "a", {}).then(() => order.push("acknowledged"));
  await expect.poll(() => answers.length).toBe(1);
  answers[0]?.();
  timers.advance(ASSISTANT_COPY_MS - 1);
  await new Promise(setImmediate);
  expect(order).toEqual(["changed"]);
  timers.advance(1);
  await acknowledged;
  expect(order).toEqual(["changed", "acknowledged"]);
  for (const change of changes) expect(wrapped[change]).not.toBe(own[change]);
});

import { expect, test } from "vitest";
import { REQUESTED_STREAM_MODES } from "../../src/dashboard/api/stream-modes.ts";
import { MULTITASK_STRATEGY_OPTIONS } from "../../src/dashboard/threads/multitask-strategy-options.ts";
import { multitaskStrategies, type StreamMode, streamModes } from "../../src/model/run.ts";

/** The dashboard imports nothing of the server, so the names that it has of its own are compared here. */

/** Stream modes that the dashboard does not request, and why. */
const NOT_REQUESTED: Partial<Record<StreamMode, string>> = {
  updates: "the results of tasks are in debug",
  messages: "tokens are in messages-tuple",
  tasks: "in debug",
  checkpoints: "in debug",
  tools: "the calls of tools are in the messages",
  events: "nothing is shown that the other modes do not have",
};

test("the dashboard requests every stream mode, or has a reason not to", () => {
  const known = [...REQUESTED_STREAM_MODES, ...Object.keys(NOT_REQUESTED)];
  expect(known.toSorted()).toEqual([...streamModes].toSorted());
});

test("the dashboard offers every multitask strategy", () => {
  const offered = MULTITASK_STRATEGY_OPTIONS.map(([name]) => name);
  expect(offered.toSorted()).toEqual([...multitaskStrategies].toSorted());
});

import { expect, test } from "vitest";
import { keyLabel, rangeLabel, threadPartLabel } from "../../src/storage/key-labels.ts";
import {
  unsettledThreadKey,
  assistantKey,
  assistantOrderKey,
  batchKey,
  checkpointKey,
  deliveryContentKey,
  cronRowKey,
  dueRunKey,
  timerKey,
  startedDelayedRunKey,
  deliveryRowKey,
  threadExpiryKey,
  journalEntryKey,
  eventsPrefix,
  FORMAT_KEY,
  threadRecordKey,
  threadIdKey,
  itemRowKey,
  kwargsKey,
  idempotencyRecordKey,
  runOrderKey,
  runKey,
  cronSlotKey,
  listSpanPrefix,
  threadsByStatusPrefix,
  sortKey,
  deletionMarkKey,
  threadPrefix,
  assistantVersionKey,
  channelValueKey,
  addedStepResultsKey,
  pendingWritesMarkKey,
  taskWritesKey,
} from "../../src/storage/keys.ts";
import { encodeOrdinal } from "../../src/storage/sortable-numbers.ts";

const key = { tenant: "_", thread: "t 1" };
const other = { tenant: "acme", thread: "t2" };
const item = { namespace: ["a", "b"], key: "k/1" };

test.each([
  [threadPrefix(key), "thread t 1"],
  [threadRecordKey(threadPrefix(other)), "thread t2 of tenant acme"],
  [threadIdKey(key), "an index entry of thread t 1"],
  [sortKey(threadsByStatusPrefix("_", "idle"), 7, "t2"), "an index entry of thread t2"],
  [unsettledThreadKey(other), "an index entry of thread t2 of tenant acme"],
  [threadExpiryKey(key, 7), "an index entry of thread t 1"],
  [dueRunKey(key, 7, "r"), "an index entry of thread t 1"],
  [timerKey(key, { id: "1:a/b", due: 7 }), "an index entry of thread t 1"],
  [deletionMarkKey(key, null), "an index entry of thread t 1"],
  [assistantKey("_", "x"), "assistant x"],
  [assistantOrderKey("acme", 7, "x"), "assistant x of tenant acme"],
  [assistantVersionKey("_", "x", 12), "version 12 of assistant x"],
  [itemRowKey("_", "sv", item), 'item "k/1" of ["a","b"]'],
  [cronRowKey("_", "c"), "cron c"],
  [deliveryRowKey("_", "dead", "w"), "webhook delivery w"],
  [deliveryContentKey("_", "w"), "webhook delivery w"],
  [idempotencyRecordKey("_", "POST /runs 1"), 'the record of the idempotency key "POST /runs 1"'],
  [FORMAT_KEY, "the format of the data"],
  [batchKey(40), "the number of batch 40"],
  [cronSlotKey(7, "_", "c"), "a mark of the server"],
  ["_/zz/1", "the unknown key _/zz/1"],
])("the key %j is named %j", (at, label) => {
  expect(keyLabel(at)).toBe(label);
});

test.each([
  [threadRecordKey(""), "its record"],
  [journalEntryKey("", 40), "append 40"],
  [runKey("", "r 1"), "run r 1"],
  [kwargsKey("", "r"), "what run r was created with"],
  [runOrderKey("", 7, "r"), "the place of run r in the order of runs"],
  [startedDelayedRunKey("", 7, "r"), "the start of the delayed run r"],
  [checkpointKey("", "ns/1", "c"), "checkpoint c"],
  [channelValueKey("", "ns/1", "messages/a", 7), "a value of channel messages/a"],
  [`${listSpanPrefix("", "", "log", 7)}${encodeOrdinal(0)}`, "a value of channel log"],
  [pendingWritesMarkKey("", "", "c"), "pending writes at checkpoint c"],
  [taskWritesKey("", "", "c", "task"), "pending writes at checkpoint c"],
  [addedStepResultsKey("", "", "c", "task", 40), "pending writes at checkpoint c"],
  [`${eventsPrefix("", "r")}${encodeOrdinal(40)}`, "events from 40 on of run r"],
  ["zz/1", "the unknown key zz/1"],
])("the part %j of a thread is named %j", (rest, label) => {
  expect(threadPartLabel(rest)).toBe(label);
});

test("a range is named by what its ends hold", () => {
  const [from, to] = [threadPrefix(key), threadPrefix(other)].map(threadRecordKey) as [string, string];
  expect(rangeLabel({ from, to })).toBe("everything from thread t 1 to thread t2 of tenant acme");
  expect(rangeLabel({ from, to: journalEntryKey(threadPrefix(key), 3) })).toBe("thread t 1");
  expect(rangeLabel({ from: "", to })).toBe("everything from the beginning to thread t2 of tenant acme");
  expect(rangeLabel({ from, to: "~" })).toBe("everything from thread t 1 to the end");
  expect(rangeLabel({ from: "", to: "~" })).toBe("anything");
});

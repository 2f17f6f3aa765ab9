import { expect, test } from "vitest";
import { graphFile } from "./support.ts";
import { LangGraphEventQueue } from "../../src/langgraph/event-queue.ts";
import { resolveLibrary } from "../../src/langgraph/user-library.ts";
import { createAttemptSaver } from "../../src/langgraph/checkpoint-saver.ts";
import { CheckpointIdMap } from "../../src/langgraph/checkpoint-id-map.ts";

const ID = "1f1e7fc2-c1c4-60e0-8000-dbd2a1b9822e";

test("what LangGraph.js still writes once an attempt is over is lost, and rejects no promise that nobody handles", async () => {
  const heard: unknown[] = [];
  const tasks: (() => void)[] = [];
  const stage = { soon: (task: () => void) => void tasks.push(task), read: async () => null };
  const ids = new CheckpointIdMap({ checkpointId: () => ID });
  const ear = new LangGraphEventQueue(
    ids,
    stage as never,
    { head: null, values: {}, writes: [] },
    (all) => void heard.push(...all),
  );
  const saver = createAttemptSaver(await resolveLibrary(graphFile, null), "thread", ear);
  const at = { configurable: { thread_id: "thread", checkpoint_ns: "", checkpoint_id: ID } };
  await saver.putWrites(at, [["log", "in time"]], "task");
  ear.close();
  await saver.putWrites(at, [["log", "too late"]], "task");
  for (const task of tasks) task();
  expect(heard).toEqual([]);
});

import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { threadRecordKey, threadPrefix } from "../../src/storage/keys.ts";
import { HeldKeyValueStore } from "../storage/held-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const said = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["said"] }) },
  edges: { start: "say" },
});

test("a run that creates its thread is admitted while another request finds no such thread", async () => {
  const kv = new HeldKeyValueStore();
  const server = await Server.start(said, { kv });
  const key: ThreadKey = { tenant: "_", thread: server.newId() };
  kv.hold(threadRecordKey(threadPrefix(key)));
  const change = { from: null, ns: "", supersteps: [[{ values: { log: ["x"] }, as_node: "say", at: "" }]] };
  const update = server.system.update(key, change).catch((cause: unknown) => cause);
  await server.scheduler.settle();
  const draft = { ...draftOf(server.newId()), create: { metadata: {} } };
  const admitted = server.system.admit(key, draft);
  await server.scheduler.settle();
  kv.unhold();
  for (const read of kv.reads) await read.go("of its end");
  expect(await server.do(update)).toMatchObject({ code: "thread.not_found" });
  expect(await server.do(admitted)).toMatchObject({ run_id: draft.run_id, status: "pending" });
  await server.do(server.system.settled(key, draft.run_id));
  expect(await server.values(key)).toEqual({ log: ["said"] });
});

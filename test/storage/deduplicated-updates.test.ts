import { expect, test, vi } from "vitest";
import { checkpointKey, threadPrefix } from "../../src/storage/keys.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { DEDUPLICATED_UPDATE_BYTES } from "../../src/storage/deduplicated-updates.ts";
import { aCheckpoint, all, id, set, threadKey, Writer } from "./samples.ts";
import { deps } from "./support.ts";

async function stored(characters: number) {
  const kv = new MemoryKeyValueStore();
  const { journal } = await openStorage({ kind: "key-value", store: kv }, deps);
  const one = new Writer(() => journal, threadKey(1));
  const text = "x".repeat(characters);
  const writes = { make: { text } };
  await one.append({
    checkpoints: [aCheckpoint(1, null, { text: set(text) }, { writes })],
    thread: { checkpoint: id(1) },
  });
  const values: (readonly [key: string, bytes: Buffer])[] = [];
  for await (const entry of kv.entries({ gte: threadPrefix(one.key), lt: `${threadPrefix(one.key)}~` }))
    values.push(entry);
  const row = checkpointKey(threadPrefix(one.key), "", id(1));
  return { kv, journal, one, writes, values, row };
}

test.each([
  ["a large one", DEDUPLICATED_UPDATE_BYTES, 1],
  ["a smaller one", DEDUPLICATED_UPDATE_BYTES - 100, 2],
])("%s is stored as often as said, and read whole", async (_, characters, times) => {
  const { values, journal, one, writes } = await stored(characters);
  expect(values.filter(([, bytes]) => bytes.length > characters)).toHaveLength(times);
  expect((await journal.checkpoint(one.key, "", id(1)))?.writes).toEqual(writes);
});

test("a value that is missing is damage, unless the checkpoint is gone too", async () => {
  const { kv, journal, one, values, row } = await stored(DEDUPLICATED_UPDATE_BYTES);
  const [value] = values.find(([, bytes]) => bytes.length > DEDUPLICATED_UPDATE_BYTES) ?? [""];
  await kv.batch([{ key: value, value: null }], { sync: true });
  const read = async () => journal.checkpoint(one.key, "", id(1));
  await expect(read()).rejects.toMatchObject({
    code: "journal.damaged",
    message: expect.stringContaining("the value of channel text is missing") as string,
  });
  await expect(journal.history(one.key, { ns: "", limit: 1 })).rejects.toMatchObject({
    code: "journal.damaged",
  });
  expect(await all(journal.verify())).toHaveLength(1);
  // The checkpoint is deleted between the two reads.
  const get = kv.get.bind(kv);
  let isGone = false;
  vi.spyOn(kv, "get").mockImplementation((key) => {
    if (key === value) isGone = true;
    return key === row && isGone ? undefined : get(key);
  });
  expect(await read()).toBeUndefined();
});

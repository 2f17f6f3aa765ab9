import { join } from "node:path";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { QuarantinedData, QuarantiningKeyValueStore } from "../../src/storage/quarantine.ts";
import { testKeyValueStore } from "../contracts/key-value-store.ts";
import { DelayedKeyValueStore } from "./delayed-key-value-store.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";
import { temporary } from "./support.ts";

testKeyValueStore("LevelDB", () => {
  const directory = temporary();
  return { store: new LevelDbKeyValueStore(join(directory.path, "level"), false), end: directory.remove };
});
testKeyValueStore("memory", () => ({ store: new MemoryKeyValueStore() }));
testKeyValueStore("with a gate before each batch", () => ({ store: new GatedKeyValueStore() }));
testKeyValueStore("with delayed reads", () => ({ store: new DelayedKeyValueStore() }));
testKeyValueStore("behind an empty quarantine", () => ({
  store: new QuarantiningKeyValueStore(new MemoryKeyValueStore(), new QuarantinedData()),
}));

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { graphFile } from "./support.ts";
import { resolveLibrary, type LangGraphLibrary } from "../../src/langgraph/user-library.ts";
import type { Harness } from "../contracts/harness.ts";
import { inMemory } from "../storage/support.ts";
import { JournalSaver } from "./journal-saver.ts";

// The official suite expects them as globals.
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });
const { deltaChannelHistoryTests, validate } = await import("@langchain/langgraph-checkpoint-validation");

const opened = new Map<JournalSaver, Harness>();
let library: LangGraphLibrary;

const initializer = {
  checkpointerName: "Heddle",
  beforeAll: async () => {
    library = await resolveLibrary(graphFile, null);
  },
  createCheckpointer: async () => {
    library ??= await resolveLibrary(graphFile, null);
    const storage = await inMemory();
    const saver = new JournalSaver(library, storage);
    opened.set(saver, storage);
    return saver;
  },
  destroyCheckpointer: async (saver: JournalSaver) => {
    await saver.stored();
    await opened.get(saver)?.close();
    opened.delete(saver);
  },
};

validate(initializer);
deltaChannelHistoryTests(initializer);

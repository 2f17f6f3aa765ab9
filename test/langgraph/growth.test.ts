import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { graphFile } from "./support.ts";
import { resolveLibrary } from "../../src/langgraph/user-library.ts";
import { inMemory } from "../storage/support.ts";
import { JournalSaver } from "./journal-saver.ts";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  notes: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});

test("what a run writes does not grow with the runs before it: after 800 messages it writes at most 1.2 times what run 10 wrote", async () => {
  const storage = await inMemory();
  const saver = new JournalSaver(await resolveLibrary(graphFile, null), storage);
  let n = 0;
  const graph = new StateGraph(State)
    .addNode("echo", ({ messages }) => ({
      messages: [new AIMessage({ id: `ai ${n}`, content: `${String(messages.at(-1)?.content)}!` })],
      notes: [`note ${n}`],
    }))
    .addEdge("__start__", "echo")
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "t" } };
  const run = async (count: number) => {
    const before = storage.bytes();
    const messages = Array.from({ length: count }, (_, i) => {
      return new HumanMessage({ id: `human ${n} ${i}`, content: "x".repeat(200) });
    });
    await graph.invoke({ messages, notes: messages.slice(1).map(({ id }) => `note ${id}`) }, config);
    await saver.stored();
    return storage.bytes() - before;
  };
  const written: number[] = [];
  for (n = 1; n <= 12; n++) {
    // One large run makes the thread as long as 389 small ones would: only the length before a run matters.
    // oxlint-disable-next-line no-await-in-loop
    written.push(await run(n === 11 ? 777 : 1));
  }
  const { values } = await graph.getState(config);
  expect(values["messages"]).toHaveLength(800);
  expect(values["messages"].at(-1)).toBeInstanceOf(AIMessage);
  expect(values["notes"]).toHaveLength(788);
  const [early = 0, late = 0] = [written[9], written[11]];
  expect(late).toBeLessThan(1.2 * early);
  await storage.close();
});

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { libraryOf } from "../../src/langgraph/library.ts";
import { inMemory } from "../storage/support.ts";
import { JournalSaver } from "./journal-saver.ts";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  notes: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});

test("what a run writes does not grow with the runs before it: run 400 writes at most 1.2 times what run 10 wrote", async () => {
  const storage = await inMemory();
  const saver = new JournalSaver(await libraryOf(import.meta.filename, null), storage);
  let n = 0;
  const graph = new StateGraph(State)
    .addNode("echo", ({ messages }) => ({
      messages: [new AIMessage({ id: `ai ${n}`, content: `${String(messages.at(-1)?.content)}!` })],
      notes: [`note ${n}`],
    }))
    .addEdge("__start__", "echo")
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "t" } };
  const written: number[] = [];
  for (n = 1; n <= 400; n++) {
    const before = storage.bytes();
    const message = new HumanMessage({ id: `human ${n}`, content: "x".repeat(200) });
    // oxlint-disable-next-line no-await-in-loop
    await graph.invoke({ messages: [message] }, config);
    // oxlint-disable-next-line no-await-in-loop
    await saver.stored();
    written.push(storage.bytes() - before);
  }
  const { values } = await graph.getState(config);
  expect(values["messages"]).toHaveLength(800);
  expect(values["messages"].at(-1)).toBeInstanceOf(AIMessage);
  expect(values["notes"]).toHaveLength(400);
  const [early = 0, late = 0] = [written[9], written[399]];
  expect(late).toBeLessThan(1.2 * early);
  await storage.close();
}, 60_000);

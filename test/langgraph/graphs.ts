import { FakeListChatModel } from "@langchain/core/utils/testing";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  items: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  topic: Annotation<string>,
  answers: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

/** Tokens, custom events, sends, a subgraph that asks twice, and a command with a target. */
export function rich() {
  const model = new FakeListChatModel({ responses: ["hello there"] });
  const Inner = Annotation.Root({
    topic: Annotation<string>,
    answers: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  });
  const sub = new StateGraph(Inner)
    .addNode("ask", () => {
      const first: unknown = interrupt({ question: "first?" });
      const second: unknown = interrupt({ question: "second?" });
      return { answers: [String(first), String(second)] };
    })
    .addNode("note", (state) => ({ answers: [`noted ${state.answers.length}`] }))
    .addEdge(START, "ask")
    .addEdge("ask", "note")
    .compile();
  return new StateGraph(State)
    .addNode("llm", async (state, config: LangGraphRunnableConfig) => {
      config.writer?.({ progress: 1 });
      return { messages: [await model.invoke(state.messages)], topic: `t${state.messages.length}` };
    })
    .addNode("worker", (state: { item: string }) => ({ items: [`did ${state.item}`] }))
    .addNode("join", () => new Command({ goto: "sub", update: { items: ["joined"] } }), { ends: ["sub"] })
    .addNode("sub", sub)
    .addNode("last", (state) => ({ items: [`last ${state.answers.length}`] }))
    .addEdge(START, "llm")
    .addConditionalEdges("llm", () => ["a", "b", "c"].map((item) => new Send("worker", { item })), ["worker"])
    .addEdge("worker", "join")
    .addEdge("sub", "last")
    .addEdge("last", END);
}

import { Annotation, messagesStateReducer, START, StateGraph } from "@langchain/langgraph";
import type { BaseMessage } from "@langchain/core/messages";
import { ScriptedModel } from "./scripted-model.ts";

const ChatState = Annotation.Root({
  messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
});

const model = new ScriptedModel([{ text: "Hello from the model" }]);

/** One call of a model, whose answer is streamed word by word. */
export const chat = new StateGraph(ChatState)
  .addNode("answer", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, "answer")
  .compile();

import { AIMessage } from "@langchain/core/messages";
import {
  Annotation,
  type BaseCheckpointSaver,
  END,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  notes: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const NODES = Array.from({ length: 10 }, (_, i) => `node_${i}`);

/**
 * A LangGraph.js graph of ten nodes in sequence: each node adds a note, and the last node also adds a message. Heddle
 * serves the graph; the control calls it directly, with a checkpointer.
 */
export function tenNodeGraph(checkpointer?: BaseCheckpointSaver) {
  const last = NODES.at(-1);
  const graph = new StateGraph(State) as StateGraph<
    typeof State.spec,
    typeof State.State,
    typeof State.Update,
    string
  >;
  for (const node of NODES) {
    graph.addNode(node, async ({ messages }: typeof State.State) => ({
      notes: [`${node} has seen ${messages.length}`],
      ...(node === last && { messages: [new AIMessage("y".repeat(200))] }),
    }));
  }
  for (const [i, node] of [...NODES, END].entries()) graph.addEdge(NODES[i - 1] ?? START, node);
  return graph.compile(checkpointer === undefined ? {} : { checkpointer });
}

/**
 * LangGraph.js alone: the graph of the hosted rows, called in the process with LangGraph's own memory saver; no server
 * and no disk. Its jobs come over IPC.
 */
import { MemorySaver } from "@langchain/langgraph";
import { tenNodeGraph } from "../langgraph.ts";
import { questionInput } from "../question-input.ts";
import { ownStats, reportOver } from "./report.ts";

export interface InvocationJob {
  readonly threads: readonly string[];
  /** Runs of each thread, in sequence. */
  readonly runs: number;
  /** The number of threads that run at once. */
  readonly clients: number;
  /** True: the threads are deleted afterwards. A growing heap would be collected over and over. */
  readonly last: boolean;
}

const saver = new MemorySaver();
const graph = tenNodeGraph(saver);

async function perform({ threads, runs, clients, last }: InvocationJob): Promise<void> {
  const left = [...threads];
  const client = async () => {
    for (let thread = left.pop(); thread !== undefined; thread = left.pop()) {
      for (let i = 0; i < runs; i++) {
        // oxlint-disable-next-line no-await-in-loop -- a thread's runs follow each other
        await graph.invoke(questionInput, { configurable: { thread_id: thread } });
      }
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (last) await saver.deleteThread(thread);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

process.on("message", (message: { asked?: InvocationJob }) => {
  if (message.asked === undefined) return;
  perform(message.asked).then(
    () => process.send?.({ done: true }),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
reportOver(
  0,
  () => ownStats(),
  () => undefined,
);

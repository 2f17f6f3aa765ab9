/**
 * Control: LangGraph.js alone. The graph of the hosted rows, called in the process with LangGraph's memory saver,
 * without a server or a disk. The jobs come over IPC.
 */
import { MemorySaver } from "@langchain/langgraph";
import { tenNodeGraph } from "../langgraph.ts";
import { questionInput } from "../question-input.ts";
import { ownStats, reportOver } from "./report.ts";

export interface InvocationJob {
  readonly threads: readonly string[];
  /** The number of runs on each thread, one after the other. */
  readonly runs: number;
  /** The number of threads that have a run in progress at the same time. */
  readonly clients: number;
  /**
   * Whether each thread is deleted after its runs. Otherwise garbage collections of the growing heap would be
   * measured.
   */
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

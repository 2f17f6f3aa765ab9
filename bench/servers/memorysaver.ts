/**
 * LangGraph.js alone: the graph of the hosted rows, called in process, with the saver that LangGraph brings along; no server
 * and no disk. What it is to run comes over IPC.
 */
import { MemorySaver } from "@langchain/langgraph";
import { question, ten } from "../langgraph.ts";
import { ownStats, reportOver } from "./report.ts";

export interface Asked {
  readonly threads: readonly string[];
  /** Of each thread, one after the other. */
  readonly runs: number;
  /** Threads at work at once. */
  readonly clients: number;
  /** The threads are deleted afterwards: a heap that only grew would be collected over and over. */
  readonly last: boolean;
}

const saver = new MemorySaver();
const graph = ten(saver);

async function perform({ threads, runs, clients, last }: Asked): Promise<void> {
  const left = [...threads];
  const client = async () => {
    for (let thread = left.pop(); thread !== undefined; thread = left.pop()) {
      for (let i = 0; i < runs; i++) {
        // oxlint-disable-next-line no-await-in-loop -- a thread's runs follow each other
        await graph.invoke(question, { configurable: { thread_id: thread } });
      }
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (last) await saver.deleteThread(thread);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

process.on("message", (message: { asked?: Asked }) => {
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

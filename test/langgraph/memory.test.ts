import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const MB = 1024 * 1024;
const State = Annotation.Root({ n: Annotation<number>(), blob: Annotation<string>() });
const megabyte = () => randomBytes(MB / 2).toString("hex");

async function heapUsed(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    // oxlint-disable-next-line no-await-in-loop -- lets what waits for the event loop go
    await setImmediate();
    collect();
  }
  return process.memoryUsage().heapUsed;
}

test("a run keeps only its latest steps in memory, not what earlier ones and their subgraphs wrote", async () => {
  const sizes: number[] = [];
  const inner = new StateGraph(State)
    .addNode("write", () => ({ blob: megabyte() }))
    .addNode("again", () => ({ blob: megabyte() }))
    .addEdge(START, "write")
    .addEdge("write", "again")
    .compile();
  const graph = new StateGraph(State)
    .addNode("sub", inner)
    .addNode("own", async ({ n }) => {
      if (n === 15 || n === 45) sizes.push(await heapUsed());
      return { n: n + 1, blob: megabyte() };
    })
    .addEdge(START, "sub")
    .addEdge("sub", "own")
    .addConditionalEdges("own", ({ n }) => (n > 45 ? END : "sub"), [END, "sub"])
    .compile();
  const app = await serve({ langGraphs: await served({ long: graph }) });
  const client = new Client({ apiUrl: app.url });
  const { thread_id } = await client.threads.create();
  const values = await client.runs.wait(thread_id, "long", {
    input: { n: 0 },
    config: { recursion_limit: 200 },
  });
  expect(values).toMatchObject({ n: 46 });
  const [early = 0, late = 0] = sizes;
  // Thirty rounds write 90 MB.
  expect((late - early) / MB).toBeLessThan(15);
}, 120_000);

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { beforeAll, expect, test } from "vitest";
import { build, heddle, Running } from "../config/process.ts";
import { directory } from "../e2e/support/server.ts";

const config = fileURLToPath(new URL("../fixtures/langgraph/langgraph.json", import.meta.url));

beforeAll(build, 120_000);

test("kill -9 in the middle of hosted runs: none is lost, none is stuck, no node runs again past its checkpoint", async () => {
  const data = await directory();
  const effects = join(await directory(), "effects");
  const start = () => Running.start(["--config", config, "--data", data], { SLOW_EFFECTS: effects });

  let server = await start();
  let client = new Client({ apiUrl: server.url });
  const runs: { thread: string; run: string }[] = [];
  for (let kill = 0; kill < 3; kill++) {
    // oxlint-disable no-await-in-loop -- each server continues from the data of the one before
    const begun = Array.from({ length: 8 }, async (_, i) => {
      const { thread_id: thread } = await client.threads.create();
      const input = { name: `${kill}.${i}` };
      const { run_id: run } = await client.runs.create(thread, "slow", { input, durability: "sync" });
      runs.push({ thread, run });
    });
    await Promise.all(begun);
    await setTimeout(60 + 45 * kill);
    await server.stop("SIGKILL");
    server = await start();
    client = new Client({ apiUrl: server.url });
  }
  for (const { thread, run } of runs) {
    expect(await client.runs.join(thread, run)).toMatchObject({ log: ["a", "b", "deep", "c"] });
    expect((await client.runs.get(thread, run)).status).toBe("success");
    const history = await client.threads.getHistory(thread);
    expect(history.map(({ metadata }) => metadata?.["step"])).toEqual([4, 3, 2, 1, 0, -1]);
  }
  // A node may begin again in the step in which the process was killed, but never after a later one has begun: with
  // this durability, that one waits for the checkpoint between them.
  const order = ["a", "b", "deep", "c"];
  const furthest = new Map<string, number>();
  for (const line of readFileSync(effects, "utf8").trim().split("\n")) {
    const [name = "", node = ""] = line.split(" ");
    expect(order.indexOf(node), line).toBeGreaterThanOrEqual(furthest.get(name) ?? 0);
    furthest.set(name, order.indexOf(node));
  }
  await server.stop();
  expect(heddle(["check", "--data", data]).status).toBe(0);
}, 60_000);

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accept, backup, check, repair } from "../../src/cli/maintenance.ts";
import { graph, list } from "../../src/index.ts";
import type { Progress } from "../../src/ports/work-progress.ts";
import { directory, serve } from "./support/server.ts";
import { newThread, postJson } from "./support/wire.ts";

const long = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["x".repeat(10_000)] }) },
  edges: { start: "say" },
});

/** A data directory with a table and a log. */
async function someData(): Promise<string> {
  const data = await directory();
  for (let start = 0; start < 2; start++) {
    const app = await serve({ graphs: { long }, data });
    const thread = await newThread(app.url);
    for (let run = 0; run < 5; run++)
      await postJson(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "long", input: {} });
    await app.close();
  }
  return data;
}

/** Collects progress reports, and checks that `done` grows and does not exceed `total`. */
function listener() {
  const told: Progress[] = [];
  const onProgress = (progress: Progress) => {
    const { work, done = 0, total = Infinity } = progress;
    expect(done).toBeLessThanOrEqual(total);
    const before = told.at(-1);
    if (before?.work === work) expect(done).toBeGreaterThanOrEqual(before.done ?? 0);
    else expect(done).toBe(0);
    told.push(progress);
  };
  return { onProgress, told, works: () => [...new Set(told.map(({ work }) => work))] };
}

const nothing = () => undefined;

test("check, repair and backup tell how far they have come", async () => {
  const data = await someData();
  const checking = listener();
  expect(await check(data, nothing, checking.onProgress)).toBe(0);
  expect(checking.works()).toEqual(["reading the tables", "opening the database", "checking the records"]);
  const tables = checking.told.find(({ work }) => work === "reading the tables");
  expect(tables).toMatchObject({ done: 0, total: expect.any(Number), unit: "bytes" });
  expect(tables?.total).toBeGreaterThan(10_000);

  const copying = listener();
  await backup(data, join(await directory(), "copy"), copying.onProgress);
  expect(copying.works()).toEqual(["copying the files"]);
  expect(copying.told.at(-1)?.total).toBeGreaterThan(10_000);
  expect(copying.told.at(-1)?.done).toBeGreaterThan(0);

  const repairing = listener();
  await repair(data, repairing.onProgress);
  expect(repairing.works()).toEqual([
    "reading the tables",
    "rebuilding the database",
    "merging the tables",
    "rebuilding the indexes",
    "looking for runs without an end",
  ]);

  const accepting = listener();
  await accept(data, nothing, accepting.onProgress);
  expect(accepting.works()).toEqual(["reading the tables", "rebuilding the indexes"]);
});

test("a start tells which tables it reads: those that nobody has read before", async () => {
  const data = await someData();
  // Servers verify tables while they run, if they have the time.
  await rm(join(data, "tables.json"), { force: true });
  const first = listener();
  const app = await serve({ graphs: { long }, data, onProgress: first.onProgress });
  await app.close();
  expect(first.works()).toEqual(["reading the tables", "opening the database"]);
});

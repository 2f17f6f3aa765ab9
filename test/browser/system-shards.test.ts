import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { build, Running } from "../config/process.ts";
import { connect, Home } from "../config/project.ts";
import { shardOf } from "../../src/model/shard-of.ts";
import { seriousFaults } from "./axe.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const SHARDS = 2;
const home = new Home({ isInstalled: true });
afterAll(() => home.remove());

/** While the file `broken` exists, no process can start. */
const config = home.project("shards", {
  "heddle.json": { graphs: { where: "./graphs.ts:where" } },
  "graphs.ts": `
import { existsSync } from "node:fs";
import { graph, value } from "heddle";

if (existsSync(new URL("./broken", import.meta.url))) throw new Error("broken");

/** Says in which process it ran. */
export const where = graph({
  state: { pid: value(0) },
  nodes: { tell: async () => ({ pid: process.pid }) },
  edges: { start: "tell" },
});
`,
  "package.json": { type: "module" },
});
const broken = join(dirname(config), "broken");

/** The cells of a row of the table. */
const cells = (page: Page, shard: number): Promise<string[]> =>
  page.locator(".shards tbody tr").nth(shard).locator("th, td").allInnerTexts();

async function start(): Promise<Running> {
  const args = ["--config", config, "--data", home.data("shown"), "--shards", String(SHARDS)];
  const server = await Running.start(args, {}, () => undefined);
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  return server;
}

/** Runs the graph in the process of a shard, and returns its pid. */
async function pidOf(server: Running, shard: number): Promise<number> {
  let threadId = crypto.randomUUID();
  while (shardOf(threadId, SHARDS) !== shard) threadId = crypto.randomUUID();
  const client = connect(server);
  await client.threads.create({ threadId });
  const { pid } = (await client.runs.wait(threadId, "where", { input: {} })) as { pid: number };
  return pid;
}

describe.skipIf(isMissing)("the shards of a server in a real browser", { timeout: 120_000 }, () => {
  beforeAll(build, 120_000);

  test("have a table, with sums above it; one that does not answer is marked until it is back", async () => {
    const server = await start();
    await pidOf(server, 0);
    const pid = await pidOf(server, 1);
    const { page } = await opened(await browser(), `${server.url}/#/system?span=minutes`);
    await page.getByRole("region", { name: "Shards" }).waitFor();
    await expect.poll(async () => (await cells(page, 1)).at(-1), { timeout: 30_000 }).toMatch(/ ms$/);
    for (let shard = 0; shard < SHARDS; shard++) {
      const [name, age, running, queued, memory] = await cells(page, shard);
      expect([name, running, queued]).toEqual([String(shard), "0", "0"]);
      expect(age).toMatch(/^(now|\d+[sm])$/);
      expect(memory).toMatch(/^\d+ MB$/);
    }
    const chart = (title: string) => page.locator(`.chart:has(figcaption:text-is("${title}"))`);
    expect(await chart("Runs ended").innerText()).toContain("2 since server start");
    await page.getByText("2 threads").waitFor();
    expect(await seriousFaults(page, "all up")).toEqual([]);

    writeFileSync(broken, "");
    onTestFinished(() => rmSync(broken, { force: true }));
    process.kill(pid, "SIGKILL");
    await server.printed("could not be started");
    await page.getByText("Shard 1 does not answer.").waitFor({ timeout: 60_000 });
    expect(await cells(page, 1)).toEqual(["1", "does not answer"]);
    expect((await cells(page, 0)).slice(2, 4)).toEqual(["0", "0"]);
    expect(await chart("Runs ended").innerText()).toContain("1 since server start");
    await page.getByText("2 threads").waitFor({ state: "detached" });
    expect(await seriousFaults(page, "one down")).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await seriousFaults(page, "one down, dark", { colours: true })).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    const box = await page.locator(".shards table").boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? Infinity)).toBeLessThanOrEqual(390);

    rmSync(broken);
    await page.getByText("Shard 1 does not answer.").waitFor({ state: "detached", timeout: 60_000 });
    await expect.poll(async () => (await cells(page, 1)).length, { timeout: 30_000 }).toBe(6);
  });
});

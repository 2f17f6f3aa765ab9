import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, relative } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AppOptions, createApp } from "../../src/app.ts";
import { checkConformance } from "../../src/cli/conformance.ts";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { readConfig } from "../../src/config/config.ts";
import { chapters } from "../../src/conformance/chapters.ts";
import { defineChapter, type TestedServer } from "../../src/conformance/conformance-check.ts";
import { connect, loadSdk } from "../../src/conformance/connect-sdk.ts";
import { runChapters } from "../../src/conformance/run-chapters.ts";
import { createLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { directory } from "../e2e/support/server.ts";

const project = join(import.meta.dirname, "../conformance");
const config = readConfig(join(project, "langgraph.json"), {});
const silent = createLogger({ clock: systemClock, level: "error", write: () => undefined });

async function serveProject(options: AppOptions = {}): Promise<string> {
  const app = await createApp({ logger: silent, config, ...options });
  onTestFinished(() => app.close(0));
  return app.url;
}

/** A server that accepts requests and answers none. */
async function servingNothing() {
  let open = 0;
  const server = createServer((request) => {
    open++;
    request.on("close", () => open--);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open: () => open };
}

/** The output of the command, and the number of failed checks. */
async function checked(...args: readonly string[]): Promise<[differing: number, lines: string[]]> {
  const asked = parseCommandLine(["conformance", ...args], {});
  if (asked.command !== "conformance") throw new Error(JSON.stringify(asked));
  const lines: string[] = [];
  return [await checkConformance(asked, (line) => lines.push(line)), lines];
}

describe("heddle conformance", () => {
  test("prints a table of the chapters that were asked for", async () => {
    const url = await serveProject({ keys: ["k"] });
    const [differing, lines] = await checked(
      "--url",
      `${url}/`,
      "--key",
      "k",
      "--chapter",
      "store,multitask-strategies",
    );
    expect(differing).toBe(0);
    const counts = lines.map((line) => line.split(/ {2,}/));
    const sizeOf = (name: string) => String(chapters.find((chapter) => chapter.name === name)?.checks.length);
    expect(counts).toEqual([
      ["Chapter", "Holds", "Differs"],
      ["multitask strategies", sizeOf("multitask strategies"), "0"],
      ["store", sizeOf("store"), "0"],
      ["Total", String(Number(sizeOf("store")) + Number(sizeOf("multitask strategies"))), "0"],
    ]);
  });

  test("prints each difference with the request, what was expected and what came; --json has all of it", async () => {
    const home = await directory();
    const graphs = { steps: `${relative(home, join(project, "steps.ts"))}:steps` };
    await writeFile(join(home, "langgraph.json"), JSON.stringify({ graphs, http: { disable_store: true } }));
    const url = await serveProject({ config: readConfig(join(home, "langgraph.json"), {}) });
    const [differing, lines] = await checked("--url", url, "--chapter", "store");
    expect(differing).toBeGreaterThan(0);
    const text = lines.join("\n");
    expect(text).toContain("differs: store: an item is put, and got by its namespace and key");
    expect(text).toMatch(/request: {2}PUT \/store\/items \{.*"colour":"green"/);
    expect(text).toMatch(/status: {3}404/);
    expect(text).toMatch(/expected: the request is served\n {2}actual: {3}.*404/);

    const [again, [json = ""]] = await checked("--url", url, "--chapter", "store", "--json");
    expect(again).toBe(differing);
    const { results } = JSON.parse(json) as { results: { holds: boolean }[] };
    expect(results.filter(({ holds }) => !holds)).toHaveLength(differing);
    expect(results[0]).toMatchObject({
      chapter: "store",
      holds: false,
      difference: { request: { method: "PUT", status: 404 } },
    });
  });

  test("leaves the schedules of others alone", async () => {
    const url = await serveProject();
    const client = new Client({ apiUrl: url });
    const yearly = { schedule: "0 0 1 1 *", input: { topic: "tea" } };
    const made = await Promise.all(Array.from({ length: 12 }, () => client.crons.create("steps", yearly)));
    expect(await checked("--url", url, "--chapter", "crons")).toMatchObject([0, {}]);
    const left = await client.crons.search({ limit: 100 });
    expect(left.map(({ cron_id }) => cron_id).toSorted()).toEqual(
      made.map(({ cron_id }) => cron_id).toSorted(),
    );
  });

  test("a check that takes too long makes no more requests", async () => {
    const hung = await servingNothing();
    let isOver = false;
    const check = async ({ http }: TestedServer) => {
      await http.send("GET", "/ok").finally(() => (isOver = true));
    };
    const results = await runChapters(
      [defineChapter("chapter", { "a check": check })],
      () => connect({ Client }, hung.url),
      () => undefined,
      10,
    );
    expect(results).toMatchObject([{ holds: false, difference: { message: "no answer in 0.01 s" } }]);
    // The time may be over before the request has reached the server.
    await expect.poll(() => [isOver, hung.open()]).toEqual([true, 0]);
  });

  test("gives up where nothing answers", async () => {
    const { url } = await servingNothing();
    const asked = parseCommandLine(["conformance", "--url", url], {}) as Parameters<
      typeof checkConformance
    >[0];
    const nothing = () => undefined;
    await expect(checkConformance(asked, nothing, nothing, 10)).rejects.toThrow(
      "No server answers: no answer in 0.01 s",
    );
  });

  test("says what is wrong where no server is, or another project is served, or the key is wrong", async () => {
    const closed = await createApp({ logger: silent });
    await closed.close(0);
    await expect(checked("--url", closed.url)).rejects.toMatchObject({
      code: "server.address",
      message: expect.stringContaining("ECONNREFUSED") as string,
    });
    const other = await createApp({ logger: silent });
    onTestFinished(() => other.close(0));
    await expect(checked("--url", other.url)).rejects.toThrow(
      /does not serve the graph "steps".*langgraph.json/,
    );
    await expect(checked("--url", await serveProject({ keys: ["k"] }))).rejects.toThrow(/401.*--key/);
  });

  test("refuses an unknown chapter, and what is no URL", async () => {
    await expect(checked("--url", "http://x", "--chapter", "nope")).rejects.toThrow(
      /"nope".*threads.*errors/,
    );
    for (const args of [[], ["--url", "localhost"], ["--url", "ftp://x"]])
      expect(parseCommandLine(["conformance", ...args], {})).toMatchObject({
        command: "refused",
        why: expect.stringContaining("--url http://") as string,
      });
  });

  test("says how to install the SDK where it is missing", async () => {
    const missing = "no-such-package-of-the-sdk";
    const loaded = loadSdk(() => import(missing) as never);
    await expect(loaded).rejects.toThrow("npm install @langchain/langgraph-sdk");
  });
});

test("the titles of a chapter differ, and so do the names of chapters", () => {
  expect(chapters.length).toBeGreaterThan(8);
  for (const { checks } of chapters)
    expect(new Set(checks.map(({ title }) => title)).size).toBe(checks.length);
  expect(new Set(chapters.map(({ name }) => name)).size).toBe(chapters.length);
});

test("the guide's table of what the official server answers otherwise names checks that exist", () => {
  const page = readFileSync(join(import.meta.dirname, "../../src/guide/conformance.md"), "utf8");
  const section = page.split("\n## What the official server answers otherwise\n")[1]?.split("\n## ")[0] ?? "";
  const named = [...section.matchAll(/^\| ([a-z ]+) \| ([^|]+) \|/gm)].map(([, ...cells]) =>
    cells.join(": "),
  );
  expect(named.length).toBeGreaterThan(20);
  const titles = chapters.flatMap(({ name, checks }) => checks.map(({ title }) => `${name}: ${title}`));
  const known = new Set(titles);
  expect(named.filter((check) => !known.has(check))).toEqual([]);
});

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, reduce, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** Milliseconds by which the server is ahead of the real time. */
let ahead = 0;
const now = () => Date.now() + ahead;
const mono = () => performance.now();

/** A payment of a negative amount fails. */
const pay = graph({
  state: { amount: value(0), receipt: value<string>(), log: list<string>() },
  nodes: {
    check: async (_, ctx) => {
      ctx.log.info("checking the amount");
      return { log: ["checked"] };
    },
    charge: async ({ amount }) => {
      if (amount < 0) throw new RangeError(`cannot charge ${amount}`);
      return { receipt: `paid ${amount}`, log: ["charged"] };
    },
    tell: async () => ({ log: ["told"] }),
  },
  edges: { start: "check", check: ["charge", "tell"] },
});

const approve = graph({
  state: { topic: value(""), log: list<string>() },
  nodes: {
    ask: async ({ topic }, ctx) => {
      const schema = z.object({ ok: z.boolean() });
      const { ok } = await ctx.interrupt({ question: `May ${topic} go out?` }, { schema });
      return { log: [ok ? "out" : "kept"] };
    },
  },
  edges: { start: "ask" },
});

/** The second of three steps takes much longer than the others. */
const count = graph({
  state: { word: value(""), total: reduce(z.number().default(0), (a, b) => a + b) },
  nodes: {
    read: async () => ({ total: 1 }),
    measure: async ({ word }) => {
      ahead += 4_000;
      return { total: word.length };
    },
    tell: async () => ({ total: 100 }),
  },
  edges: { start: "read", read: "measure", measure: "tell" },
});

const graphs = { pay, approve, count };
const server = () => serve({ graphs, clock: { now, mono }, stacks: true });

async function run(url: string, assistant_id: string, input: object): Promise<string> {
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id, input });
  return thread;
}

/** The page of the only run of a thread. */
async function pageOf(url: string, thread: string): Promise<string> {
  const [only] = (await (await get(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
  return `#/threads/${thread}/runs/${only?.run_id}`;
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });

/** Every task is done by following the texts of the page, as a new user would. */
describe.skipIf(isMissing)("what a new user does", { timeout: 60_000 }, () => {
  test("finds yesterday's failed run, and why it failed; fixes its state and resumes it", async () => {
    // More than a day: the page counts whole seconds, and a fast machine loads it within the same one.
    ahead = -86_460_000;
    const app = await server();
    await run(app.url, "pay", { amount: 5 });
    const failed = await run(app.url, "pay", { amount: -5 });
    ahead = 0;
    await run(app.url, "pay", { amount: 6 });
    await run(app.url, "approve", { topic: "tea" });
    const { page, wrong } = await opened(await browser(), app.url);
    const threads = page.getByRole("list", { name: /threads/ });
    await threads.getByRole("link").nth(3).waitFor();

    await page.getByLabel("Status", { exact: true }).selectOption("error");
    await expect.poll(() => threads.getByRole("link").count()).toBe(1);
    const row = threads.getByRole("link");
    expect(await row.innerText()).toContain("RangeError: cannot charge -5");
    expect(await row.innerText()).toContain("1d");
    expect(await row.getAttribute("title")).toBe("amount -5\nRangeError: cannot charge -5");
    await row.click();
    expect(page.url()).toContain(failed);
    await page.getByText("The last run failed: RangeError: cannot charge -5").waitFor();
    await page.getByRole("link", { name: "View error" }).click();
    const task = page.getByRole("complementary", { name: "Task charge" });
    await task.waitFor();
    const stack = task.getByLabel("Where it failed");
    expect(await stack.innerText()).toMatch(
      /RangeError.*\n\s*at .*…\/test\/browser\/tasks\.test\.ts:\d+:\d+/,
    );

    await page.getByRole("link", { name: "Thread", exact: true }).click();
    await expect.poll(() => page.innerText(".composer .bar p")).toBe("charge failed.");
    await button(page, "Edit state").click();
    await page.getByText("No changes").waitFor();
    await page.getByLabel("Other changes, as JSON").fill("{wrong");
    await page.getByText("The other changes cannot be read").waitFor();
    expect(await page.getByText("No changes").count()).toBe(0);
    await page.getByLabel("Other changes, as JSON").fill("");
    await page.getByLabel("amount").fill("5");
    await page.keyboard.press("Escape");
    await page.getByText("Close without saving?").waitFor();
    await button(page, "Keep editing").click();
    expect(await page.getByLabel("amount").inputValue()).toBe("5");
    await button(page, "Save").click();
    await button(page, "Resume").click();
    await page.getByText("paid 5").waitFor();
    await expect.poll(() => page.innerText(".head .status")).toBe("idle");
    expect(wrong).toEqual([]);
  });

  test("resumes a failed run from its page, where another run would send the input once more", async () => {
    const app = await server();
    const thread = await run(app.url, "pay", { amount: -5 });
    const { page, wrong } = await opened(await browser(), `${app.url}/${await pageOf(app.url, thread)}`);
    const actions = page.locator(".head .actions").getByRole("button");
    await expect.poll(async () => (await actions.allInnerTexts())[0]).toBe("Resume");
    expect(await actions.nth(1).getAttribute("title")).toContain("Starts a new run with the same input");
    const first = page.url();
    await actions.first().click();
    await expect.poll(() => page.url()).not.toBe(first);
    await button(page, /^charge failed/).waitFor();
    // The step before it is not run again.
    expect(await page.locator('[data-task="check"]').count()).toBe(0);
    await page.goto(first);
    await button(page, /^check succeeded/).waitFor();
    // Another run has come after it: the thread no longer stands where this one failed.
    await expect.poll(() => actions.first().innerText()).toBe("Run again");
    expect(wrong).toEqual([]);
  });

  test("finds why the last run failed also after the state was edited", async () => {
    const app = await server();
    const thread = await run(app.url, "pay", { amount: -5 });
    await post(`${app.url}/threads/${thread}/state`, { values: { amount: 6 }, as_node: "check" });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    const reason = "The last run failed: RangeError: cannot charge -5";
    await expect.poll(() => page.innerText(".failure")).toContain(reason);
    expect(wrong).toEqual([]);
  });

  test("answers the oldest open interrupt", async () => {
    ahead = -600_000;
    const app = await server();
    const asked: string[] = [];
    for (const topic of ["the oldest", "a later one", "the latest"]) {
      asked.push(await run(app.url, "approve", { topic }));
      ahead += 60_000;
    }
    await run(app.url, "pay", { amount: 1 });
    const { page, wrong } = await opened(await browser(), app.url);
    const threads = page.getByRole("list", { name: /threads/ });
    await threads.getByRole("link").nth(3).waitFor();
    await page.getByLabel("Status", { exact: true }).selectOption("interrupted");
    await page.getByLabel("Order").selectOption("Oldest first");
    await page.getByRole("list", { name: "3 threads" }).waitFor();
    const first = () => threads.getByRole("link").first().getAttribute("href");
    await expect.poll(first, { timeout: 30_000 }).toContain(asked[0]);
    await threads.getByRole("link").first().click();
    await page.getByText("May the oldest go out?").waitFor();
    await page.getByRole("radio", { name: "yes" }).check();
    await button(page, "Send answer").click();
    await expect.poll(() => page.innerText(".head .status")).toBe("idle");
    await page.getByRole("list", { name: "2 threads" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("finds the slowest node of a run on the pages that it is on, and from there its task in the trace", async () => {
    const app = await server();
    const thread = await run(app.url, "count", { word: "four" });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    const text = /slowest node[^:]*: measure, 4\.\d+\ss/i;
    const link = page.getByRole("link", { name: "measure", exact: true });
    await expect.poll(() => page.innerText(".flow")).toMatch(text);
    await page.getByLabel("Views of the thread").getByRole("link", { name: "Runs" }).click();
    await expect.poll(() => page.innerText(".runs li")).toMatch(text);
    await page.getByLabel("Main").getByRole("link", { name: "Runs" }).click();
    await expect.poll(() => page.innerText(".all-runs tbody .slowest")).toMatch(/^measure, 4\.\d+\ss$/);
    await link.click();
    await page.getByRole("complementary", { name: "Task measure" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("finds the slowest node of a run; replays it from step 2 with another input", async () => {
    const app = await server();
    const thread = await run(app.url, "count", { word: "four" });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    await page.getByLabel("Views of the thread").getByRole("link", { name: "Runs" }).click();
    await page.getByRole("link", { name: /succeeded/ }).click();
    await button(page, /measure.*slowest/).waitFor();
    expect(await page.innerText(".findings")).toMatch(/^Slowest node: measure, 4\.\d+ s$/);

    await button(page, "superstep 2").click();
    await button(page, "Replay from here").click();
    await page.getByRole("heading", { name: "Replay from superstep 2: measure" }).waitFor();
    await page.getByLabel("word").fill("thirteen");
    await button(page, "Replay").last().click();
    await button(page, /^tell succeeded/).click();
    await page.getByRole("complementary", { name: "Task tell" }).waitFor();
    // 1 + the length of "thirteen" + 100
    await expect.poll(() => page.innerText(".detail .diff ins")).toContain('"total": 109');
    const steps = page.getByRole("region", { name: /Superstep/ }).getByRole("button", { name: /^superstep/ });
    expect(await steps.allInnerTexts()).toEqual(["superstep 2", "superstep 3"]);
    expect(await page.innerText(".head")).toMatch(/replay of ….{8} from superstep 2/);
    expect(wrong).toEqual([]);
  });

  test("retries all runs that failed last night for one reason", async () => {
    ahead = -8 * 3_600_000;
    const app = await server();
    const threads = [await run(app.url, "pay", { amount: -5 }), await run(app.url, "pay", { amount: -5 })];
    await run(app.url, "pay", { amount: -7 });
    ahead = 0;
    await run(app.url, "pay", { amount: 5 });
    for (const thread of threads) await post(`${app.url}/threads/${thread}/state`, { values: { amount: 6 } });
    const { page, wrong } = await opened(await browser(), app.url);
    await page.getByLabel("Main").getByRole("link", { name: "Runs" }).click();
    const rows = page.locator(".all-runs tbody tr");
    await expect.poll(() => rows.count()).toBe(4);
    await page.getByLabel("Created").selectOption("Last 24 hours");
    await page.getByLabel("Error contains…").fill("charge -5");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel("Select all runs on this page").check();
    await button(page, "Run again").click();
    await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
    await page.getByText("Done: 2.").waitFor();
    expect(await page.getByRole("link", { name: "Run again" }).count()).toBe(2);
    expect(wrong).toEqual([]);
  });

  test("finds who answered a question, and when", async () => {
    ahead = -7_260_000;
    const app = await server();
    const thread = await run(app.url, "approve", { topic: "tea" });
    ahead = -3_660_000;
    await post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "approve",
      command: { resume: { ok: true } },
      config: { configurable: { user_id: "ann" } },
    });
    ahead = 0;
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    await page.getByLabel("Views of the thread").getByRole("link", { name: "Runs" }).click();
    const answer = page.locator(".runs li", { hasText: 'answer: {"ok":true}' });
    expect(await answer.innerText()).toMatch(/by ann · 1h ago/);
    await answer.getByRole("link", { name: /succeeded/ }).click();
    await expect
      .poll(() => page.innerText(".head .which"))
      .toMatch(/created 1h ago .* answers a question · by ann/s);
    await page.getByText("waited 1 h 0 m for the answer").waitFor();
    expect(wrong).toEqual([]);
  });

  test("leaves a run for another, whatever is clicked before the other is shown", async () => {
    const app = await server();
    const first = await run(app.url, "count", { word: "four" });
    const second = await run(app.url, "approve", { topic: "that" });
    const { page, wrong } = await opened(await browser(), `${app.url}/${await pageOf(app.url, first)}`);
    await button(page, /^tell succeeded/).waitFor();
    // The browser reports the new address in a later turn; the click happens in this one.
    await page.evaluate(`
      location.hash = ${JSON.stringify(await pageOf(app.url, second))};
      document.querySelector('[data-task="tell"]').click();
    `);
    await button(page, /^ask/).waitFor();
    expect(await page.getByRole("complementary", { name: /^Task|^Superstep/ }).count()).toBe(0);
    expect(wrong).toEqual([]);
  });
});

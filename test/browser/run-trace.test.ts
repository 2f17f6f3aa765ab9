import { describe, expect, test } from "vitest";
import { graph, messages, send, value } from "../../src/index.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** Milliseconds by which the server is ahead of the real time. */
let ahead = 0;
const clock = { now: () => Date.now() + ahead, mono: () => performance.now() };

/** An agent that asks a model, whose first try fails; then a tool answers beside a slow node. Waits for `goOn`. */
function agent() {
  const slowMay = latch();
  let tries = 0;
  const made = graph({
    state: { messages: messages() },
    nodes: {
      think: {
        retry: { attempts: 3, initial: 1 },
        run: async (_, ctx) => {
          if (++tries === 1) throw new Error("the model was overloaded");
          const message = ctx.message({ model: "large" });
          message.write("Let me look.");
          message.toolCall({ name: "search", args: { query: "tea" }, id: "call-1" });
          message.usage({ input_tokens: 1_200, output_tokens: 40 });
          return { messages: [message.end()] };
        },
      },
      search: async () => ({
        messages: [{ role: "tool", name: "search", tool_call_id: "call-1", content: "green tea" }],
      }),
      slow: async () => {
        await slowMay.passed;
        return {};
      },
    },
    edges: { start: "think", think: ["search", "slow"] },
  });
  return { made, goOn: slowMay.pass };
}

describe.skipIf(isMissing)("a run as a trace in a real browser", { timeout: 60_000 }, () => {
  test("shows calls with tokens and cost, retries, and the critical path; search finds a call; it is copied as JSON", async () => {
    const { made, goOn } = agent();
    const prices = { large: { in: 2.5, out: 10 } };
    const { url } = await serve({ graphs: { agent: made }, clock, dashboard: { prices } });
    const thread = await newThread(url);
    const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
      assistant_id: "agent",
      input: {},
    });
    const context = await browser();
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const { page, wrong } = await opened(context, `${url}/#/threads/${thread}/runs/${run_id}`);
    await page.locator('.task.done[data-task="search"]').waitFor();
    ahead += 4_000;
    goOn();
    await page.locator('.task.done[data-task="slow"]').waitFor();
    const rows = page.locator(".superstep button.line");
    const words = async () => (await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim());
    expect(await words()).toEqual([
      expect.stringMatching(/^think succeeded on the critical path 1 retry /),
      "model large 1,200 in 40 out $0.0034 Let me look.",
      expect.stringMatching(/^search succeeded/),
      'tool search {"query":"tea"} → green tea',
      expect.stringMatching(/^slow succeeded on the critical path slowest \d+\.\d+ s$/),
    ]);
    expect(await page.innerText(".sums")).toBe(
      "1 model call · 1,200 tokens in, 40 out · $0.0034 · 1 tool call · 1 retry",
    );
    expect(await page.locator(".line.path").count()).toBe(2);

    await page.getByLabel("Search in the run").fill("green");
    await page.getByRole("status").getByText("1 of 3").waitFor();
    expect(await page.locator('[data-call="large"].faint').count()).toBe(1);
    expect(await page.locator('[data-call="search"].faint').count()).toBe(0);
    await page.locator('[data-call="search"]').click();
    await page.getByRole("complementary", { name: "Task search" }).waitFor();

    await page.getByRole("button", { name: "Copy trace as JSON" }).click();
    const copied = JSON.parse(await page.evaluate<string>("navigator.clipboard.readText()")) as unknown;
    expect(copied).toMatchObject({
      run_id,
      tokens_in: 1_200,
      cost_usd: 0.0034,
      retries: 1,
      supersteps: [
        { step: 1, tasks: [{ name: "think", tries: 2, calls: [{ model: "large" }] }] },
        {
          step: 2,
          tasks: [
            { name: "search", slowest_path: false },
            { name: "slow", slowest_path: true },
          ],
        },
      ],
    });
    expect(wrong).toEqual([]);
  });

  test("a run that is read after its end has the same tries and calls; without prices it has no cost", async () => {
    const { made, goOn } = agent();
    goOn();
    const { url } = await serve({ graphs: { agent: made } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "agent", input: {} });
    const [run] = (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run?.run_id}`);
    await page.locator('[data-call="search"]').waitFor();
    expect(await page.innerText(".sums")).toBe(
      "1 model call · 1,200 tokens in, 40 out · 1 tool call · 1 retry",
    );
    expect(wrong).toEqual([]);
  });

  test("of many tasks the first ones are shown, then further ones, and always the one of the address", async () => {
    const wide = graph({
      state: { part: value(0) },
      nodes: { measure: async () => ({}), last: async () => ({}) },
      edges: {
        start: () => Array.from({ length: 400 }, (_, part) => send("measure", { part })),
        measure: "last",
      },
    });
    const { url } = await serve({ graphs: { wide } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "wide", input: {} });
    const [run] = (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run?.run_id}`);
    const rows = page.locator(".superstep button.task");
    await expect.poll(() => rows.count()).toBe(300);
    await page.getByRole("button", { name: "101 more tasks" }).click();
    await expect.poll(() => rows.count()).toBe(401);
    await page.locator('[data-task="last"]').click();
    await page.reload();
    await page.getByRole("complementary", { name: "Task last" }).waitFor();
    expect(await page.locator('[data-task="last"]').count()).toBe(1);
    expect(wrong).toEqual([]);
  });

  test("what a failed try has written is not shown in the conversation beside what the next try writes", async () => {
    const mayFail = latch();
    const mayEnd = latch();
    let tries = 0;
    const retrying = graph({
      state: { messages: messages() },
      nodes: {
        think: {
          retry: { attempts: 2, initial: 1 },
          run: async (_, ctx) => {
            const isFirst = ++tries === 1;
            const message = ctx.message({ model: "large" });
            message.write(isFirst ? "The first try" : "The second try");
            await (isFirst ? mayFail : mayEnd).passed;
            if (isFirst) throw new Error("the model was overloaded");
            return { messages: [message.end()] };
          },
        },
      },
      edges: { start: "think" },
    });
    const { url } = await serve({ graphs: { retrying } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs`, { assistant_id: "retrying", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const main = page.locator("#main");
    await main.getByText("The first try").waitFor();
    mayFail.pass();
    await main.getByText("The second try").waitFor();
    expect(await main.getByText("The first try").count()).toBe(0);
    mayEnd.pass();
    await page.locator(".head").getByText("idle", { exact: true }).waitFor();
    expect(await main.getByText("The second try").count()).toBe(1);
    expect(wrong).toEqual([]);
  });
});

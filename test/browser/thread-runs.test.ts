import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { gated } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

const asking = graph({
  state: { log: list<string>() },
  nodes: { ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }) },
  edges: { start: "ask" },
});

interface RunRow {
  readonly run_id: string;
}

describe.skipIf(isMissing)("the runs of a thread in a real browser", { timeout: 60_000 }, () => {
  test("more than are listed: the running one is shown and cancelled, and the queue is counted in full", async () => {
    const { held, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    const start = (name: string) =>
      postJson<RunRow>(runs, { assistant_id: "held", input: { name }, multitask_strategy: "enqueue" });
    const { run_id: running } = await start("first");
    await waits("first");
    const { run_id: next } = await start("next");
    for (let i = 0; i < 149; i++)
      // oxlint-disable-next-line no-await-in-loop -- the order of the queue is the order of the requests
      await start(`later ${i}`);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=runs`);
    await expect.poll(() => page.innerText(".head .which")).toContain("150 queued");
    expect(await page.innerText(".tabs .count")).toBe("151");
    const card = (id: string) => page.locator(".runs > li", { has: page.locator(`a[href*="${id}"]`) });
    expect(await card(running).innerText()).toContain("running");
    expect(await card(next).innerText()).toContain("next in the queue");
    expect(await page.getByText("next in the queue").count()).toBe(1);
    await page.getByRole("button", { name: "Cancel run" }).click();
    await expect
      .poll(async () => (await get(`${runs}/${running}`)).json())
      .toMatchObject({ status: "interrupted" });
    await expect.poll(() => page.innerText(".head .which")).toContain("149 queued");
    expect(wrong).toEqual([]);
  });

  test("the list has the focus when a run of it is deleted", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    for (const text of ["one", "two"])
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one run at a time
      await postJson(`${url}/threads/${thread}/runs/wait`, {
        assistant_id: "agent",
        input: { messages: [{ role: "user", content: text }] },
      });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=runs`);
    const rows = page.locator(".runs > li");
    await expect.poll(() => rows.count()).toBe(2);
    await rows.first().getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await expect.poll(() => rows.count()).toBe(1);
    await expect.poll(() => page.evaluate("document.activeElement.className")).toBe("runs");
    expect(wrong).toEqual([]);
  });
  test.each([
    ["among the thread's runs", "?tab=runs"],
    ["on the run's page", null],
  ] as const)(
    "*Run again*, %s, asks before it drops a question that the page does not show yet",
    async (_, tab) => {
      const { url } = await serve({ graphs: { asking } });
      const thread = await newThread(url);
      const runOn = (more: object) =>
        postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", ...more });
      await runOn({ input: {} });
      await runOn({ command: { resume: "Yes" } });
      const runs = async () => (await (await get(`${url}/threads/${thread}/runs`)).json()) as RunRow[];
      const first = (await runs()).at(-1)?.run_id ?? "";
      const context = await browser();
      const place = tab ?? `/runs/${first}`;
      const { page, wrong } = await opened(context, `${url}/#/threads/${thread}${place}`);
      const repeat = page.getByRole("button", { name: "Run again" }).last();
      await expect.poll(() => repeat.isEnabled()).toBe(true);
      // From now on, the page cannot read that the thread waits for an answer.
      const reads = await heldBack(context, new RegExp(`/threads/${thread}(?:/runs\\?.*)?$`));
      await runOn({ input: {} });
      await repeat.click();
      reads.pass();
      const dialog = page.getByRole("dialog", { name: "Run again without an answer?" });
      await dialog.getByText("to “May it go out?”. The new run drops the question").waitFor();
      expect(await runs()).toHaveLength(3);
      await dialog.getByRole("button", { name: "Run again" }).click();
      await expect.poll(async () => (await runs()).length).toBe(4);
      expect(wrong).toEqual([]);
    },
  );
  test.each([
    ["among the thread's runs", "?tab=runs"],
    ["on the run's page", null],
  ] as const)(
    "*Run again*, %s, says that the new run is queued, and that it drops a question of the run in progress",
    async (_, tab) => {
      const { held, waits, open } = gated();
      const { url } = await serve({ graphs: { held } });
      const thread = await newThread(url);
      const runs = `${url}/threads/${thread}/runs`;
      open("first");
      await postJson(`${runs}/wait`, { assistant_id: "held", input: { name: "first" } });
      const [{ run_id: first } = { run_id: "" }] = (await (await get(runs)).json()) as RunRow[];
      await postJson(runs, { assistant_id: "held", input: { name: "second" } });
      await waits("second");
      const { page, wrong } = await opened(
        await browser(),
        `${url}/#/threads/${thread}${tab ?? `/runs/${first}`}`,
      );
      const notice = page.locator(".notice", {
        hasText: "New run queued. A queued run drops each question that the run before it asks.",
      });
      await page.getByRole("button", { name: "Run again" }).last().click();
      await notice.waitFor();
      // The next action of the user, without a question that can be lost.
      await page.getByRole("button", { name: "Dismiss" }).click();
      open("second");
      await expect
        .poll(async () => (await get(`${url}/threads/${thread}`)).json())
        .toMatchObject({ status: "idle" });
      await page.goto(`${url}/#/threads/${thread}?tab=runs`);
      await page.getByRole("button", { name: "Run again" }).last().click();
      await page.locator(".notice", { hasText: "New run started." }).waitFor();
      expect(wrong).toEqual([]);
    },
  );
  test("the latest run is resumed in the list if it failed", async () => {
    let isMended = false;
    const work = graph({
      state: { log: list<string>() },
      nodes: {
        work: async () => {
          if (!isMended) throw new Error("no such card");
          return { log: ["done"] };
        },
      },
      edges: { start: "work" },
    });
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    for (let i = 0; i < 2; i++)
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one run at a time
      await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=runs`);
    const rows = page.locator(".runs > li");
    const resume = page.getByRole("button", { name: "Resume" });
    await resume.waitFor();
    expect(await resume.count()).toBe(1);
    isMended = true;
    await rows.first().getByRole("button", { name: "Resume" }).click();
    await page.getByText("A new run continues from the last checkpoint.").waitFor();
    await expect.poll(() => rows.count()).toBe(3);
    await expect.poll(() => resume.count()).toBe(0);
    expect(await rows.first().innerText()).toContain("no input (continues)");
    expect(await (await get(`${url}/threads/${thread}/state`)).json()).toMatchObject({
      values: { log: ["done"] },
      next: [],
    });
    expect(wrong).toEqual([]);
  });
});

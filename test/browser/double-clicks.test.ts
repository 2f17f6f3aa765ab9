import type { Locator } from "playwright-core";
import { describe, expect, test } from "vitest";
import { setup } from "xstate";
import { graph, list, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

/** A graph that fails in its second step when it is given "bad". */
const work = graph({
  state: { log: list<string>(), name: value("") },
  nodes: {
    begin: async () => ({ log: ["began"] }),
    end: async ({ name }) => {
      if (name === "bad") throw new TypeError("no such file");
      return { log: ["ended"] };
    },
  },
  edges: { start: "begin", begin: "end" },
});

const threadsOf = async (url: string) => (await post(`${url}/threads/count`)).json();

describe.skipIf(isMissing)("a double click in a real browser acts once", { timeout: 60_000 }, () => {
  /** A thread with one run, and a page. `path`: the page's address after the thread's. */
  async function threadWith(name: string, path: string) {
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: { name } });
    const context = await browser();
    const { page } = await opened(context, `${url}/#/threads/${thread}${path}`);
    return {
      page,
      /** Clicks twice before the first request has been answered; returns how many requests for a run were sent. */
      async runsAfter(button: string): Promise<number> {
        const create = await heldBack(context, /\/runs$/);
        let sent = 0;
        page.on("request", (request) => {
          if (request.method() === "POST" && request.url().endsWith("/runs")) sent += 1;
        });
        const first = page.waitForRequest(/\/runs$/);
        await page.getByRole("button", { name: button, exact: true }).dblclick();
        await first;
        const answer = page.waitForResponse(/\/runs$/);
        create.pass();
        await answer;
        await context.unrouteAll({ behavior: "wait" });
        return sent;
      },
    };
  }

  test.each([
    ["Run again", "good", "?tab=runs"],
    ["Resume", "bad", ""],
  ])("on %s", async (button, name, path) => {
    const { runsAfter } = await threadWith(name, path);
    expect(await runsAfter(button)).toBe(1);
  });

  test("on Run from this state", async () => {
    const { page, runsAfter } = await threadWith("good", "?tab=history");
    await page.getByRole("button", { name: "Earlier" }).click();
    expect(await runsAfter("Run from this state")).toBe(1);
  });

  test("on Replay", async () => {
    const { page, runsAfter } = await threadWith("good", "?tab=runs");
    await page.locator(".runs a.main").click();
    await page.getByRole("button", { name: "superstep 2" }).click();
    await page.getByRole("button", { name: "Replay from here" }).click();
    expect(await runsAfter("Replay")).toBe(1);
  });

  test("on Store of an edited state; if that fails, the dialog says so", async () => {
    const { page } = await threadWith("good", "?tab=history");
    await page.getByRole("button", { name: "Edit state" }).click();
    await page.getByLabel("Other changes, as JSON").fill('{"name": "other"}');
    const dialog = page.getByRole("dialog");
    const store = dialog.getByRole("button", { name: "Save", exact: true });
    await page.route(/\/state$/, (route) => route.fulfill({ status: 500, json: { detail: "no space" } }));
    await store.click();
    await dialog.getByText("no space").waitFor();
    await page.unrouteAll({ behavior: "wait" });
    let sent = 0;
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/state")) sent += 1;
    });
    const gate = await heldBack(page.context(), /\/state$/);
    await store.dblclick();
    gate.pass();
    await dialog.waitFor({ state: "hidden" });
    await page.context().unrouteAll({ behavior: "wait" });
    expect(sent).toBe(1);
  });

  test.each([
    ["Create empty thread", "#/new"],
    ["Run work", ""],
  ])("on %s", async (button, path) => {
    const { url } = await serve({ graphs: { work } });
    const context = await browser();
    const { page } = await opened(context, `${url}/${path}`);
    const create = await heldBack(context, /\/threads$/);
    await page.getByRole("button", { name: button }).dblclick();
    create.pass();
    await page.waitForURL(/threads\/[0-9a-f-]{36}/);
    await context.unrouteAll({ behavior: "wait" });
    expect(await threadsOf(url)).toBe(1);
  });

  test("on Run now of a cron", async () => {
    const { url } = await serve({ graphs: { work } });
    await postJson(`${url}/runs/crons`, { assistant_id: "work", schedule: "0 9 * * MON", input: {} });
    const context = await browser();
    const { page } = await opened(context, `${url}/#/crons`);
    const create = await heldBack(context, /\/threads$/);
    await page.getByRole("button", { name: "Run now" }).dblclick();
    create.pass();
    await page.getByText("Run started.").waitFor();
    await context.unrouteAll({ behavior: "wait" });
    expect(await threadsOf(url)).toBe(1);
  });

  /** Clicks a button where the pointer is said to be, and at a time in milliseconds that only the page's events know. */
  const clickAt = (button: Locator, at: number) =>
    button.evaluate((element, timeStamp) => {
      const Click = Reflect.get(globalThis, "MouseEvent") as typeof Event;
      const place = { detail: 1, clientX: 300, clientY: 300 };
      const event = new Click("click", { bubbles: true, cancelable: true, ...place });
      Object.defineProperty(event, "timeStamp", { value: timeStamp });
      element.dispatchEvent(event);
    }, at);

  /** A page with a run that is in progress until it is cancelled. `path`: the page's address after the thread's. */
  async function pageWithRun(path: (run: string) => string) {
    const stuck = graph({
      state: { log: list<string>() },
      nodes: {
        wait: (_, { signal }) =>
          new Promise<never>((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason as Error));
          }),
      },
      edges: { start: "wait" },
    });
    const { url } = await serve({ graphs: { stuck } });
    const thread = await newThread(url);
    const start = () =>
      postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
        assistant_id: "stuck",
        input: {},
        multitask_strategy: "enqueue",
      });
    const { run_id } = await start();
    const statuses = async () =>
      ((await (await get(`${url}/threads/${thread}/runs`)).json()) as readonly { status: string }[]).map(
        ({ status }) => status,
      );
    const { page } = await opened(await browser(), `${url}/#/threads/${thread}${path(run_id)}`);
    return { page, start, statuses };
  }

  test("on Cancel run, whose second click lands on Run again", async () => {
    const { page, statuses } = await pageWithRun((run) => `/runs/${run}`);
    await clickAt(page.getByRole("button", { name: "Cancel run" }), 1_000);
    const again = page.getByRole("button", { name: "Run again" });
    await again.waitFor();
    await clickAt(again, 1_450);
    await clickAt(again, 1_600);
    // The click at 1,450 ms would have started a run of its own.
    await page.locator("h2 .status.running").waitFor();
    expect(await statuses()).toEqual(["running", "interrupted"]);
  });

  test("on Cancel run, whose second click or press would cancel the run that was queued", async () => {
    const { page, start, statuses } = await pageWithRun(() => "");
    await start();
    await page.getByText("1 queued").waitFor();
    const cancel = page.getByRole("button", { name: "Cancel run" });
    const first = await cancel.elementHandle();
    await clickAt(cancel, 1_000);
    await expect.poll(() => first?.evaluate((button) => button.isConnected)).toBe(false);
    await clickAt(cancel, 1_450);
    expect(await statuses()).toEqual(["running", "interrupted"]);
    await clickAt(cancel, 1_600);
    await expect.poll(statuses).toEqual(["interrupted", "interrupted"]);
  });

  test("on Run again when the first click has already started the run", async () => {
    const { page } = await threadWith("good", "?tab=runs");
    const again = page.getByRole("button", { name: "Run again" });
    const runs = page.locator(".runs > li");
    await clickAt(again, 1_000);
    await expect.poll(() => runs.count()).toBe(2);
    await page.locator(".head").getByText("idle", { exact: true }).waitFor();
    // The older run's button has moved down; the new run's is in its place.
    await clickAt(again.first(), 1_450);
    await clickAt(again.first(), 1_600);
    await expect.poll(() => runs.count()).toBe(3);
    await page.reload();
    await runs.first().waitFor();
    expect(await runs.count()).toBe(3);
  });

  test("on Pause of a cron, whose second click lands on Resume", async () => {
    const { url } = await serve({ graphs: { work } });
    const cron = { assistant_id: "work", schedule: "0 9 * * MON", input: {} };
    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/runs/crons`, cron);
    const { page } = await opened(await browser(), `${url}/#/crons`);
    await clickAt(page.getByRole("button", { name: "Pause" }), 1_000);
    const resume = page.getByRole("button", { name: "Resume" });
    await resume.waitFor();
    const sent: string[] = [];
    page.on("request", (request) => request.method() === "PATCH" && sent.push(request.postData() ?? ""));
    await clickAt(resume, 1_450);
    expect(await (await get(`${url}/runs/crons/${cron_id}`)).json()).toMatchObject({ enabled: false });
    await clickAt(resume, 1_600);
    await page.getByRole("button", { name: "Pause" }).waitFor();
    expect(sent).toEqual(['{"enabled":true}']);
  });

  test("on Run again of a selected run", async () => {
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: { name: "good" } });
    const context = await browser();
    const { page } = await opened(context, `${url}/#/runs`);
    await page.locator("tbody").getByRole("checkbox").check();
    const plan = await heldBack(context, /\/threads\/search$/);
    await page.getByRole("button", { name: "Run again" }).dblclick();
    plan.pass();
    await page.getByText("Done: 1.").waitFor();
    await context.unrouteAll({ behavior: "wait" });
    expect(await (await get(`${url}/threads/${thread}/runs`)).json()).toHaveLength(2);
  });

  const bill = setup({}).createMachine({
    initial: "open",
    states: { open: { on: { APPROVE: "paid" } }, paid: { type: "final" } },
  });

  const asking = graph({
    state: { log: list<string>() },
    nodes: { ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("Which one?"))] }) },
    edges: { start: "ask" },
  });

  test("on an answer in the inbox, whose second click lands on the same button of the next question", async () => {
    const { url } = await serve({ graphs: { bill } });
    for (const thread of [await newThread(url), await newThread(url)])
      // oxlint-disable-next-line no-await-in-loop -- one waits longer than the other
      await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "bill", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const approve = page.getByRole("button", { name: "APPROVE", exact: true });
    const waiting = async () =>
      (await (await post(`${url}/threads/count`, { status: "interrupted" })).json()) as number;
    await approve.waitFor();
    const first = await approve.elementHandle();
    await clickAt(approve, 1_000);
    await expect.poll(() => first?.evaluate((button) => button.isConnected)).toBe(false);
    await clickAt(approve, 1_400);
    expect(await waiting()).toBe(1);
    await clickAt(approve, 1_600);
    await page.getByText("No questions waiting").waitFor();
    expect(await waiting()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("on Send answer, whose second click lands on Run", async () => {
    const { url } = await serve({ graphs: { asking } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.getByLabel("Answer", { exact: true }).fill("this");
    await clickAt(page.getByRole("button", { name: "Send answer" }), 1_000);
    const run = page.getByRole("button", { name: "Run", exact: true });
    await run.waitFor();
    await clickAt(run, 1_450);
    const runs = async () =>
      ((await (await get(`${url}/threads/${thread}/runs`)).json()) as readonly unknown[]).length;
    expect(await runs()).toBe(2);
    await clickAt(run, 1_600);
    await expect.poll(runs).toBe(3);
    expect(wrong).toEqual([]);
  });
});

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list, messages, value } from "../../src/index.ts";
import { gated } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { dial } from "../e2e/support/sockets.ts";
import { ShiftedTime } from "../e2e/support/shifted-time.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const DAY_MS = 86_400_000;

/** A graph that fails until the test repairs it. */
function fragile() {
  let isMended = false;
  const work = graph({
    state: { log: list<string>(), name: value("") },
    nodes: {
      go: async ({ name }) => {
        if (name === "bad" && !isMended) throw new TypeError("no such file\nsecond line");
        return { log: [name] };
      },
    },
    edges: { start: "go" },
  });
  return { work, mend: () => (isMended = true) };
}

const rows = (page: Page) => page.locator(".all-runs tbody tr");
const statuses = (page: Page) => rows(page).locator(".status").allInnerTexts();

const run = (url: string, thread: string, name: string) =>
  postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: { name } });

/** Code for the browser: the number of lines of each row, by the height of a line in its first cell. */
const LINES = `[...document.querySelectorAll(".all-runs tbody tr")].map((row) => {
  const { paddingTop, paddingBottom, lineHeight } = getComputedStyle(row.cells[0]);
  const padding = parseFloat(paddingTop) + parseFloat(paddingBottom);
  return (row.getBoundingClientRect().height - padding) / parseFloat(lineHeight);
})`;

/** Code for the browser: the pairs of cells of a row whose texts overlap. */
const OVERLAPS = `[...document.querySelectorAll(".all-runs tbody tr")].flatMap((row) => {
  const texts = [...row.cells].flatMap((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return [...range.getClientRects()].map((box) => ({ cell, box }));
  });
  const areOver = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return texts.flatMap((one) =>
    texts
      .filter((two) => two.cell.cellIndex > one.cell.cellIndex && areOver(one.box, two.box))
      .map((two) => one.cell.innerText + " and " + two.cell.innerText),
  );
})`;

describe.skipIf(isMissing)("an address of the list of runs", { timeout: 60_000 }, () => {
  test("names what it filters by, also if that was deleted", async () => {
    const { url } = await serve();
    const { page } = await opened(await browser(), `${url}/#/runs?graph=gone&from=cron:gone&since=never`);
    await page.getByText("No matching runs").waitFor();
    await page.getByLabel("Graph").getByRole("option", { name: "agent" }).waitFor({ state: "attached" });
    expect(await page.getByLabel("Graph").inputValue()).toBe("gone");
    expect(await page.getByLabel("Started from").inputValue()).toBe("cron:gone");
    await page.getByLabel("Graph").selectOption("");
    await expect.poll(() => page.url()).not.toContain("graph=");
  });

  test("with a page that does not exist says so, and leads to the first one", async () => {
    const { url } = await serve();
    const { page } = await opened(await browser(), `${url}/#/runs?graph=agent&cursor=1e9!`);
    await page.getByText("The address names no page of this list.").waitFor();
    await page.getByRole("link", { name: "First page" }).click();
    await page.getByText("No matching runs").waitFor();
    expect(page.url()).toMatch(/#\/runs\?graph=agent$/);
  });
});

describe.skipIf(isMissing)("the runs of all threads in a real browser", { timeout: 60_000 }, () => {
  test("a filter stays in the address; failed runs are started again, deleted, and told about", async () => {
    const { work, mend } = fragile();
    const { url } = await serve({ graphs: { work } });
    const [one, two] = [await newThread(url), await newThread(url)];
    await run(url, one, "bad");
    await run(url, one, "good");
    await run(url, two, "bad");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["failed", "succeeded", "failed"]);
    await page.getByLabel("Status", { exact: true }).selectOption("error");
    await expect.poll(() => statuses(page)).toEqual(["failed", "failed"]);
    expect(page.url()).toContain("status=error");
    await page.reload();
    await expect.poll(() => statuses(page)).toEqual(["failed", "failed"]);
    expect(await page.getByLabel("Status", { exact: true }).inputValue()).toBe("error");
    expect(await rows(page).first().locator(".problem").innerText()).toBe("TypeError: no such file");
    await page.getByLabel("Error contains…").fill("no such thing");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".empty").innerText()).toContain("No matching runs");
    expect(await page.getByRole("link", { name: "Show all runs" }).getAttribute("href")).toBe("#/runs");
    await page.goBack();
    await expect.poll(() => statuses(page)).toEqual(["failed", "failed"]);

    mend();
    await page.getByLabel("Select all runs on this page").check();
    await page.getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.getByRole("dialog").innerText()).toContain("2 failed runs will run again.");
    await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.locator(".run-results").innerText()).toBe("Done: 2.");
    expect(await page.getByRole("link", { name: "Run again" }).count()).toBe(2);
    await page.getByLabel("Select all runs on this page").check();
    await page.getByRole("group", { name: "Selected runs" }).getByRole("button", { name: "Cancel" }).click();
    await expect
      .poll(() => page.locator(".run-results").innerText())
      .toContain("Not done: 2; the rows show why.");
    expect(await rows(page).first().innerText()).toContain("The run has already ended");

    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await expect.poll(() => page.locator(".run-results").innerText()).toBe("Done: 2.");
    expect(await rows(page).first().innerText()).toContain("Deleted");
    await page.getByLabel("Status", { exact: true }).selectOption("");
    await expect.poll(() => statuses(page)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(wrong).toEqual([]);
  });

  test("runs are run again although the thread of one has been deleted meanwhile, and its row says so", async () => {
    const { work, mend } = fragile();
    const { url } = await serve({ graphs: { work } });
    const [one, two] = [await newThread(url), await newThread(url)];
    await run(url, one, "bad");
    await run(url, two, "bad");
    const { page } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["failed", "failed"]);
    await page.getByLabel("Select all runs on this page").check();
    mend();
    await fetch(`${url}/threads/${two}`, { method: "DELETE" });
    await page.getByRole("button", { name: "Run again" }).click();
    await expect
      .poll(() => page.locator(".run-results").innerText())
      .toBe("Done: 1. Not done: 1; the rows show why.");
    await page.getByRole("link", { name: "Run again" }).waitFor();
    expect(await page.locator(".all-runs tbody").innerText()).toContain(
      "The run or its thread has been deleted",
    );
  });

  test("each run tells where it comes from, and runs are found by it", async () => {
    const { work } = fragile();
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    const input = { name: "good" };
    const cron = { assistant_id: "work", schedule: "0 9 * * MON", input };
    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/threads/${thread}/runs/crons`, cron);
    await run(url, thread, "good");
    // As the cron itself starts it.
    await postJson(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "work",
      input,
      metadata: { cron_id },
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    const origins = () => page.locator(".all-runs tbody .from").allInnerTexts();
    await expect.poll(origins).toEqual(["cron", "API"]);
    await page.getByLabel("Select all runs on this page").check();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.locator(".run-results").innerText()).toBe("Done: 2.");
    await page.getByLabel("Started from").selectOption("From the API");
    await expect.poll(origins).toEqual(["API"]);
    await page.getByLabel("Started from").selectOption("dashboard");
    await expect.poll(origins).toEqual(["dashboard", "dashboard"]);
    await page.getByLabel("Started from").selectOption("From cron 0 9 * * MON");
    await expect.poll(origins).toEqual(["cron"]);
    await page.reload();
    await expect.poll(origins).toEqual(["cron"]);
    expect(wrong).toEqual([]);
  });

  test("each run has its tokens, and its cost where the model has a price; those of a socket are told apart", async () => {
    const talk = graph({
      state: { messages: messages() },
      nodes: {
        speak: async (_, ctx) => {
          const message = ctx.message({ model: "large" });
          message.usage({ input_tokens: 1_200, output_tokens: 34 });
          return { messages: [message.end()] };
        },
      },
      edges: { start: "speak" },
    });
    const { work } = fragile();
    const prices = { large: { in: 1_000, out: 5_000 } };
    const { url } = await serve({ graphs: { talk, work }, dashboard: { prices } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "talk", input: {} });
    const socket = await dial(`${url}/threads/${thread}/stream`);
    const command = { assistant_id: "work", input: { name: "good" }, multitask_strategy: "enqueue" };
    await socket.ask({ id: "1", type: "run", ...command });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    const cells = (name: string) => page.locator(`.all-runs tbody .${name}`).allInnerTexts();
    await expect.poll(() => cells("spent")).toEqual(["", "1,234 $1.37"]);
    expect(await page.locator(".spent span").first().getAttribute("title")).toBe("1,200 in, 34 out: large");
    expect(await cells("from")).toEqual(["WebSocket", "API"]);
    await page.getByLabel("Started from").selectOption("From a WebSocket");
    await expect.poll(() => cells("from")).toEqual(["WebSocket"]);
    expect(page.url()).toContain("from=socket");
    expect(wrong).toEqual([]);
  });

  test("a text filters while it is typed; what is selected meanwhile stays selected where it still matches", async () => {
    const { work } = fragile();
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    await run(url, thread, "good");
    await run(url, thread, "bad");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["failed", "succeeded"]);
    await page.getByLabel("Error contains…").pressSequentially("no such");
    await page.getByLabel("Select all runs on this page").check();
    await expect.poll(() => statuses(page)).toEqual(["failed"]);
    expect(page.url()).toContain("error=no+such");
    await expect.poll(() => page.locator(".chosen strong").innerText()).toBe("1 selected");
    await page.getByLabel("Error contains…").fill("");
    await expect.poll(() => statuses(page)).toEqual(["failed", "succeeded"]);
    await page.getByLabel("Error contains…").fill("no such thing");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".empty").innerText()).toContain("No matching runs");
    await page.goBack();
    await expect.poll(() => page.getByLabel("Error contains…").inputValue()).toBe("");
    expect(wrong).toEqual([]);
  });

  test("a run that paused says so, until its question is answered", async () => {
    const asking = graph({
      state: { log: list<string>() },
      nodes: {
        ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }),
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { asking } });
    const [one, two] = [await newThread(url), await newThread(url)];
    const runOn = (thread: string, more: object) =>
      postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", ...more });
    await runOn(one, { input: {} });
    await runOn(two, { input: {}, interrupt_before: ["ask"] });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["paused", "waiting for an answer"]);
    await runOn(one, { command: { resume: "Yes" } });
    await expect.poll(() => statuses(page), { timeout: 20_000 }).toEqual(["paused", "succeeded"]);

    // The answer is not sent again, because nothing waits for it.
    await page.getByRole("button", { name: "1 new run" }).click();
    await expect.poll(() => rows(page).count()).toBe(3);
    await rows(page).first().getByRole("checkbox").check();
    await page.getByRole("button", { name: "Run again" }).click();
    const reason = "The question that this run answered is no longer pending";
    await expect.poll(() => rows(page).first().innerText()).toContain(reason);
    await rows(page).nth(2).getByRole("checkbox").check();
    await rows(page).nth(1).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Run again" }).click();
    const text = "2 succeeded runs will run again. Skipped: 1 that cannot be run again.";
    await expect.poll(() => page.getByRole("dialog").innerText()).toContain(text);
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await rows(page).first().locator(".which a").first().click();
    const repeat = page.getByRole("button", { name: "Run again" });
    await expect.poll(() => repeat.isDisabled()).toBe(true);
    expect(await repeat.getAttribute("title")).toBe(`${reason}.`);
    expect(wrong).toEqual([]);
  });

  test("to run again what drops a question is asked first: on the run's page, among the thread's runs, in the list of all", async () => {
    const asking = graph({
      state: { log: list<string>() },
      nodes: { ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }) },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { asking } });
    const thread = await newThread(url);
    const runOn = (more: object) =>
      postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", ...more });
    const ids = async () =>
      ((await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[]).map(
        ({ run_id }) => run_id,
      );
    await runOn({ input: {} });
    await runOn({ command: { resume: "Yes" } });
    await runOn({ input: {} });
    const [, , first] = await ids();
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${first}`);
    const repeat = page.getByRole("button", { name: "Run again" });
    const dialog = page.getByRole("dialog", { name: "Run again without an answer?" });
    const lost = "The thread waits for an answer to “May it go out?”. The new run drops the question";
    await page.locator(".task").first().waitFor();
    await repeat.click();
    await dialog.getByText(lost).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await ids()).toHaveLength(3);

    await page.goto(`${url}/#/threads/${thread}?tab=runs`);
    await repeat.first().click();
    await dialog.getByText(lost).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    // The run with an answer answers the pending question, so nothing is lost.
    await repeat.nth(1).click();
    await expect.poll(async () => (await ids()).length).toBe(4);
    await page.getByText("New run started.").waitFor();
    await runOn({ input: {} });

    await page.goto(`${url}/#/runs`);
    await expect.poll(() => rows(page).count()).toBe(5);
    await rows(page).last().getByRole("checkbox").check();
    await repeat.click();
    const bulk = page.getByRole("dialog", { name: "Run 1 run again?" });
    await bulk.getByText("1 thread waits for an answer: the new run drops the question.").waitFor();
    await bulk.getByRole("button", { name: "Cancel" }).click();
    expect(await ids()).toHaveLength(5);
    await page.goto(`${url}/#/threads/${thread}/runs/${first}`);
    await page.locator(".task").first().waitFor();
    await repeat.click();
    await dialog.getByRole("button", { name: "Run again" }).click();
    await expect.poll(async () => (await ids()).length).toBe(6);
    expect(wrong).toEqual([]);
  });

  test("*Run again* says before it starts anything that a run will be queued, and drops a question of the run in progress", async () => {
    const { held, waits, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    open("first");
    await postJson(`${runs}/wait`, { assistant_id: "held", input: { name: "first" } });
    await postJson(runs, { assistant_id: "held", input: { name: "second" } });
    await waits("second");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => rows(page).count()).toBe(2);
    await rows(page).last().getByRole("checkbox").check();
    await page.getByRole("button", { name: "Run again" }).click();
    const dialog = page.getByRole("dialog", { name: "Run 1 run again?" });
    await dialog
      .getByText(
        "In 1 thread, new runs are queued. A queued run drops each question that the run before it asks.",
      )
      .waitFor();
    expect(await (await fetch(runs)).json()).toHaveLength(2);
    await dialog.getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.locator(".run-results").innerText()).toBe("Done: 1.");
    expect(await (await fetch(runs)).json()).toHaveLength(3);
    expect(wrong).toEqual([]);
  });

  test("runs are found by when they were created, from and to, in the time zone of the browser; Shift-click marks a range", async () => {
    const { work } = fragile();
    const time = new ShiftedTime();
    const { url } = await serve({ graphs: { work }, ...time });
    const thread = await newThread(url);
    const began = Date.now();
    for (let day = 0; day < 4; day++) {
      await run(url, thread, day % 2 === 0 ? "good" : "bad");
      time.advance(DAY_MS);
    }
    const local = (ms: number) =>
      new Date(ms).toLocaleString("sv-SE", { timeZone: "Asia/Tokyo" }).replace(" ", "T").slice(0, 16);
    const { page, wrong } = await opened(await browser({ timezoneId: "Asia/Tokyo" }), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["failed", "succeeded", "failed", "succeeded"]);
    await page.getByLabel("Created", { exact: true }).selectOption("From … to …");
    await page.getByLabel("Created from").fill(local(began + DAY_MS / 2));
    await expect.poll(() => statuses(page)).toEqual(["failed", "succeeded", "failed"]);
    await page.getByLabel("Created before").fill(local(began + 2.5 * DAY_MS));
    await expect.poll(() => statuses(page)).toEqual(["succeeded", "failed"]);
    const minute = 60_000;
    const after = new Date(Math.floor((began + DAY_MS / 2) / minute) * minute).toISOString();
    expect(new URLSearchParams(page.url().split("?")[1]).get("after")).toBe(after);
    await page.reload();
    await expect.poll(() => statuses(page)).toEqual(["succeeded", "failed"]);
    expect(await page.getByLabel("Created from").inputValue()).toBe(local(began + DAY_MS / 2));
    await page.getByLabel("Created before").fill(local(began));
    await page.getByText("it ends before it begins").waitFor();
    await page.getByLabel("Created from").fill("");
    await page.getByLabel("Created before").fill(local(began + DAY_MS / 2));
    await expect.poll(() => statuses(page)).toEqual(["succeeded"]);
    await page.getByLabel("Created", { exact: true }).selectOption("Any time");
    await expect.poll(() => statuses(page)).toHaveLength(4);
    expect(page.url()).not.toMatch(/after|before/);

    const boxes = page.getByLabel(/^Select run/);
    const marked = () => boxes.evaluateAll((all) => all.map((box) => box.matches(":checked")));
    await boxes.nth(3).click();
    await boxes.nth(1).click({ modifiers: ["Shift"] });
    expect(await marked()).toEqual([false, true, true, true]);
    await boxes.nth(2).click({ modifiers: ["Shift"] });
    expect(await marked()).toEqual([false, false, false, true]);
    await boxes.nth(0).click();
    expect(await marked()).toEqual([true, false, false, true]);
    expect(await page.getByRole("group", { name: "Selected runs" }).innerText()).toContain("2 selected");
    expect(wrong).toEqual([]);
  });

  test("a row has at most two lines in a wide window; in a narrow one, no cell runs into another", async () => {
    const { work } = fragile();
    const asking = graph({
      state: { log: list<string>() },
      nodes: { ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }) },
      edges: { start: "ask" },
    });
    const graphs = { work, "expense-approval-of-the-department": asking };
    const { url } = await serve({ graphs });
    const [one, two] = [await newThread(url), await newThread(url)];
    await run(url, one, "bad");
    await run(url, one, "good");
    await postJson(`${url}/threads/${two}/runs/wait`, {
      assistant_id: "expense-approval-of-the-department",
      input: {},
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.setViewportSize({ width: 1280, height: 800 });
    await expect.poll(() => statuses(page)).toEqual(["waiting for an answer", "succeeded", "failed"]);
    expect(await rows(page).last().locator(".since").innerText()).toBe("the thread has newer runs");
    const lines = await page.evaluate<readonly number[]>(LINES);
    expect(lines).toHaveLength(3);
    for (const count of lines) expect(count).toBeLessThan(2.5);
    await page.setViewportSize({ width: 400, height: 800 });
    const overlaps = await page.evaluate(OVERLAPS);
    expect(overlaps).toEqual([]);
    expect(await page.$eval("#main", (main) => main.scrollWidth - main.clientWidth)).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("a filter finds the runs that are paused, and shows which of them go on", async () => {
    const asking = graph({
      state: { log: list<string>() },
      nodes: {
        ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }),
      },
      edges: { start: "ask" },
    });
    const { work } = fragile();
    const { url } = await serve({ graphs: { asking, work } });
    const [one, two, three] = [await newThread(url), await newThread(url), await newThread(url)];
    const runOn = (thread: string, more: object) =>
      postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", ...more });
    await runOn(one, { input: {} });
    await runOn(two, { input: {}, interrupt_before: ["ask"] });
    await run(url, three, "good");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => statuses(page)).toEqual(["succeeded", "paused", "waiting for an answer"]);
    await page.getByLabel("Status", { exact: true }).selectOption("paused");
    await expect.poll(() => statuses(page)).toEqual(["paused", "waiting for an answer"]);
    expect(page.url()).toContain("status=paused");
    await runOn(one, { command: { resume: "Yes" } });
    await expect.poll(() => statuses(page), { timeout: 20_000 }).toEqual(["paused", "succeeded"]);
    await page.reload();
    await expect.poll(() => statuses(page)).toEqual(["paused"]);
    expect(wrong).toEqual([]);
  });

  test("older runs are on further pages; new ones are announced, and shown when asked for", async () => {
    const { work } = fragile();
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    for (let i = 0; i < 52; i++) await run(url, thread, "good");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await expect.poll(() => rows(page).count()).toBe(50);
    const first = await rows(page).first().innerText();
    await run(url, thread, "bad");
    await page.getByRole("button", { name: "1 new run" }).waitFor({ timeout: 20_000 });
    expect((await rows(page).first().innerText()).slice(0, 20)).toBe(first.slice(0, 20));
    await page.getByRole("button", { name: "1 new run" }).click();
    await expect.poll(async () => (await statuses(page))[0]).toBe("failed");
    await page.getByRole("link", { name: "Next", exact: true }).click();
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.reload();
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.getByRole("link", { name: "First page" }).click();
    await expect.poll(() => rows(page).count()).toBe(50);
    expect(wrong).toEqual([]);
  });

  test("who goes back to the list finds the filter, and the rows where they were; another list begins at its top", async () => {
    const { work } = fragile();
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    for (let i = 0; i < 45; i++) await run(url, thread, "good");
    const { page, wrong } = await opened(await browser(), `${url}/#/runs?status=success`);
    await expect.poll(() => rows(page).count()).toBe(45);
    const scrolled = () => page.$eval("#main", ({ scrollTop }) => scrollTop);
    const link = rows(page).nth(35).locator(".which a").first();
    await link.scrollIntoViewIfNeeded();
    const at = await scrolled();
    expect(at).toBeGreaterThan(200);
    await link.click();
    await page.waitForURL(/#\/threads\/.*\/runs\//);
    await page.getByText("succeeded").first().waitFor();
    await rows(page).first().waitFor({ state: "detached" });
    await page.goBack();
    await expect.poll(() => rows(page).count()).toBe(45);
    await expect.poll(scrolled).toBe(at);
    expect(await page.getByLabel("Status", { exact: true }).inputValue()).toBe("success");
    await page.getByLabel("Status", { exact: true }).selectOption("");
    await page.waitForURL(/#\/runs$/);
    await expect.poll(() => rows(page).count()).toBe(45);
    await expect.poll(scrolled).toBe(0);
    expect(wrong).toEqual([]);
  });
});

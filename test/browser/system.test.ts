import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, value } from "../../src/index.ts";
import { gated, latch } from "../e2e/support/latches.ts";
import { receiver } from "../e2e/support/receiver.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** The number of a chart, and the text beside it. */
const chart = (page: Page, title: string) => page.locator(`.chart:has(figcaption:text-is("${title}"))`);
const number = (page: Page, title: string): Promise<string> =>
  chart(page, title).locator("strong").innerText();

const HIDE = `Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "hidden" });`;
const SHOW = `delete document.visibilityState; document.dispatchEvent(new Event("visibilitychange"));`;

/** Code for the browser that counts the lines of each chart's value. */
const LINES_OF_VALUES = `[...document.querySelectorAll(".chart strong")].map((value) => {
  const range = document.createRange();
  range.selectNodeContents(value);
  return new Set([...range.getClientRects()].map(({ top }) => top)).size;
})`;

/** Milliseconds by which the server is ahead of the real time. */
let ahead = 0;
const now = () => Date.now() + ahead;
const mono = () => performance.now() + ahead;

describe.skipIf(isMissing)("the view of the system in a real browser", { timeout: 60_000 }, () => {
  test("charts tell what the server is at, as it changes", async () => {
    const { held, waits, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    await newThread(url);
    const run = (name: string) =>
      postJson(`${url}/threads/${thread}/runs`, {
        assistant_id: "held",
        input: { name },
        multitask_strategy: "enqueue",
      });
    await run("a");
    await run("b");
    await waits("a");
    const context = await browser();
    // Rates need a second sample.
    const second = latch();
    let looks = 0;
    await context.route("**/metrics", async (route) => {
      if (++looks === 2) await second.passed;
      await route.continue();
    });
    const { page, wrong } = await opened(context, `${url}/#/system?span=minutes`);
    await expect.poll(() => number(page, "Runs in progress")).toBe("1");
    expect(await chart(page, "Runs ended").innerText()).toContain("Loading…");
    second.pass();
    expect(await number(page, "Queued runs")).toBe("1");
    expect(await number(page, "Threads in memory")).toBe("1");
    expect(await chart(page, "Threads in memory").innerText()).toContain("1 only in storage");
    await expect.poll(() => number(page, "Runs ended"), { timeout: 30_000 }).toBe("0/s");
    open("a");
    open("b");
    await expect.poll(() => number(page, "Runs in progress"), { timeout: 30_000 }).toBe("0");
    expect(await chart(page, "Runs ended").innerText()).toContain("2 since server start");
    const line = chart(page, "Runs in progress").locator("polyline");
    await expect.poll(async () => (await line.getAttribute("points"))?.split(" ").length).toBeGreaterThan(1);
    const said = await chart(page, "Runs in progress").locator("svg").getAttribute("aria-label");
    expect(said).toBe("Runs in progress: now 0, at most 1 in the last minutes");
    expect(wrong).toEqual([]);
  });

  test("the last hour is read again after a response of another form, such as a proxy's", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.clock.install();
    let reads = 0;
    await context.route("**/metrics/history", (route) =>
      ++reads === 1 ? route.fulfill({ json: {} }) : route.continue(),
    );
    const { page } = await opened(context, `${url}/#/system`);
    const readsInTime = async () => {
      await page.clock.runFor(1_000);
      return reads;
    };
    await expect.poll(readsInTime, { timeout: 10_000 }).toBeGreaterThan(1);
    await expect.poll(() => number(page, "Runs in progress")).toBe("0");
  });

  test("what happened before the page was opened is drawn along a time axis, and what is unusual is said in words", async () => {
    const failing = graph({
      state: { n: value(0) },
      nodes: {
        fail: async () => {
          throw new Error("no");
        },
      },
      edges: { start: "fail" },
    });
    const { url } = await serve({
      graphs: { failing },
      clock: { now, mono },
      webhooks: { allow_internal: true },
    });
    const thread = await newThread(url);
    // Nobody listens there.
    const webhook = "http://127.0.0.1:1/hook";
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "failing", input: {}, webhook });
    const deliveries = async () =>
      (await (await fetch(`${url}/webhooks/deliveries`)).json()) as { attempts: number }[];
    await expect.poll(async () => (await deliveries())[0]?.attempts).toBe(1);
    const entries = async () =>
      ((await (await fetch(`${url}/metrics/history`)).json()) as { times: string[] }).times.length;
    for (const count of [2, 3, 4]) {
      ahead += 20 * 60_000;
      await expect.poll(entries, { timeout: 10_000 }).toBe(count);
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/system`);
    await page.getByRole("link", { name: "Last hour" }).waitFor();
    const ended = chart(page, "Runs ended");
    await expect.poll(() => ended.locator(".axis time").count()).toBeGreaterThan(1);
    expect(await ended.locator("polyline.bad").count()).toBeGreaterThan(0);
    expect(await ended.locator("svg").getAttribute("aria-label")).toContain("in the last hour");
    expect(await chart(page, "Queue time").locator("strong").innerText()).toMatch(/ ms$/);
    const unusual = page.getByRole("region", { name: "Warnings" });
    await unusual
      .getByText(`1 webhook to ${new URL(webhook).host} is being retried: connection refused.`)
      .waitFor();
    await page.getByRole("link", { name: "Last 5 minutes" }).click();
    await chart(page, "Queue time").waitFor({ state: "detached" });
    expect(await ended.locator("svg").getAttribute("aria-label")).toContain("in the last minutes");
    expect(wrong).toEqual([]);
  });

  test("on a phone, no value is broken into two lines, and no number is parted from its unit", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/system`);
    await page.setViewportSize({ width: 390, height: 844 });
    // The longest of all values, with another one beside it.
    await expect.poll(() => number(page, "Memory")).toMatch(/^\d+ MB$/);
    await expect
      .poll(() => chart(page, "Memory").locator(".most").innerText())
      .toMatch(/^up to \d+\u00a0MB$/);
    const lines = await page.evaluate<number[]>(LINES_OF_VALUES);
    expect(new Set(lines)).toEqual(new Set([1]));
    const note = chart(page, "Memory").locator("span").last();
    expect(await note.evaluate(({ textContent }) => textContent)).toMatch(/^JS heap: \d+\u00a0MB$/);
    expect(wrong).toEqual([]);
  });

  test("it asks while it is seen alone, and keeps what it saw", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.clock.install();
    const { page, wrong } = await opened(context, `${url}/#/system`);
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/metrics")) asked++;
    });
    await page.clock.fastForward(2_000);
    await expect.poll(() => asked).toBeGreaterThan(0);
    await page.evaluate(HIDE);
    // A sample in progress is complete.
    const answered = () => page.evaluate('fetch("ok").then(({ ok }) => ok)');
    for (let i = 0; i < 5; i++) await answered();
    const before = asked;
    for (let i = 0; i < 3; i++) {
      await page.clock.fastForward(5_000);
      await answered();
    }
    expect(asked).toBe(before);
    await page.evaluate(SHOW);
    await expect.poll(() => asked).toBeGreaterThan(before);
    await page.evaluate('location.hash = "#/graphs"');
    await page.waitForSelector(".graphs");
    await page.evaluate('location.hash = "#/system"');
    const points = await chart(page, "Memory").locator("polyline").getAttribute("points");
    expect(points?.split(" ").length).toBeGreaterThan(1);
    expect(wrong).toEqual([]);
  });

  test("a webhook that was given up is listed with its reason, sent again, and one more deleted", async () => {
    const hook = await receiver((nth) => (nth <= 2 ? 500 : 200));
    const { url } = await serve({ webhooks: { allow_internal: true, attempts: 1 } });
    for (const path of ["/one", "/two"]) {
      const body = { assistant_id: "approval", input: {}, webhook: `${hook.url}${path}` };
      const thread = await newThread(url);
      await post(`${url}/threads/${thread}/runs/wait`, body);
    }
    await hook.until(2);
    const { page, wrong } = await opened(await browser(), `${url}/#/system`);
    await expect.poll(() => number(page, "Undelivered webhooks"), { timeout: 30_000 }).toBe("2");
    const letter = (path: string) => page.locator(`.letters li:has(code:text-is("${hook.url}${path}"))`);
    await letter("/one").waitFor();
    expect(await letter("/one").innerText()).toContain("The receiver answered 500");
    await letter("/one").locator('button:has-text("Send again")').click();
    expect((await hook.until(3)).at(-1)?.path).toBe("/one");
    await letter("/one").waitFor({ state: "detached" });
    await letter("/two").locator('button:has-text("Delete")').click();
    await page.click('dialog button:has-text("Delete")');
    await letter("/two").waitFor({ state: "detached" });
    await expect.poll(() => number(page, "Undelivered webhooks"), { timeout: 30_000 }).toBe("0");
    expect(hook.told).toHaveLength(3);
    expect(wrong).toEqual([]);
  });

  test("webhooks that are deleted one right after the other are gone from the list", async () => {
    const hook = await receiver(() => 500);
    const { url } = await serve({ webhooks: { allow_internal: true, attempts: 1 } });
    for (const path of ["/one", "/two"]) {
      const body = { assistant_id: "approval", input: {}, webhook: `${hook.url}${path}` };
      const thread = await newThread(url);
      await post(`${url}/threads/${thread}/runs/wait`, body);
    }
    await hook.until(2);
    const context = await browser();
    const { page } = await opened(context, `${url}/#/system`);
    await expect.poll(() => page.locator(".letters li").count()).toBe(2);
    // Only the deletions cause the list to be read again.
    await page.evaluate(HIDE);
    const [first, second] = [latch(), latch()];
    const gates = [first, second];
    await page.route("**/webhooks/deliveries/*", async (route) => {
      await gates.shift()?.passed;
      await route.continue();
    });
    const remove = async (nth: number) => {
      await page.locator(".letters li").nth(nth).locator('button:has-text("Delete")').click();
      const asked = page.waitForRequest("**/webhooks/deliveries/*");
      await page.click('dialog button:has-text("Delete")');
      await asked;
    };
    await remove(0);
    await remove(1);
    first.pass();
    await expect.poll(() => page.locator(".letters li").count()).toBe(1);
    second.pass();
    await expect.poll(() => page.locator(".letters li").count()).toBe(0);
  });
});

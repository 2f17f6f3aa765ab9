import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buildSync } from "esbuild";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { graph, list, to } from "../../src/index.ts";
import { gated, latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, NOBODY, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** The names of a chart's highlighted states, the innermost only. */
const lit = (page: Page, slot: string): Promise<string[]> =>
  page.$$eval(`figure[data-slot="${slot}"] svg g.lit`, (groups) =>
    groups
      .map((group) => group.getAttribute("data-path") ?? "")
      .filter((path, _, all) => !all.some((other) => other.startsWith(`${path}/`)))
      .map((path) => path.split("/").at(-1) ?? ""),
  );

/** A foreign page with the vendor's receiver, in place of the hosted inspector. */
async function viewer(): Promise<string> {
  const { outputFiles } = buildSync({
    stdin: {
      contents: `import { createBrowserReceiver } from "@statelyai/inspect";
        window.told = [];
        createBrowserReceiver().subscribe((event) => window.told.push(event));`,
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
  });
  const html = `<!doctype html><meta charset=utf-8><title>viewer</title><script>${outputFiles[0]?.text}</script>`;
  const server = createServer(
    (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end(html),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/view`;
}

interface Told {
  readonly type: string;
  readonly sessionId: string;
  readonly snapshot?: { readonly value: unknown };
}

const told = (page: Page): Promise<Told[]> => page.evaluate("window.told");

/** A thread that waits for an approval, on a server with the key "sesame". */
async function approvalThread(url: string): Promise<string> {
  const made = await fetch(`${url}/threads`, {
    method: "POST",
    headers: { "x-api-key": "sesame" },
    body: "{}",
  });
  const { thread_id: thread } = (await made.json()) as { thread_id: string };
  const waiting = await fetch(`${url}/threads/${thread}/runs/wait`, {
    method: "POST",
    headers: { "x-api-key": "sesame", "content-type": "application/json" },
    body: JSON.stringify({ assistant_id: "approval", input: {} }),
  });
  await waiting.text();
  return thread;
}

describe.skipIf(isMissing)("/inspector in a real browser", { timeout: 60_000 }, () => {
  test("its charts move with a run: the graph, the run and the thread; nothing foreign is asked, nothing complains", async () => {
    const { held, waits, open } = gated();
    const app = await serve({ graphs: { held } });
    const thread = await newThread(app.url);
    const { page, wrong } = await opened(await browser(), `${app.url}/inspector?thread_id=${thread}`);
    await page.waitForSelector('figure[data-slot="thread"] svg');
    await expect.poll(() => lit(page, "thread")).toEqual(["idle"]);

    await post(`${app.url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "a" } });
    await waits("a");
    await expect.poll(() => lit(page, "graph"), { timeout: 30_000 }).toEqual(["hold"]);
    await expect.poll(() => lit(page, "run")).toEqual(["executing"]);
    expect(await lit(page, "thread")).toEqual(["running"]);
    open("a");
    await expect.poll(() => lit(page, "graph")).toEqual(["__end__"]);
    expect(await lit(page, "run")).toEqual(["success"]);
    await expect.poll(() => lit(page, "thread")).toEqual(["success"]);

    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    await expect.poll(() => lit(page, "graph"), { timeout: 30_000 }).toEqual(["review"]);
    await expect.poll(() => lit(page, "thread")).toEqual(["interrupted"]);
    expect(await page.textContent('figure[data-slot="graph"] figcaption')).toContain("interrupted");
    const steps = await page.$$eval("#log li", (items) => items.map(({ textContent }) => textContent));
    expect(steps[0]).toContain("→ interrupted");
    expect(steps.length).toBeGreaterThan(15);

    // With the keyboard alone: selecting an actor draws its chart.
    await page.focus("#thread");
    for (let i = 0; i < 20; i++) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate<string>("document.activeElement.textContent")).startsWith("task write")) break;
    }
    await page.keyboard.press("Enter");
    await page.waitForSelector('figure[data-slot="chosen"] svg');
    await expect.poll(() => lit(page, "chosen")).toEqual(["done"]);
    expect(wrong).toEqual([]);
  });

  test("who comes late sees where the graph has gone, also where it declares nothing, what failed, and what was done", async () => {
    const wanders = graph({
      state: { log: list<string>() },
      nodes: {
        plan: async () => to("work"),
        work: async () => ({ log: ["worked"] }),
        never: async () => ({}),
        fail: async () => {
          throw new RangeError("no way on");
        },
      },
      edges: { start: "plan", work: (state) => (state.log.length > 0 ? "fail" : "never") },
    });
    const app = await serve({ graphs: { wanders } });
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "wanders", input: {} });
    const { page, wrong } = await opened(await browser(), `${app.url}/inspector?thread_id=${thread}`);
    await page.getByRole("alert").getByText("RangeError: no way on").waitFor();
    const taken = () => page.locator("path.edge.taken").count();
    await expect.poll(taken, { timeout: 30_000 }).toBe(3);
    expect(await page.locator("path.edge.untaken").count()).toBeGreaterThan(0);
    expect(await lit(page, "graph")).toEqual(["fail"]);
    await expect
      .poll(() => page.$$eval("#log li", (items) => items.map((one) => one.textContent?.split("→ ")[1])))
      .toEqual(["fail", "work", "plan", "__start__"]);
    expect(wrong).toEqual([]);
  });

  test("at 1280 by 800 each chart is seen whole; larger ones keep what is lit in sight", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    const context = await browser();
    const { page, wrong } = await opened(context, `${app.url}/inspector?thread_id=${thread}`);
    await page.setViewportSize({ width: 1280, height: 800 });
    for (const slot of ["graph", "run", "thread"]) {
      const figure = page.locator(`figure[data-slot="${slot}"]`);
      await figure.locator("svg").waitFor();
      const isWhole = () =>
        figure.locator(".scroll").evaluate((box) => {
          const { scrollWidth, clientWidth, scrollHeight, clientHeight } = box;
          return scrollWidth <= clientWidth && scrollHeight <= clientHeight;
        });
      await expect.poll(isWhole, { timeout: 30_000 }).toBe(true);
      for (let i = 0; i < 5; i++) await figure.getByRole("button", { name: "Zoom in" }).click();
      expect(await isWhole()).toBe(false);
      const isSeen = figure
        .locator("g.lit")
        .last()
        .evaluate((state) => {
          const [one, box] = [state, state.closest(".scroll") ?? state].map((part) =>
            part.getBoundingClientRect(),
          );
          if (one === undefined || box === undefined) return false;
          const [x, y] = [one.x + one.width / 2, one.y + one.height / 2];
          return x > box.left && x < box.right && y > box.top && y < box.bottom;
        });
      expect(await isSeen, slot).toBe(true);
      await figure.getByRole("button", { name: "Fit" }).click();
      expect(await isWhole()).toBe(true);
    }
    expect(wrong).toEqual([]);
  });

  test.each(["nope", NOBODY])("of the thread %s it says that there is none", async (thread) => {
    const { url } = await serve();
    const { page } = await opened(await browser(), `${url}/inspector?thread_id=${thread}`);
    await page.getByRole("heading", { name: "Thread not found" }).waitFor();
    expect(await page.isVisible("#actors")).toBe(false);
    expect(await page.isVisible("#log")).toBe(false);
    await page.getByRole("link", { name: "View threads in memory" }).click();
    await page.waitForSelector("#threads .none");
  });

  test("threads to choose from; a key is asked for where one is set, and a wrong one again", async () => {
    const app = await serve({ keys: ["sesame"] });
    const thread = await approvalThread(app.url);
    const { page } = await opened(await browser(), `${app.url}/inspector`);
    await page.waitForSelector("#secret:focus");
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.textContent("#status")).toContain("user token is required");
    await page.fill("#secret", "sesame");
    await page.keyboard.press("Enter");
    await page.click(`a[href="inspector?thread_id=${thread}"]`);
    await page.waitForSelector('figure[data-slot="graph"] svg');
    await expect.poll(() => lit(page, "graph")).toEqual(["review"]);
  });

  test("a key that is given while a wrong one is being refused counts", async () => {
    const app = await serve({ keys: ["sesame"] });
    const thread = await approvalThread(app.url);
    const context = await browser();
    const [asked, answer] = [latch(), latch()];
    await context.route("**/*", async (route) => {
      if (route.request().headers()["x-api-key"] !== "wrong") return route.continue();
      const response = await route.fetch();
      asked.pass();
      await answer.passed;
      await route.fulfill({ response });
    });
    const { page } = await opened(context, `${app.url}/inspector`);
    await page.waitForSelector("#secret:focus");
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await asked.passed;
    await page.fill("#secret", "sesame");
    const accepted = page.waitForResponse((one) => one.request().headers()["x-api-key"] === "sesame");
    await page.keyboard.press("Enter");
    await accepted;
    answer.pass();
    await page.waitForSelector(`a[href="inspector?thread_id=${thread}"]`);
    await page.reload();
    await page.waitForSelector(`a[href="inspector?thread_id=${thread}"]`);
    expect(await page.isVisible("#secret")).toBe(false);
  });

  test("under a prefix, and after the server has gone and come again", async () => {
    const app = await serve({ mount: "/api" });
    const { thread_id: thread } = await postJson<{ thread_id: string }>(`${app.url}/api/threads`);
    const { page, wrong } = await opened(await browser(), `${app.url}/api/inspector?thread_id=${thread}`);
    await expect.poll(() => lit(page, "thread"), { timeout: 30_000 }).toEqual(["idle"]);
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.waitForSelector(`.head:has-text("${thread}")`);
    await page.goBack();
    await expect.poll(() => lit(page, "thread"), { timeout: 30_000 }).toEqual(["idle"]);
    expect(wrong).toEqual([]);
    await app.close(0);
    await expect.poll(() => page.textContent("#status")).toContain("trying again");
  });

  test("hands over after a word and a click: the vendor's receiver on another origin gets actors, events and snapshots, again after a reload", async () => {
    const there = await viewer();
    const app = await serve({ inspect: { viewer: there } });
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    const context = await browser();
    const { page } = await opened(context, `${app.url}/inspector?thread_id=${thread}`);
    await expect.poll(() => lit(page, "thread"), { timeout: 30_000 }).toEqual(["interrupted"]);

    await page.click("#hand");
    expect(await page.textContent("#viewer")).toBe(there);
    expect(context.pages()).toHaveLength(1);
    await page.click("#consent button[value=no]");
    expect(context.pages()).toHaveLength(1);

    await page.click("#hand");
    const [other] = await Promise.all([context.waitForEvent("page"), page.click("#agree")]);
    // A page that connects late gets the current actors.
    await expect.poll(async () => (await told(other)).length).toBeGreaterThan(2);
    const first = await told(other);
    expect(new Set(first.map(({ type }) => type))).toEqual(new Set(["@xstate.actor"]));
    expect(first.find(({ sessionId }) => sessionId === thread)?.snapshot?.value).toBe("interrupted");
    expect(await page.textContent("#status")).toContain("Forwarding to");

    await post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      command: { resume: { ok: true } },
    });
    const ended = ({ sessionId, snapshot }: Told) => sessionId === thread && snapshot?.value === "success";
    await expect.poll(async () => (await told(other)).some(ended)).toBe(true);
    const live = await told(other);
    expect(new Set(live.map(({ type }) => type))).toEqual(
      new Set(["@xstate.actor", "@xstate.event", "@xstate.snapshot"]),
    );
    await other.reload();
    await expect.poll(async () => (await told(other)).some(ended)).toBe(true);
    const again = await told(other);
    expect(again[0]).toMatchObject({
      type: "@xstate.actor",
      sessionId: thread,
      snapshot: { value: "success" },
    });
    expect(again.some(({ type }) => type === "@xstate.event")).toBe(true);
  });
});

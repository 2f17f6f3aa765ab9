import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const work = graph({
  state: { log: list<string>(), name: value("") },
  nodes: { go: async ({ name }) => ({ log: [name] }) },
  edges: { start: "go" },
});

/** The distance by which the content of the page's main part is wider than it. */
const overflow = (page: Page) =>
  page.$eval("#main", ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);

describe.skipIf(isMissing)("the dashboard in a small window", { timeout: 60_000 }, () => {
  test("nothing is wider than the window: a long title, the example of a cron", async () => {
    const { url } = await serve({ graphs: { work } });
    const metadata = { title: "x".repeat(600) };
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await page.waitForSelector(".head .title");
      expect(await overflow(page), String(width)).toBe(0);
      expect((await page.locator(".head").boundingBox())?.height).toBeLessThan(250);
    }
    await page.goto(`${url}/#/crons`);
    await page.waitForSelector(".empty pre");
    expect(await overflow(page)).toBe(0);
    await page.keyboard.press("?");
    const right = (text: string) => page.locator("dialog dl > div").filter({ hasText: text });
    const [badge, words] = await Promise.all(
      ["kbd", "dd"].map((name) => right("new line").locator(name).boundingBox()),
    );
    expect((badge?.x ?? 0) + (badge?.width ?? 0)).toBeLessThanOrEqual(words?.x ?? 0);
    expect(wrong).toEqual([]);
  });

  test("an assistant with a long name leaves the form for a new thread within the window", async () => {
    const { url } = await serve({ graphs: { work } });
    await postJson(`${url}/assistants`, { graph_id: "work", name: "long name ".repeat(12).trim() });
    const { page } = await opened(await browser(), `${url}/#/new`);
    await page.setViewportSize({ width: 390, height: 800 });
    await page.getByRole("combobox", { name: "Assistant" }).waitFor();
    expect(await overflow(page)).toBe(0);
    const start = await page.getByRole("button", { name: "Start", exact: true }).boundingBox();
    expect((start?.x ?? 0) + (start?.width ?? Infinity)).toBeLessThanOrEqual(390);
  });

  test("the result of a bulk action stays on one line, below the ids of its run", async () => {
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: { name: "x" } });
    const { page } = await opened(await browser(), `${url}/#/runs`);
    await page.setViewportSize({ width: 390, height: 900 });
    await page.getByRole("checkbox", { name: "Select run" }).check();
    await fetch(`${url}/threads/${thread}`, { method: "DELETE" });
    await page.getByRole("button", { name: "Run again" }).click();
    const result = page.locator(".result", { hasText: "The run or its thread has been deleted" });
    const ids = page.locator(".which > a").first();
    await result.waitFor();
    const [text, above] = [await result.boundingBox(), await ids.boundingBox()];
    expect(text?.height).toBeLessThan(1.5 * (above?.height ?? 0));
    expect(text?.y).toBeGreaterThan(above?.y ?? Infinity);
    // The duration stands beside the ids, clear of the result.
    const took = await page.locator(".took").boundingBox();
    expect((took?.y ?? 0) + (took?.height ?? 0)).toBeLessThanOrEqual((text?.y ?? 0) + 1);
    expect(await overflow(page)).toBe(0);
  });

  test("a task's detail has a height that can be read; Escape in a dialog leaves it open", async () => {
    const { url } = await serve({ graphs: { work } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "work", input: { name: "x" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.setViewportSize({ width: 640, height: 400 });
    await page.locator(".all-runs tbody .which a").first().click();
    await page.getByRole("button", { name: "superstep 1" }).click();
    const detail = page.locator(".detail");
    await expect.poll(async () => (await detail.boundingBox())?.height).toBeGreaterThan(200);
    await page.getByRole("button", { name: "Replay from here" }).click();
    await page.getByRole("dialog").waitFor();
    // Outside of a field, where the page handles keys too.
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).focus();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await detail.count()).toBe(1);
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    expect(wrong).toEqual([]);
  });
});

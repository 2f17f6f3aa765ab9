import axe from "axe-core";
import { beforeAll, describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";
import { buildPages } from "./pages.ts";

const SERIOUS = `axe.run().then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes[0].html))`;

describe.skipIf(isMissing)("the page of the API in a real browser", { timeout: 60_000 }, () => {
  beforeAll(buildPages, 60_000);

  test("an operation is found, read with its fields, and named by its link; below a prefix, without a key", async () => {
    const { url } = await serve({ mount: "/api", keys: ["sesame"] });
    const { page, wrong } = await opened(await browser(), `${url}/api/docs`);
    await page.fill('[aria-label="Find an operation"]', "post runs stream");
    await expect.poll(() => page.locator(".operation").count()).toBe(2);
    const operation = page.locator(".operation:has(code:text-is('/threads/{thread_id}/runs/stream'))");
    await operation.locator("summary").first().click();
    const field = (name: string) => operation.locator(`.members > li:has(> code:text-is("${name}"))`);
    expect(await field("assistant_id").innerText()).toContain("string required");
    expect(await field("multitask_strategy").innerText()).toContain('"reject" | "enqueue"');
    await field("command").locator("summary").click();
    await field("command").locator('li:has(> code:text-is("resume"))').waitFor();
    const curl = await operation.locator("pre").innerText();
    expect(curl).toContain(`${url}/api/threads/{thread_id}/runs/stream`);
    expect(curl).toContain('{"assistant_id":"..."}');
    expect(curl).toContain("x-api-key");
    await page.goto(`${url}/api/docs#getMetrics`);
    await page.reload();
    await page.waitForSelector("#getMetrics[open]");
    expect(wrong).toEqual([]);
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.fill("#secret", "sesame");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "API" }).click();
    await page.waitForSelector(".operation");
  });

  test("axe-core finds no serious fault, light and dark; on a phone nothing sticks out", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/docs#postThreadsThreadIdRuns`);
    await page.waitForSelector(".operation[open] pre");
    await page.evaluate(axe.source);
    const pages: unknown[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate(SERIOUS)).toEqual([]);
      pages.push(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
    }
    expect(pages).toEqual(["rgb(245, 245, 242)", "rgb(18, 20, 23)"]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360);
    expect(wrong).toEqual([]);
  });
});

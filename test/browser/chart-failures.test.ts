import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { newThread } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const WORKER = "**/elk-worker.js";
const script = () =>
  readFileSync(join(import.meta.dirname, "../../dist/src/dashboard/elk-worker.js"), "utf8");

/** Code for the layout worker: it answers the first layout with an error, and the rest is the worker's own. */
const FAIL_ONCE = `let isFirst = true;
  addEventListener("message", (event) => {
    if (event.data.cmd !== "layout" || !isFirst) return;
    isFirst = false;
    event.stopImmediatePropagation();
    postMessage({ id: event.data.id, error: new Error("no room left") });
  });
`;

describe.skipIf(isMissing)("a chart that could not be drawn, in a real browser", { timeout: 60_000 }, () => {
  test("is drawn on request after its layout has failed once", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.route(WORKER, (route) =>
      route.fulfill({ contentType: "text/javascript", body: FAIL_ONCE + script() }),
    );
    const { page, wrong } = await opened(context, `${url}/#/graphs`);
    const failure = page.getByRole("alert");
    await expect.poll(() => failure.innerText()).toContain("The chart could not be drawn: no room left");
    expect(await page.getByText("Drawing…").isVisible()).toBe(false);
    await failure.getByRole("button", { name: "Try again" }).click();
    await page.waitForSelector(".graphs svg g");
    expect(await failure.count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("is drawn on request after the layout script could not be loaded", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.route(WORKER, (route) => route.fulfill({ status: 503, body: "restarting" }));
    const { page } = await opened(context, `${url}/#/graphs`);
    const failure = page.getByRole("alert");
    await expect.poll(() => failure.innerText()).toContain("The chart could not be drawn");
    await context.unroute(WORKER);
    await failure.getByRole("button", { name: "Try again" }).click();
    await page.waitForSelector(".graphs svg g");
    expect(await failure.count()).toBe(0);
  });

  test("is drawn on request in the inspector too", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const context = await browser();
    await context.route(WORKER, (route) => route.fulfill({ status: 503, body: "restarting" }));
    const { page } = await opened(context, `${url}/inspector?thread_id=${thread}`);
    const figure = page.locator('figure[data-slot="thread"]');
    await expect.poll(() => figure.innerText()).toContain("The chart could not be drawn");
    await context.unroute(WORKER);
    await figure.getByRole("button", { name: "Try again" }).click();
    await figure.locator("svg g.lit").first().waitFor();
    expect(await figure.innerText()).not.toContain("could not be drawn");
  });
});

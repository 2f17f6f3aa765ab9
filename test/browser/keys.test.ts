import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

describe.skipIf(isMissing)("the dashboard's keys in a real browser", { timeout: 60_000 }, () => {
  test("? lists them, g and a letter open a page, and fields take both as text", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.getByRole("link", { name: "Start a run on a new thread" }).waitFor();
    await page.keyboard.press("?");
    await expect.poll(() => page.innerText("dialog")).toContain("next question");
    await page.keyboard.press("g");
    await page.keyboard.press("i");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(page.url()).toContain("#/runs");
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("searchbox").click();
    await page.keyboard.type("g?i");
    expect(await page.getByRole("searchbox").inputValue()).toBe("g?i");
    expect(page.url()).toContain("#/store");
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(wrong).toEqual([]);
  });
});

/** What has the focus: its name and the name of its tag. */
const focused = (page: Page) =>
  page.evaluate<string>(
    "`${document.activeElement.tagName} ${document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText.slice(0, 40)}`.trim()",
  );

describe.skipIf(isMissing)("the focus in a real browser", { timeout: 60_000 }, () => {
  const asks = graph({
    state: { answers: list<unknown>() },
    nodes: { ask: async (_, ctx) => ({ answers: [await ctx.interrupt("What is its name?")] }) },
    edges: { start: "ask" },
  });
  const asked = async (url: string) => {
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asks", input: {} });
    return thread;
  };
  const press = async (page: Page, role: "link" | "button", name: string | RegExp) => {
    await page.getByRole(role, { name, exact: true }).first().focus();
    await page.keyboard.press("Enter");
  };

  test("stays at the place of a deleted row", async () => {
    const { url } = await serve({ graphs: { asks } });
    for (const schedule of ["0 1 * * *", "0 2 * * *", "0 3 * * *"])
      await postJson(`${url}/runs/crons`, { assistant_id: "asks", schedule, input: {} });
    const { page } = await opened(await browser(), `${url}/#/crons`);
    const cards = page.locator(".crons > ul > li");
    await expect.poll(() => cards.count()).toBe(3);
    await cards.nth(1).getByRole("button", { name: "Delete" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => cards.count()).toBe(2);
    await expect.poll(() => focused(page)).toMatch(/^UL /);
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("BUTTON Run now");
  });

  test("goes to the new page with a link of the previous one", async () => {
    const { url } = await serve({ graphs: { asks } });
    const thread = await asked(url);
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await press(page, "link", "thread");
    await page.getByText("What is its name?").first().waitFor();
    await expect.poll(() => focused(page)).not.toMatch(/^BODY/);
    expect(page.url()).toContain(thread);
    await page.locator(".tabs a", { hasText: "Runs" }).focus();
    await page.keyboard.press("Enter");
    await page.locator('.runs a[href*="/runs/"]').first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /run of/ }).waitFor();
    await expect.poll(() => focused(page)).toMatch(/^MAIN/);
    expect(wrong).toEqual([]);
  });

  test("is in the form that takes the place of another one", async () => {
    const { url } = await serve({ graphs: { asks } });
    const { page } = await opened(await browser(), `${url}/#/threads/${await asked(url)}`);
    await press(page, "button", "Start another run instead");
    await expect
      .poll(() => page.locator(".composer:not([hidden])").evaluate((form) => form.matches(":focus-within")))
      .toBe(true);
    await press(page, "button", "Back to the question");
    await expect.poll(() => focused(page)).toBe("TEXTAREA Answer");
  });

  test("stays near a button that is disabled by its last press", async () => {
    const { url } = await serve({ graphs: { asks } });
    const { page } = await opened(await browser(), `${url}/#/threads/${await asked(url)}?tab=history`);
    const earlier = page.getByRole("button", { name: "Earlier" });
    await earlier.focus();
    while (await earlier.isEnabled()) await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("INPUT Checkpoint");
  });
});

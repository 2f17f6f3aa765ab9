import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { seriousFaults } from "./axe.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const BACKGROUND = "getComputedStyle(document.body).backgroundColor";

const SEARCH = '[aria-label="Search the guide and the API"]';

/** Navigates to a fragment as a link does. */
const go = (page: Page, fragment: string) => page.evaluate(`location.hash = ${JSON.stringify(fragment)}`);

const focused = (page: Page) => page.evaluate("document.activeElement.id || document.activeElement.tagName");

describe.skipIf(isMissing)("the documentation in a real browser", { timeout: 60_000 }, () => {
  test("an operation is found, read with its fields, and named by its link; below a prefix, without a key", async () => {
    const { url } = await serve({ mount: "/api", keys: ["sesame"] });
    const { page, wrong } = await opened(await browser(), `${url}/api/docs`);
    await page.fill(SEARCH, "post runs stream");
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
    await page.getByRole("link", { name: "Dashboard", exact: true }).click();
    await page.fill("#secret", "sesame");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Docs" }).click();
    await page.getByRole("link", { name: "API reference" }).click();
    await page.waitForSelector(".operation");
  });

  test("every page of the guide is listed and shown, and every link in them arrives", async () => {
    const { url } = await serve({ mount: "/api", keys: ["sesame"] });
    const { page, wrong } = await opened(await browser(), `${url}/api/docs`);
    await page.waitForSelector("#runs, nav a[href='#runs']");
    const list = page.getByRole("navigation", { name: "Guide" }).getByRole("link");
    const listed = await list.evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
    const files = readdirSync(join(import.meta.dirname, "../../src/guide"));
    expect(listed.toSorted()).toEqual(
      ["#guide/overview", ...files.map((name) => `#guide/${name.replace(/\.md$/, "")}`)].toSorted(),
    );
    const links = new Set<string>();
    const targets = new Set<string>();
    for (const href of listed) {
      await go(page, href);
      await page.waitForSelector(`h1[id="${href.slice(1)}"]`);
      expect(await page.title()).toBe(
        `${await page.locator("nav a[aria-current=page]").innerText()} · Heddle`,
      );
      const ids = await page.$$eval("[id]", (elements) => elements.map(({ id }) => id));
      expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
      for (const id of ids) targets.add(id);
      for (const link of await page.$$eval("article a", (all) => all.map((one) => one.getAttribute("href"))))
        links.add(link ?? "");
    }
    // These links are followed: a page, a section of another page and an operation of the API. For the others it is
    // checked that they have a target.
    for (const one of ["#guide/limits", "#guide/overview/a-client", "#postRunsCancel"]) {
      expect([...links]).toContain(one);
      await go(page, one);
      await page.waitForSelector(`main [id="${one.slice(1)}"]`);
    }
    for (const id of await page.$$eval("main [id]", (elements) => elements.map((element) => element.id)))
      targets.add(id);
    const inside = [...links].filter((link) => !/^https?:/.test(link)).map((link) => link.slice(1));
    expect(inside.filter((id) => !targets.has(id))).toEqual([]);
    expect(wrong).toEqual([]);
  });

  test("a search finds sections of the guide and operations; its results lead there", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/docs#guide/operations/stopping`);
    await page.waitForSelector("nav a[href='#runs']");
    // A deep link scrolls to its target, below the header of the page.
    const top = "document.getElementById('guide/operations/stopping').getBoundingClientRect().top";
    expect(await page.evaluate(top)).toBeGreaterThan(40);
    expect(await page.evaluate(top)).toBeLessThan(120);
    await page.fill(SEARCH, "GARBAGE collection");
    await expect
      .poll(() => page.locator(".found a").allInnerTexts())
      .toEqual(["Operations › As a systemd unit"]);
    expect((await page.locator(".found mark").allInnerTexts()).join(" ")).toBe("garbage collection");
    // Matches in titles come before matches in texts.
    await page.fill(SEARCH, "webhooks");
    await expect
      .poll(() => page.locator(".found a").first().innerText())
      .toBe("Runs, crons and webhooks › Webhooks");
    await page.locator('.operation code:text-is("/webhooks/deliveries")').waitFor();
    await page.locator(".found a").first().click();
    await page.waitForSelector('h2[id="guide/runs/webhooks"]');
    expect(await page.inputValue(SEARCH)).toBe("");
    expect(await page.evaluate("location.hash")).toBe("#guide/runs/webhooks");
    expect(await focused(page)).toBe("guide/runs/webhooks");
    await page.fill(SEARCH, "no such words <b>");
    await page.getByText("No results.").waitFor();
    // When the user empties the field, it keeps the focus.
    await page.fill(SEARCH, "");
    await page.waitForSelector('h2[id="guide/runs/webhooks"]');
    expect(await focused(page)).toBe("INPUT");
    expect(wrong).toEqual([]);
  });

  test("the keyboard reaches pages; going back leads to the page before; unknown pages say so", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/docs`);
    await page.waitForSelector("nav a[href='#runs']");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
    for (let i = 0; i < 20; i++) {
      if ((await page.evaluate("document.activeElement.textContent")) === "Graphs") break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    await page.waitForSelector('h1[id="guide/graphs"]');
    expect(await focused(page)).toBe("guide/graphs");
    await go(page, "postThreads");
    await page.waitForSelector("#postThreads[open]");
    expect(await focused(page)).toBe("SUMMARY");
    await page.goBack();
    await page.waitForSelector('h1[id="guide/graphs"]');
    await go(page, "guide/../%");
    await page.getByText("Page not found").waitFor();
    expect(wrong).toEqual([]);
  });

  test("the guide is there where the API cannot be described", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.route("**/openapi.json", (route) => route.fulfill({ status: 500, body: "{}" }));
    const { page } = await opened(context, `${url}/docs#guide/access`);
    await page.waitForSelector('h1[id="guide/access"]');
    await page.getByRole("link", { name: "API reference" }).click();
    expect(await page.getByRole("alert").innerText()).toContain("openapi.json: 500");
  });

  test.each([
    ["the API reference", "postThreadsThreadIdRuns", ".operation[open] pre", ""],
    ["a page of the guide", "guide/operations", "article table", ""],
    ["a search", "guide/operations", ".found mark", "retry"],
  ])("axe-core finds no serious fault in %s, light and dark", async (_, fragment, there, words) => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/docs#${fragment}`);
    await page.fill(SEARCH, words);
    await page.waitForSelector(there);
    const backgrounds: unknown[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await seriousFaults(page, colorScheme, { colours: colorScheme === "dark" })).toEqual([]);
      backgrounds.push(await page.evaluate(BACKGROUND));
    }
    expect(backgrounds).toEqual(["rgb(245, 245, 242)", "rgb(18, 20, 23)"]);
    expect(wrong).toEqual([]);
  });

  test("the colours that were chosen in the dashboard hold here", async () => {
    const { url } = await serve();
    const context = await browser();
    const { page: dashboard } = await opened(context, `${url}/`);
    await dashboard.emulateMedia({ colorScheme: "light" });
    const button = dashboard.getByRole("button", { name: "Theme" });
    while (!(await button.getAttribute("title"))?.includes("dark")) await button.click();
    const { page } = await opened(context, `${url}/docs`);
    await page.emulateMedia({ colorScheme: "light" });
    await page.waitForSelector("article");
    expect(await page.evaluate(BACKGROUND)).toBe("rgb(18, 20, 23)");
    await page.getByRole("button", { name: "Theme" }).click();
    await expect.poll(() => page.evaluate(BACKGROUND)).toBe("rgb(245, 245, 242)");
  });

  test("on a phone nothing sticks out, and the list of pages is behind a button", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/docs`);
    await page.setViewportSize({ width: 360, height: 740 });
    await page.waitForSelector("nav a[href='#runs']", { state: "attached" });
    const pagesOfGuide = await page.$$eval("#contents a", (all) =>
      all.map((one) => one.getAttribute("href")),
    );
    for (const href of [...pagesOfGuide, "#postThreadsThreadIdRuns"]) {
      await go(page, href ?? "");
      await page.waitForSelector(`main [id="${href?.slice(1)}"]`);
      expect(await page.evaluate("document.documentElement.scrollWidth"), href ?? "").toBeLessThanOrEqual(
        360,
      );
    }
    const contents = page.getByRole("navigation", { name: "Guide" });
    expect(await contents.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Contents" }).click();
    await contents.getByRole("link", { name: "Limits" }).click();
    await page.waitForSelector('h1[id="guide/limits"]');
    await expect.poll(() => contents.isVisible()).toBe(false);
    expect(wrong).toEqual([]);
  });
});

import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
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

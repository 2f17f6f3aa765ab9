import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { newThread } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const message = (page: Page) => page.getByRole("textbox", { name: "Message" });

describe.skipIf(isMissing)("what one has begun to type, in a real browser", { timeout: 60_000 }, () => {
  test("is kept for each thread, over other threads and a reload, until it is sent", async () => {
    const { url } = await serve();
    const [tea, coffee] = [await newThread(url), await newThread(url)];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${tea}`);
    const choose = (name: string) =>
      page.getByLabel("Assistant", { exact: true }).selectOption({ label: name });
    await choose("agent");
    await message(page).fill("tea, with");
    await page.goto(`${url}/#/threads/${coffee}`);
    await choose("agent");
    await expect.poll(() => message(page).inputValue()).toBe("");
    await message(page).fill("coffee");
    await page.goto(`${url}/#/threads/${tea}`);
    await expect.poll(() => message(page).inputValue()).toBe("tea, with");
    await page.reload();
    await expect.poll(() => message(page).inputValue()).toBe("tea, with");
    await message(page).press("Enter");
    await page.locator(".messages").getByText("tea, with").first().waitFor();
    await page.reload();
    await expect.poll(() => message(page).inputValue()).toBe("");
    // What is too long for the storage is not kept, which is told, and costs the other drafts nothing.
    await message(page).fill("x".repeat(200_000));
    await page.goto(`${url}/#/threads/${coffee}`);
    await page.getByRole("dialog").getByText("The input is too large to be kept").waitFor();
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await expect.poll(() => message(page).inputValue()).toBe("coffee");
    expect((await page.evaluate<string>("sessionStorage.getItem('heddle.drafts')")).length).toBeLessThan(
      1_000,
    );
    expect(wrong).toEqual([]);
  });
});

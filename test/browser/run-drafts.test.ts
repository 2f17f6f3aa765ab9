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

  const DAY_MS = 24 * 60 * 60 * 1_000;
  const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  /** Stored drafts of as many threads, oldest first. `daysAgo`: when the draft with this index was changed. */
  const drafts = (count: number, text: string, daysAgo: (index: number) => number) =>
    Array.from({ length: count }, (_, i) => [
      idOf(i),
      { text: `${text}${i}`, input: {}, isJson: false },
      Date.now() - daysAgo(i) * DAY_MS,
    ]);

  test.each([
    ["many", drafts(200, "tea ", () => 1), 1, "because at most 200 are kept"],
    [
      "old",
      drafts(30, "tea ", (i) => (i < 2 ? 31 : 29)),
      2,
      "because it was last changed more than 30 days ago",
    ],
    ["large", drafts(25, "x".repeat(90_000), () => 1), 3, "because at most 2 MB are kept"],
  ] as const)(
    "where there are too %s drafts, the oldest are removed, which is told",
    async (_, before, gone, why) => {
      const { url } = await serve();
      const thread = await newThread(url);
      const context = await browser();
      await context.addInitScript(
        `sessionStorage.getItem("heddle.drafts") ?? sessionStorage.setItem("heddle.drafts", ${JSON.stringify(JSON.stringify(before))})`,
      );
      const { page, wrong } = await opened(context, `${url}/#/threads/${thread}`);
      await page.getByLabel("Assistant", { exact: true }).selectOption({ label: "agent" });
      await message(page).fill("coffee");
      const notice = page.locator(".notices");
      await expect.poll(() => notice.innerText()).toContain(why);
      expect(await notice.innerText()).toContain(`…${idOf(gone - 1).slice(-8)}`);
      const keys = async () =>
        (
          JSON.parse(await page.evaluate<string>("sessionStorage.getItem('heddle.drafts')")) as [string][]
        ).map(([key]) => key);
      expect(await keys()).toEqual([...before.slice(gone).map(([key]) => key), thread]);
      // It stays until it is dismissed, and is not told again.
      await page.getByRole("button", { name: "Dismiss" }).click();
      await message(page).fill("coffee, black");
      expect(await notice.innerText()).toBe("");
      expect(await keys()).toHaveLength(before.length - gone + 1);
      expect(wrong).toEqual([]);
    },
  );
});

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
  const kept = "The browser's storage is full or disabled: the input is kept only until";
  const chooseAgent = (page: Page) =>
    page.getByLabel("Assistant", { exact: true }).selectOption({ label: "agent" });

  test("where the browser's storage is full, the stored drafts stay, and one is told how long the new one is kept", async () => {
    const { url } = await serve();
    const [tea, coffee] = [await newThread(url), await newThread(url)];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${tea}`);
    await chooseAgent(page);
    await message(page).fill("an hour of work");
    await page.goto(`${url}/#/threads/${coffee}`);
    await chooseAgent(page);
    await page.evaluate(`{
      let filler = "x".repeat(1 << 20);
      for (let i = 0; filler.length > 0; i++)
        try { sessionStorage.setItem("filler " + i, filler); } catch { filler = filler.slice(0, filler.length >> 1); }
    }`);
    await message(page).fill("a draft that is longer than the rest of the storage");
    await page.getByText(kept).waitFor();
    // Within the dashboard nothing is lost, so that nothing is asked.
    await page.goto(`${url}/#/threads/${tea}`);
    await expect.poll(() => message(page).inputValue()).toBe("an hour of work");
    await page.goto(`${url}/#/threads/${coffee}`);
    await expect.poll(() => message(page).inputValue()).toMatch("a draft that is longer");
    await page.goto(`${url}/#/threads/${tea}`);
    await page.reload();
    await expect.poll(() => message(page).inputValue()).toBe("an hour of work");
    expect(wrong).toEqual([]);
  });

  test("where the browser's storage is disabled, it is kept until the page is closed, which the browser asks about", async () => {
    const { url } = await serve();
    const [tea, coffee] = [await newThread(url), await newThread(url)];
    const context = await browser();
    await context.addInitScript(
      "for (const name of ['sessionStorage', 'localStorage']) Object.defineProperty(window, name, { get() { throw new DOMException('disabled', 'SecurityError'); } });",
    );
    const { page, wrong } = await opened(context, `${url}/#/threads/${tea}`);
    await chooseAgent(page);
    expect(await page.getByText(kept).count()).toBe(0);
    await message(page).pressSequentially("tea");
    await page.getByText(kept).waitFor();
    await page.goto(`${url}/#/threads/${coffee}`);
    await expect.poll(() => message(page).inputValue()).toBe("");
    const asked = page.waitForEvent("dialog");
    // Never ends: the user stays.
    void page.reload().catch(() => undefined);
    const dialog = await asked;
    expect(dialog.type()).toBe("beforeunload");
    await dialog.dismiss();
    await page.evaluate(`location.hash = "#/threads/${tea}"`);
    await expect.poll(() => message(page).inputValue()).toBe("tea");
    await page.getByText(kept).waitFor();
    expect(wrong).toEqual([]);
  });

  test("the form is shown although the storage contains entries that are no drafts, and a draft beside them is kept", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const entries = [
      null,
      5,
      ["a"],
      [idOf(1), null],
      [thread, { text: 5, input: {}, isJson: false, json: 7 }, 1],
      [idOf(2), { text: "tea", input: {}, isJson: false }, Date.now()],
    ];
    const context = await browser();
    await context.addInitScript(
      `sessionStorage.setItem("heddle.drafts", ${JSON.stringify(JSON.stringify(entries))})`,
    );
    const { page, wrong } = await opened(context, `${url}/#/threads/${thread}`);
    await chooseAgent(page);
    await message(page).fill("coffee");
    const stored = JSON.parse(await page.evaluate<string>("sessionStorage.getItem('heddle.drafts')")) as [
      string,
      { text: string },
    ][];
    expect(stored.map(([key, { text }]) => [key, text])).toEqual([
      [idOf(2), "tea"],
      [thread, "coffee"],
    ]);
    expect(wrong).toEqual([]);
  });
});

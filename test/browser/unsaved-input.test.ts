import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const question = graph({
  state: { answers: list<unknown>() },
  nodes: { ask: async (_, ctx) => ({ answers: [await ctx.interrupt("What is its name?")] }) },
  edges: { start: "ask" },
});
/** Two graphs that share the field `pieces` of their input. */
const order = graph({
  state: { pieces: z.number().optional(), note: z.string().optional() },
  nodes: { pack: async () => ({}) },
  edges: { start: "pack" },
});
const parcel = graph({
  state: { pieces: z.number().optional(), weight: z.number().optional() },
  nodes: { pack: async () => ({}) },
  edges: { start: "pack" },
});

const jsonField = (page: Page) => page.getByLabel("Input, as JSON");
const answer = (page: Page) => page.getByRole("textbox", { name: "Answer" });
const confirmation = (page: Page) => page.getByRole("dialog", { name: "Leave without sending?" });

/** The page of a thread that waits for an answer, opened from the list of threads. */
async function openedQuestion() {
  const { url } = await serve({ graphs: { question } });
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "question", input: {} });
  const { page, wrong } = await opened(await browser(), `${url}/#/threads`);
  await page.locator(`a[href*="${thread}"]`).first().click();
  await answer(page).waitFor();
  return { page, wrong, url, thread };
}

describe.skipIf(isMissing)("unsaved input, in a real browser", { timeout: 60_000 }, () => {
  test("of a new thread is kept over links, the browser's Back and a reload, until it is sent", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    await page.getByLabel("pieces").fill("12");
    await page.getByLabel("note").fill("a gift");
    await page.getByRole("link", { name: "Inbox", exact: true }).click();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    await page.goBack();
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("a gift");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await jsonField(page).fill('{"pieces": 13, "note": ');
    await page.reload();
    await expect.poll(() => jsonField(page).inputValue()).toBe('{"pieces": 13, "note": ');
    // The text that is restored is still invalid: it is not sent in place of what was valid before.
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByText("Invalid JSON").waitFor();
    expect(page.url()).toContain("/#/new");
    await jsonField(page).fill('{"pieces": 13, "note": "for you"}');
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector('.state:has-text("for you")');
    await page.goto(`${url}/#/new?graph=order`);
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("");
    expect(wrong).toEqual([]);
  });

  test("stays when another assistant is chosen: as JSON all of it, in fields what the other has a field for", async () => {
    const { url } = await serve({ graphs: { order, parcel } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    const choose = (label: string) => page.getByLabel("Assistant", { exact: true }).selectOption({ label });
    await page.getByLabel("pieces").fill("12");
    await page.getByLabel("note").fill("a gift");
    await choose("parcel");
    await page.getByLabel("weight").waitFor();
    expect(await page.getByLabel("pieces").inputValue()).toBe("12");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    expect(JSON.parse(await jsonField(page).inputValue())).toEqual({ pieces: 12 });
    await jsonField(page).fill('{"pieces": 7, "weight": 3}');
    await choose("order");
    await page.locator('option:checked:has-text("order")').first().waitFor({ state: "attached" });
    expect(await jsonField(page).inputValue()).toBe('{"pieces": 7, "weight": 3}');
    expect(wrong).toEqual([]);
  });

  test("asks before it is lost where it is too large to be kept, and as metadata of a thread", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("link", { name: "Threads", exact: true }).click();
    await page.locator('a[href="#/new"]').first().click();
    await page.getByRole("textbox", { name: "Message" }).fill("x".repeat(200_000));
    await page.goBack();
    await confirmation(page).getByText("too large to be kept").waitFor();
    await confirmation(page).getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("textbox", { name: "Message" }).fill("");
    await page.getByText("Metadata of the thread").click();
    await page.getByLabel("Metadata, as JSON").fill('{"title": "');
    await page.goBack();
    const asked = page.getByRole("dialog", { name: "Leave without saving?" });
    await asked.getByText("metadata of the thread will be lost").waitFor();
    await asked.getByRole("button", { name: "Leave", exact: true }).click();
    await expect.poll(() => page.url()).toMatch(/#\/threads$|#\/$/);
    expect(wrong).toEqual([]);
  });

  test("of an answer asks at the browser's Back and Forward, and at an address that is entered", async () => {
    const { page, wrong, url, thread } = await openedQuestion();
    const at = page.url();
    await answer(page).fill("Tom");
    await page.goBack();
    await confirmation(page).waitFor();
    expect(page.url()).toBe(at);
    await confirmation(page).getByRole("button", { name: "Cancel" }).click();
    expect(await answer(page).inputValue()).toBe("Tom");
    await page.evaluate("location.hash = '#/system'");
    await confirmation(page).waitFor();
    await expect.poll(() => page.url()).toBe(at);
    await confirmation(page).getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { name: "System" }).waitFor();
    // The browser's history is as if nothing had been asked.
    await page.goBack();
    await answer(page).waitFor();
    await answer(page).fill("Tim");
    await page.goForward();
    await confirmation(page).getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { name: "System" }).waitFor();
    await page.goBack();
    await answer(page).waitFor();
    await page.goBack();
    await expect.poll(() => page.url()).toBe(`${url}/#/threads`);
    // Nothing is asked once the answer has been sent.
    await page.goForward();
    await answer(page).fill("Tam");
    await answer(page).press("Enter");
    await page.waitForSelector('.state:has-text("Tam")');
    await page.goBack();
    await expect.poll(() => page.url()).toBe(`${url}/#/threads`);
    const state = (await (await get(`${url}/threads/${thread}/state`)).json()) as unknown;
    expect(state).toMatchObject({ values: { answers: ["Tam"] } });
    expect(wrong).toEqual([]);
  });

  test("of an edited state asks at the browser's Back", async () => {
    const { page, wrong } = await openedQuestion();
    await page.click('.tabs a:has-text("History")');
    await page.getByRole("button", { name: "Edit state" }).click();
    const editor = page.getByRole("dialog", { name: "Edit state" });
    await editor
      .getByLabel(/as JSON/)
      .first()
      .fill('{"answers": ["Tom"]}');
    await page.goBack();
    const asked = page.getByRole("dialog", { name: "Leave without saving?" });
    await asked.getByRole("button", { name: "Cancel" }).click();
    expect(
      await editor
        .getByLabel(/as JSON/)
        .first()
        .inputValue(),
    ).toBe('{"answers": ["Tom"]}');
    await page.goBack();
    await asked.getByRole("button", { name: "Leave", exact: true }).click();
    await answer(page).waitFor();
    expect(wrong).toEqual([]);
  });

  test("of an answer stays when another way to answer is tried, and behind the form for another run", async () => {
    const { page, wrong } = await openedQuestion();
    await answer(page).fill("Tom");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    const send = page.getByRole("button", { name: "Send answer" });
    expect(await send.isDisabled()).toBe(true);
    const json = page.getByLabel("Answer, as JSON");
    await json.fill('"Tim"');
    await page.getByRole("button", { name: "Text", exact: true }).click();
    expect(await answer(page).inputValue()).toBe("Tom");
    await page.getByRole("button", { name: "Start another run instead" }).click();
    expect(await answer(page).isVisible()).toBe(false);
    await page.getByRole("button", { name: "Back to the question" }).click();
    expect(await answer(page).inputValue()).toBe("Tom");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    expect(await json.inputValue()).toBe('"Tim"');
    await send.click();
    await page.waitForSelector('.state:has-text("Tim")');
    expect(wrong).toEqual([]);
  });
});

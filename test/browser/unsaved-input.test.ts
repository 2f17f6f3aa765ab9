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

  test("as JSON that is not valid is kept behind the fields, which say so, over a reload and when they are sent, until it is sent itself or discarded", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    const json = page.getByRole("button", { name: "JSON", exact: true });
    const broken = '{"pieces": 13, "note": "for';
    const note = page.getByText("The text that you typed as JSON is not valid");
    await page.getByLabel("note").fill("a gift");
    await json.click();
    await jsonField(page).fill(broken);
    expect(await note.count()).toBe(0);
    await json.click();
    await note.waitFor();
    await page.getByLabel("pieces").fill("12");
    await page.reload();
    await note.waitFor();
    expect(await page.getByLabel("pieces").inputValue()).toBe("12");
    await page.getByRole("button", { name: "Back to the JSON text" }).click();
    await expect.poll(() => jsonField(page).inputValue()).toBe(broken);
    await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Input, as JSON");
    await json.click();
    await page.getByRole("button", { name: "Discard the JSON text" }).click();
    expect(await note.count()).toBe(0);
    await json.click();
    expect(JSON.parse(await jsonField(page).inputValue())).toEqual({ note: "a gift", pieces: 12 });
    // A list is JSON, but no input.
    await jsonField(page).fill("[1]");
    await json.click();
    await page.getByText("The text that you typed as JSON is not an object").waitFor();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector('.state:has-text("a gift")');
    await page.goto(`${url}/#/new?graph=order`);
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("");
    // Only the fields were sent.
    await page.getByRole("button", { name: "Back to the JSON text" }).click();
    expect(await jsonField(page).inputValue()).toBe("[1]");
    await jsonField(page).fill('{"note": "for you"}');
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector('.state:has-text("for you")');
    await page.goto(`${url}/#/new?graph=order`);
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("");
    expect(await page.getByRole("button", { name: "Back to the JSON text" }).count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("as JSON that is not valid stays when the fields of a thread's form are sent", async () => {
    const { url } = await serve({ graphs: { order } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "order", input: { note: "a gift" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.getByRole("button", { name: "▸ Input" }).click();
    const json = page.getByRole("button", { name: "JSON", exact: true });
    await json.click();
    await jsonField(page).fill('{"note": "for');
    await json.click();
    await page.getByLabel("pieces").fill("12");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.waitForSelector('.state:has-text("12")');
    await page.getByRole("button", { name: "▸ Input" }).waitFor();
    await page.getByRole("button", { name: "Back to the JSON text" }).click();
    expect(await jsonField(page).inputValue()).toBe('{"note": "for');
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

  test("of an answer that could not be sent asks too", async () => {
    const { page } = await openedQuestion();
    await answer(page).fill("Tom");
    await page.route("**/runs", (route) => route.abort());
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByText("The server cannot be reached.").waitFor();
    await page.getByRole("link", { name: "System", exact: true }).click();
    await confirmation(page).waitFor();
    expect(await answer(page).inputValue()).toBe("Tom");
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

  test("asks once where two forms have some, and at a keyboard shortcut too", async () => {
    const { page, wrong, url } = await openedQuestion();
    const at = page.url();
    await answer(page).fill("Tom");
    await page.getByRole("heading", { level: 2 }).first().click();
    await page.keyboard.press("g");
    await page.keyboard.press("y");
    await confirmation(page).waitFor();
    await expect.poll(() => page.url()).toBe(at);
    await confirmation(page).getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { name: "System" }).waitFor();
    await page.goto(`${url}/#/new`);
    await page.getByRole("textbox", { name: "Message" }).fill("x".repeat(200_000));
    await page.getByText("Metadata of the thread").click();
    await page.getByLabel("Metadata, as JSON").fill('{"title": "tea"}');
    await page.getByRole("link", { name: "System", exact: true }).click();
    await page.getByRole("button", { name: "Leave", exact: true }).waitFor();
    expect(await page.locator("dialog[open]").count()).toBe(1);
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { name: "System" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("in dialogs asks when they are closed and when the page is left: title and metadata, an item of the store", async () => {
    const { page, wrong, url } = await openedQuestion();
    const leave = page.getByRole("dialog", { name: "Leave without saving?" });
    const close = page.getByRole("dialog", { name: "Close without saving?" });
    const title = page.getByRole("textbox", { name: "Title", exact: true });
    await page.getByRole("button", { name: "Details" }).click();
    await title.fill("tea");
    await page.goBack();
    await leave.getByRole("button", { name: "Cancel" }).click();
    await page.keyboard.press("Escape");
    await close.getByRole("button", { name: "Keep editing" }).click();
    expect(await title.inputValue()).toBe("tea");
    await page.keyboard.press("Escape");
    await close.getByRole("button", { name: "Discard" }).click();
    await page.goto(`${url}/#/store`);
    await page.getByRole("button", { name: "Create item" }).first().click();
    await page.getByLabel("Key", { exact: true }).fill("one");
    await page.goBack();
    await leave.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByLabel("Key", { exact: true }).inputValue()).toBe("one");
    expect(wrong).toEqual([]);
  });

  test("as options of a run asks before it is lost", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("Context, as JSON").fill('{"tone": "dry"}');
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Inbox", exact: true }).click();
    await confirmation(page).getByText("The options of the run will be lost.").waitFor();
    expect(wrong).toEqual([]);
  });

  test("is not shown to the user who signs in next, nor is the first user's search", async () => {
    const [alice, bob] = ["key-of-alice", "key-of-bob"];
    const { url } = await serve({ graphs: { order }, keys: [`alice:${alice}`, `bob:${bob}`] });
    const context = await browser();
    const page = await context.newPage();
    await page.goto(`${url}/#/new?graph=order`);
    const signIn = async (key: string) => {
      await page.getByLabel("API key or user token", { exact: true }).fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await signIn(alice);
    await page.getByText("API key key…").waitFor();
    await page.getByLabel("note").fill("a secret of Alice");
    await page.fill('input[type="search"]', "her search");
    await page.reload();
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("a secret of Alice");
    // The key is no longer valid when the page is loaded again.
    await page.evaluate("sessionStorage.setItem('heddle.key', 'another')");
    await page.reload();
    await signIn(bob);
    await page.getByLabel("note").waitFor();
    expect(await page.getByLabel("note").inputValue()).toBe("");
    expect(await page.inputValue('input[type="search"]')).toBe("");
  });

  test("asks before the user signs out, and the user stays signed in who stays", async () => {
    const alice = "key-of-alice";
    const { url } = await serve({ graphs: { order }, keys: [`alice:${alice}`] });
    const page = await (await browser()).newPage();
    await page.goto(`${url}/#/new?graph=order`);
    await page.getByLabel("API key or user token", { exact: true }).fill(alice);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("note").fill("x".repeat(200_000));
    await page.getByRole("button", { name: "Sign out" }).click();
    const asked = page.getByRole("dialog", { name: "Sign out?" });
    await asked.getByRole("button", { name: "Cancel" }).click();
    expect(await page.evaluate("sessionStorage.getItem('heddle.key')")).toBe(alice);
    await page.getByRole("button", { name: "Sign out" }).click();
    await asked.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("API key or user token required").waitFor();
    expect(await page.evaluate("sessionStorage.getItem('heddle.key')")).toBeNull();
  });

  test.each(["blocked", "full"])("is no error where the browser's storage is %s", async (state) => {
    const { url } = await serve({ graphs: { order } });
    const context = await browser();
    await context.addInitScript(
      state === "blocked"
        ? `for (const name of ["sessionStorage", "localStorage"])
             Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });`
        : `Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };`,
    );
    const { page, wrong } = await opened(context, `${url}/#/new?graph=order`);
    await page.getByLabel("note").fill("a gift");
    await page.fill('input[type="search"]', "tea");
    await page.getByText("No matching threads").waitFor();
    await page.getByRole("button", { name: /theme/i }).click();
    await page.getByRole("link", { name: "Inbox", exact: true }).click();
    // The input is kept in memory. Nothing is lost, so that nothing is asked.
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    await page.goBack();
    await expect.poll(() => page.getByLabel("note").inputValue()).toBe("a gift");
    for (const path of ["docs", "inspector"]) await page.goto(`${url}/${path}`);
    expect(wrong).toEqual([]);
  });
});

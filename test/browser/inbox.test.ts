import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { Page, Response, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, value } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { serve } from "../e2e/support/server.ts";
import { latch } from "../e2e/support/latches.ts";
import { get, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const yesOrNo = z.object({ ok: z.boolean() });

/** Asks about `about`, and then a second question. */
const native = graph({
  state: { about: value(""), answers: list<unknown>() },
  nodes: {
    first: async ({ about }, ctx) => ({
      answers: [await ctx.interrupt(`Send ${about}?`, { schema: yesOrNo })],
    }),
    again: async ({ about }, ctx) => ({
      answers: [await ctx.interrupt(`Send ${about} again?`, { schema: yesOrNo })],
    }),
  },
  edges: { start: "first", first: "again" },
});

const State = Annotation.Root({ about: Annotation<string>, answer: Annotation<unknown> });
const hosted = new StateGraph(State)
  .addNode("ask", ({ about }) => ({ answer: interrupt({ question: `Book ${about}?` }) as unknown }))
  .addEdge(START, "ask")
  .compile();

async function started() {
  const { url } = await serve({ graphs: { native }, langGraphs: await served({ hosted }) });
  const ask = async (assistant_id: string, about: string): Promise<string> => {
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, {
      metadata: { title: about },
    });
    await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id, input: { about } });
    return thread_id;
  };
  const valuesOf = async (thread: string): Promise<Record<string, unknown>> =>
    ((await (await get(`${url}/threads/${thread}/state`)).json()) as { values: Record<string, unknown> })
      .values;
  return { url, ask, valuesOf };
}

const questions = (page: Page): Promise<string[]> =>
  page.locator(".questions .summary .text").allInnerTexts();
const send = (page: Page) => page.getByRole("button", { name: "Send answer" });

describe.skipIf(isMissing)("the inbox in a real browser", { timeout: 60_000 }, () => {
  test("a page of an address that is beyond the last one counts no questions that are not there", async () => {
    const { url, ask } = await started();
    await ask("native", "tea");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox?page=999`);
    await page.getByText("No more questions").waitFor();
    expect(await page.innerText("h1")).toBe("Inbox 1");
    await page.getByRole("link", { name: "First page" }).click();
    await expect.poll(() => questions(page)).toEqual(["Send tea?"]);
    await page.goto(`${url}/#/inbox?page=1e15`);
    await page.getByText("No more questions").waitFor();
    expect(wrong).toEqual([]);
  });

  test("shows the questions of all threads, the longest wait first, and answers them in place, by keys", async () => {
    const { url, ask, valuesOf } = await started();
    // This thread is created before the others, and asks after them.
    const { thread_id: late } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const tea = await ask("native", "tea");
    const flight = await ask("hosted", "a flight");
    await postJson(`${url}/threads/${late}/runs/wait`, {
      assistant_id: "hosted",
      input: { about: "a room" },
    });
    // A question waits since it was asked, whatever happens to the thread's metadata.
    await fetch(`${url}/threads/${tea}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ metadata: { seen: true } }),
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await expect.poll(() => questions(page)).toEqual(["Send tea?", "Book a flight?", "Book a room?"]);
    expect(await page.innerText("h1")).toBe("Inbox 3");

    await page.getByRole("radio", { name: "yes" }).check();
    await send(page).click();
    await expect.poll(() => valuesOf(tea)).toMatchObject({ answers: [{ ok: true }] });
    // The next question opens, and the second question of this thread is added at the end.
    await page.getByRole("button", { name: "Text" }).waitFor();
    await expect.poll(() => questions(page)).toEqual(["Book a flight?", "Book a room?", "Send tea again?"]);
    await page.getByRole("button", { name: "Text" }).click();
    await page.getByLabel("Answer", { exact: true }).fill("by train");
    await send(page).click();
    await expect.poll(() => valuesOf(flight)).toMatchObject({ answer: "by train" });

    await ask("hosted", "a table");
    await expect.poll(() => questions(page)).toEqual(["Book a room?", "Send tea again?", "Book a table?"]);
    expect(wrong).toEqual([]);
  });

  test("the oldest question is open at first sight, with the focus in its field; keys send it and open the next", async () => {
    const { url, ask, valuesOf } = await started();
    const flight = await ask("hosted", "a flight");
    const room = await ask("hosted", "a room");
    const tea = await ask("native", "tea");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const focused = () => page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.type");
    const open = () => page.locator(".questions .open .summary .text").innerText();
    await expect.poll(focused).toBe("Answer");
    expect(await open()).toBe("Book a flight?");
    await page.keyboard.type("by train");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("at noon");
    await page.keyboard.press("Enter");
    await expect.poll(() => valuesOf(flight)).toMatchObject({ answer: "by train\nat noon" });

    await expect.poll(open).toBe("Book a room?");
    await expect.poll(focused).toBe("Answer");
    await page.keyboard.type("j");
    expect(await open()).toBe("Book a room?");
    // The first Escape leaves the field, so that the keys of the list work; the second one closes the question.
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await expect.poll(open).toBe("Send tea?");
    await page.getByRole("radio", { name: "yes" }).check();
    await page.keyboard.press("Control+Enter");
    await expect.poll(() => valuesOf(tea)).toMatchObject({ answers: [{ ok: true }] });
    await expect.poll(open).toBe("Book a room?");
    await expect.poll(focused).toBe("Answer");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".questions .open").count()).toBe(0);
    expect(await valuesOf(room)).not.toHaveProperty("answer");
    expect(wrong).toEqual([]);
  });

  test("the hint names all shortcuts that work there, and fits beside the heading", async () => {
    const { url, ask } = await started();
    await ask("hosted", "a flight");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const hint = page.locator(".inbox .keys");
    await hint.waitFor();
    const told = (await hint.innerText()).split(" · ");
    expect(told).toEqual([
      "Enter sends a text",
      "Ctrl Enter sends any answer",
      "Shift Enter starts a new line",
      "Esc leaves the field, then closes the question",
      "j ↓ next",
      "k ↑ previous",
      "? all shortcuts",
    ]);
    // Those that the list of all shortcuts has for text fields and the inbox.
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    const listed = await page
      .getByRole("dialog")
      .locator('section:has(h3:text-is("Inbox")) kbd, section:has(h3:text-is("Text fields")) kbd')
      .allInnerTexts();
    expect(listed).toHaveLength(6);
    for (const key of listed)
      expect(
        told.some((text) => text.startsWith(`${key} `)),
        key,
      ).toBe(true);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 900, height: 700 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(900);
    expect(wrong).toEqual([]);
  });

  test("the older question opens next, not the one that the answer led to, which is listed before the answer is confirmed", async () => {
    const { url, ask } = await started();
    await ask("hosted", "a room");
    await ask("native", "tea");
    const context = await browser();
    const { page, wrong } = await opened(context, `${url}/#/inbox`);
    const open = () => page.locator(".questions .open .summary .text").innerText();
    await expect.poll(open).toBe("Book a room?");
    await page.locator(".questions .summary", { hasText: "Send tea?" }).click();
    await page.getByRole("radio", { name: "yes" }).check();
    await context.route("**/threads/*/runs", async (route) => {
      const response = await route.fetch();
      await page.getByText("Send tea again?").waitFor();
      await route.fulfill({ response });
    });
    await send(page).click();
    await page.getByText("Send tea again?").waitFor();
    await expect.poll(open).toBe("Book a room?");
    expect(wrong).toEqual([]);
  });

  test("a question that opened by itself, and that somebody else answers, goes without a word", async () => {
    const { url, ask } = await started();
    const thread = await ask("hosted", "a flight");
    await ask("hosted", "a room");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByLabel("Answer", { exact: true }).waitFor();
    await postJson(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "hosted",
      command: { resume: "no" },
    });
    await expect.poll(() => questions(page)).toEqual(["Book a room?"]);
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("a question that names its answers has a button for each", async () => {
    const choose = graph({
      state: { answers: list<unknown>() },
      nodes: {
        ask: async (_, ctx) => ({
          answers: [await ctx.interrupt({ question: "Which plan?", options: ["small", "large"] })],
        }),
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { choose } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "choose", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("group", { name: "Answer" }).getByRole("button", { name: "large" }).click();
    await page.keyboard.press("Control+Enter");
    await page.getByText("No questions waiting").waitFor();
    const state = (await (await get(`${url}/threads/${thread_id}/state`)).json()) as { values: object };
    expect(state.values).toEqual({ answers: ["large"] });
    expect(wrong).toEqual([]);
  });

  test("names the graph that asks; a question without a text has the first text in it as its title", async () => {
    const drafts = graph({
      state: { answers: list<unknown>() },
      nodes: {
        review: async (_, ctx) => ({
          answers: [await ctx.interrupt({ pages: 2, draft: "Draft 1 about tea", by: "Ada" })],
        }),
      },
      edges: { start: "review" },
    });
    const { url } = await serve({ graphs: { drafts } });
    for (const metadata of [{ title: "tea" }, {}]) {
      const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
      await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "drafts", input: {} });
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await expect
      .poll(() => questions(page))
      .toEqual(["draft: Draft 1 about tea", "draft: Draft 1 about tea"]);
    expect(await page.locator(".questions .from").allInnerTexts()).toEqual([
      expect.stringMatching(/^tea · drafts · thread …/),
      expect.stringMatching(/^drafts · thread …/),
    ]);
    expect(wrong).toEqual([]);
  });

  test("a second answer is refused: its giver reads that the question was answered, and no other question gets it", async () => {
    const { url, ask, valuesOf } = await started();
    const tea = await ask("native", "tea");
    await ask("native", "coffee");
    const [ann, bob] = [
      await opened(await browser(), `${url}/#/inbox`),
      await opened(await browser(), `${url}/#/inbox`),
    ];
    for (const { page } of [ann, bob]) {
      await page.getByRole("radio", { name: "yes" }).waitFor();
    }
    // Bob's page reads nothing from now on: he answers the question that he still sees.
    await bob.page.route(/threads\/(search|count)/, () => undefined);
    await bob.page.getByRole("radio", { name: "no" }).check();
    await ann.page.getByRole("radio", { name: "yes" }).check();
    await send(ann.page).click();
    await expect.poll(() => questions(ann.page)).toContain("Send tea again?");
    await send(bob.page).click();
    await bob.page.getByText("Somebody else has already answered this question").waitFor();
    expect(await send(bob.page).isDisabled()).toBe(true);
    expect(await valuesOf(tea)).toMatchObject({ answers: [{ ok: true }] });
    expect(ann.wrong).toEqual([]);
  });

  test("says whether an answer was stored whose response was lost, as soon as the server responds", async () => {
    const { url, ask, valuesOf } = await started();
    const thread = await ask("native", "tea");
    const { page } = await opened(await browser(), `${url}/#/inbox`);
    const yes = page.getByRole("radio", { name: "yes" });
    const alert = page.getByRole("alert");
    await yes.check();
    // The request does not reach the server, and neither does the read of what became of it.
    await page.route("**/runs", (route) => route.abort(), { times: 1 });
    const reads = latch();
    await page.route("**/runs?*limit=20*", async (route) => {
      await reads.passed;
      await route.continue();
    });
    await send(page).click();
    await alert.getByText("It is not known yet whether the answer was stored.").waitFor();
    reads.pass();
    await alert.getByText("the answer was not stored: the question is still pending").waitFor();
    expect(await valuesOf(thread)).toMatchObject({ answers: [] });
    // The answer is still unsent.
    await page.getByRole("link", { name: "Threads", exact: true }).click();
    await page.getByRole("dialog").getByText("Leave without sending?").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    // The request reaches the server, and its response gets lost.
    const loseResponse = async (route: Route) => {
      await route.fetch();
      await route.abort();
    };
    await page.route("**/runs", loseResponse, { times: 1 });
    await send(page).click();
    await alert.getByText("The answer was stored. Only the server's response was lost.").waitFor();
    await expect.poll(() => valuesOf(thread)).toMatchObject({ answers: [{ ok: true }] });
    await page.getByRole("button", { name: "Next question" }).click();
    await expect.poll(() => questions(page)).toEqual(["Send tea again?"]);
  });

  test("a question that somebody else answers while its form is open stays there, and says so", async () => {
    const { url, ask } = await started();
    const thread = await ask("hosted", "a flight");
    await ask("hosted", "a room");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Text" }).click();
    await page.getByLabel("Answer", { exact: true }).fill("half an ans");
    const command = { resume: "no" };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "hosted", command });
    await page.getByText("Somebody else has already answered this question").waitFor();
    expect(await page.getByLabel("Answer", { exact: true }).inputValue()).toBe("half an ans");
    expect(await questions(page)).toEqual(["Book a flight?", "Book a room?"]);
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Book a flight?" }).click();
    await expect.poll(() => questions(page)).toEqual(["Book a room?"]);
    expect(wrong).toEqual([]);
  });

  test("an answer that is not sent stays while another question is open; a link to another page asks first", async () => {
    const { url, ask } = await started();
    await ask("hosted", "a flight");
    await ask("hosted", "a room");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Text" }).click();
    const answer = page.getByLabel("Answer", { exact: true });
    await answer.fill("half an ans");
    await page.getByRole("button", { name: "Book a room?" }).click();
    await page.getByText("Unsent answer").waitFor();
    await page.getByRole("button", { name: "Book a flight?" }).click();
    await expect.poll(() => answer.and(page.locator(":visible")).inputValue()).toBe("half an ans");
    await page.getByRole("link", { name: "System" }).click();
    const question = page.getByRole("dialog", { name: "Leave without sending?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    expect(await answer.and(page.locator(":visible")).inputValue()).toBe("half an ans");
    await page.getByRole("link", { name: "System" }).click();
    await question.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "System" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("who is told that somebody else has answered goes on to the next question by a button", async () => {
    const { url, ask } = await started();
    const thread = await ask("hosted", "a flight");
    await ask("hosted", "a room");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Text" }).click();
    await page.getByLabel("Answer", { exact: true }).fill("half an ans");
    await postJson(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "hosted",
      command: { resume: "no" },
    });
    await page.getByRole("button", { name: "Next question" }).click();
    await expect.poll(() => questions(page)).toEqual(["Book a room?"]);
    expect(await page.getByRole("button", { name: "Book a room?" }).getAttribute("aria-expanded")).toBe(
      "true",
    );
    expect(wrong).toEqual([]);
  });

  test("says that the thread was deleted while its question was open", async () => {
    const { url, ask } = await started();
    const thread = await ask("hosted", "a flight");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Text" }).click();
    await page.getByLabel("Answer", { exact: true }).fill("half an ans");
    await fetch(`${url}/threads/${thread}`, { method: "DELETE" });
    await page.getByText("The thread was deleted.").waitFor();
    await page.getByRole("button", { name: "Next question" }).click();
    await page.getByText("No questions waiting").waitFor();
    expect(wrong.filter((line) => !line.includes("404"))).toEqual([]);
  });

  test("does not name the user of an earlier answer where nobody has answered", async () => {
    const { url, ask } = await started();
    const thread = await ask("native", "tea");
    await postJson(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "native",
      command: { resume: { ok: true } },
      config: { configurable: { user_id: "carol" } },
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Send tea again?" }).waitFor();
    await page.getByRole("radio", { name: "yes" }).check();
    // The thread moves past the second question without an answer.
    await postJson(`${url}/threads/${thread}/state`, { values: {}, as_node: "again" });
    await page.getByText("the thread has continued without this answer").waitFor();
    expect(await page.getByRole("alert").innerText()).not.toContain("carol");
    expect(wrong).toEqual([]);
  });

  test("a question without a schema opens with the input that was chosen last for such a question", async () => {
    const { url, ask, valuesOf } = await started();
    await ask("hosted", "a flight");
    const room = await ask("hosted", "a room");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "Yes / no" }).click();
    await page.getByRole("radio", { name: "yes" }).check();
    await send(page).click();
    await expect.poll(() => questions(page)).toEqual(["Book a room?"]);
    await page.getByRole("radio", { name: "no" }).check();
    await send(page).click();
    await expect.poll(() => valuesOf(room)).toMatchObject({ answer: false });
    expect(wrong).toEqual([]);
  });

  test("an answer that is not sent is not lost by a reload without a question", async () => {
    const { url, ask } = await started();
    await ask("native", "tea");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "JSON" }).click();
    await page.getByLabel("Answer, as JSON").pressSequentially('{"ok"');
    const asked = page.waitForEvent("dialog");
    // Never ends: the user stays.
    void page.reload().catch(() => undefined);
    const dialog = await asked;
    expect(dialog.type()).toBe("beforeunload");
    await dialog.dismiss();
    expect(await page.getByLabel("Answer, as JSON").inputValue()).toBe('{"ok"');
    expect(wrong).toEqual([]);
  });

  test("an answer that the schema refuses leaves the question open, with what was entered and the reason", async () => {
    const { url, ask, valuesOf } = await started();
    const tea = await ask("native", "tea");
    const coffee = await ask("native", "coffee");
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const refused = page.getByRole("alert").getByText("expected boolean, received string");
    await page.getByRole("button", { name: "JSON" }).click();
    await page.getByLabel("Answer, as JSON").fill('{"ok": "maybe"}');
    await send(page).click();
    await refused.waitFor();
    expect(await questions(page)).toEqual(["Send tea?", "Send coffee?"]);
    await page.getByLabel("Answer, as JSON").fill('{"ok": true}');
    await send(page).click();
    await expect.poll(() => valuesOf(tea)).toMatchObject({ answers: [{ ok: true }] });
    await page.getByRole("button", { name: "Send coffee?", expanded: true }).waitFor();
    expect(await refused.count()).toBe(0);

    // One that another client gave is told as well.
    await page.getByRole("button", { name: "Send coffee?" }).click();
    const [question] = (await (await get(`${url}/threads/${coffee}/interrupts`)).json()) as { id: string }[];
    const command = { resume: { [question?.id ?? ""]: { ok: "maybe" } } };
    await postJson(`${url}/threads/${coffee}/runs/wait`, { assistant_id: "native", command });
    await page.getByRole("button", { name: "Send coffee?" }).click();
    await refused.waitFor();
    expect(wrong).toEqual([]);
  });

  test("an answer that is refused late is told as sent; then its question is there again, with the reason", async () => {
    const again = latch();
    let tries = 0;
    const slow = graph({
      state: { answers: list<unknown>() },
      nodes: {
        ask: async (_, ctx) => {
          if (tries++ > 0) await again.passed;
          return { answers: [await ctx.interrupt("Send milk?", { schema: yesOrNo })] };
        },
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { slow } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "slow", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("button", { name: "JSON" }).click();
    await page.getByLabel("Answer, as JSON").fill('{"ok": "maybe"}');
    await send(page).click();
    await page.getByText("Answer sent.").waitFor();
    await page.getByText("No questions waiting").waitFor();
    again.pass();
    await page.getByRole("button", { name: "Send milk?" }).click();
    await page.getByRole("alert").getByText("expected boolean, received string").waitFor();
    expect(wrong).toEqual([]);
  });

  test("of many, one page is read at a time", async () => {
    const { url, ask } = await started();
    for (let i = 1; i <= 60; i++) await ask("hosted", `room ${i}`);
    const context = await browser();
    const sizes: Promise<number>[] = [];
    const sizeOf = async (response: Response) => ((await response.json()) as unknown[]).length;
    const note = (response: Response) => {
      if (response.url().endsWith("threads/search")) sizes.push(sizeOf(response));
    };
    context.on("response", note);
    const { page, wrong } = await opened(context, `${url}/#/inbox`);
    await page.getByText("page 1 of 3").waitFor();
    expect(await questions(page)).toHaveLength(25);
    await page.getByRole("button", { name: "Next", exact: true }).click();
    await page.getByText("page 2 of 3").waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("H1");
    await page.getByRole("button", { name: "Next", exact: true }).click();
    await expect
      .poll(() => questions(page))
      .toEqual(Array.from({ length: 10 }, (_, i) => `Book room ${i + 51}?`));
    // A response that comes later could not be read: its page closes.
    context.off("response", note);
    expect(Math.max(...(await Promise.all(sizes)))).toBe(25);
    expect(wrong).toEqual([]);
  });
  test("after an answer, the notice has a link to its run, and says if the run has already failed", async () => {
    const picky = graph({
      state: { answers: list<unknown>() },
      nodes: {
        ask: async (_, ctx) => {
          const answer = await ctx.interrupt("Which size?");
          if (answer === "huge") throw new Error("there is no huge one");
          return { answers: [answer] };
        },
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { picky } });
    const ask = async () => {
      const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
      await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "picky", input: {} });
      return thread_id;
    };
    const runOf = async (thread: string) =>
      ((await (await get(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[])[0]?.run_id;
    const [one, two] = [await ask(), await ask()];
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const answer = page.getByLabel("Answer", { exact: true });
    const notice = page.locator(".notice");
    await answer.fill("small");
    await answer.press("Enter");
    await notice.getByText("Answer sent.").waitFor();
    const link = notice.getByRole("link", { name: "Open run" });
    expect(await link.getAttribute("href")).toBe(`#/threads/${one}/runs/${await runOf(one)}`);
    await expect.poll(() => page.locator(".questions > li").count()).toBe(1);
    await answer.fill("huge");
    // Reads the run only after it has ended, however slow the machine is.
    await page.route(`**/threads/${two}/runs/*`, async (route) => {
      await (await get(`${route.request().url()}/join`)).text();
      await route.continue();
    });
    await answer.press("Enter");
    await notice.getByText("Answer sent, but the run failed.").waitFor();
    expect(await notice.getAttribute("class")).toContain("bad");
    await link.click();
    await page.getByText("there is no huge one").first().waitFor();
    expect(page.url()).toContain(`/threads/${two}/runs/${await runOf(two)}`);
    expect(wrong).toEqual([]);
  });
});

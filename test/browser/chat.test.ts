import type { BrowserContext, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { graph, messages } from "../../src/index.ts";
import { latches, unlessAborted } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { browser, isMissing } from "./chromium.ts";
import { bundlePage, errorsOf, servePage } from "./react-page.ts";

const SOON = { timeout: 30_000 };

let script = "";
beforeAll(() => {
  script = bundlePage("chat.tsx");
}, 60_000);

/**
 * A graph that repeats the last message word by word. Where the message contains a bar, it pauses there until the test
 * releases it. A message that asks has to be answered first.
 */
function chatting() {
  const opened = latches();
  const chat = graph({
    state: { messages: messages({ onInterrupt: "keep" }) },
    nodes: {
      ask: async ({ messages: said }, ctx) => {
        const question = String(said.at(-1)?.content);
        if (question.endsWith("?")) await ctx.interrupt({ question: `really: ${question}` });
      },
      answer: async ({ messages: said }, ctx) => {
        const message = ctx.message();
        const question = String(said.at(-1)?.content);
        const [before = "", after] = question.split("|");
        for (const word of `You said ${before}`.match(/\S+ ?/g) ?? []) message.write(word);
        if (after !== undefined) {
          await unlessAborted(opened(question).passed, ctx.signal);
          for (const word of after.match(/ ?\S+/g) ?? []) message.write(word);
        }
        return { messages: [message.end()] };
      },
    },
    edges: { start: "ask", ask: "answer" },
  });
  return { chat, open: (question: string) => opened(question).pass() };
}

async function start() {
  const { chat, open } = chatting();
  const app = await serve({ graphs: { chat } });
  const base = await servePage(script);
  const context = await browser();
  const page = await visit(context, `${base}/?api=${encodeURIComponent(app.url)}`);
  return { ...page, app, open, context };
}

async function visit(context: BrowserContext, url: string) {
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const wrong = errorsOf(page);
  await page.goto(url);
  await page.waitForSelector("main[data-loading=false][data-thread-loading=false]");
  const say = async (text: string) => {
    await page.fill("#text", text);
    await page.click("#send");
  };
  /** Waits until these texts are shown. */
  const shows = (texts: readonly string[]) =>
    expect
      .poll(() => page.$$eval("li > span", (all) => all.map(({ textContent }) => textContent)), SOON)
      .toEqual(texts);
  const rests = () => page.waitForSelector("main[data-loading=false][data-thread-loading=false]");
  return { page, wrong, say, shows, rests };
}

/** Each shown text continues the one before it: no token was lost, repeated or withdrawn. */
function grows(shown: readonly string[], whole: string): void {
  const texts = shown.filter((text) => text !== "" && whole.startsWith(text));
  expect(texts.at(-1)).toBe(whole);
  expect(texts.toSorted((a, b) => a.length - b.length)).toEqual(texts);
}

const shownOf = (page: Page): Promise<string[]> => page.evaluate("window.shown");

describe.skipIf(isMissing)(
  "useStream in a real browser, on a page of another port",
  { timeout: 60_000 },
  () => {
    test("tokens appear as they are made, and the thread is found again", async () => {
      const { page, say, shows, rests, open, wrong } = await start();
      await say("one two | three four");
      await shows(["one two | three four", "You said one two "]);
      open("one two | three four");
      const whole = "You said one two  three four";
      await shows(["one two | three four", whole]);
      await rests();
      grows(await shownOf(page), whole);
      await say("more");
      await shows(["one two | three four", whole, "more", "You said more"]);
      await rests();
      await page.reload();
      await shows(["one two | three four", whole, "more", "You said more"]);
      expect(await page.textContent("#error")).toBe("");
      expect(wrong).toEqual([]);
    });

    test("a run is stopped, what it said so far is kept, and the next message is taken", async () => {
      const { page, say, shows, rests, wrong, app } = await start();
      await say("one | two");
      await shows(["one | two", "You said one "]);
      await page.click("#stop");
      await rests();
      const thread = String(new URL(page.url()).searchParams.get("thread"));
      const runs = async () =>
        (await (await fetch(`${app.url}/threads/${thread}/runs`)).json()) as readonly { status: string }[];
      await expect.poll(runs, SOON).toMatchObject([{ status: "interrupted" }]);
      await page.reload();
      await shows(["one | two", "You said one "]);
      await say("b");
      await shows(["one | two", "You said one ", "b", "You said b"]);
      expect(await page.textContent("#error")).toBe("");
      expect(wrong).toEqual([]);
    });

    test("a question pauses the run, also over a reload, and the answer lets it go on", async () => {
      const { page, say, shows, rests, wrong } = await start();
      await say("sure?");
      await expect.poll(() => page.textContent("aside q"), SOON).toBe("really: sure?");
      await rests();
      await page.reload();
      await expect.poll(() => page.textContent("aside q"), SOON).toBe("really: sure?");
      await rests();
      await page.click("aside button");
      await shows(["sure?", "You said sure?"]);
      await rests();
      expect(await page.$("aside")).toBeNull();
      expect(wrong).toEqual([]);
    });

    test("a page that is loaded again in mid-run joins it: no token is lost, none comes twice", async () => {
      const { page, say, shows, rests, open, wrong } = await start();
      await say("first");
      await shows(["first", "You said first"]);
      await rests();
      const question = "a b c | d e f";
      await say(question);
      await shows(["first", "You said first", question, "You said a b c "]);
      await page.reload();
      // Before anything new arrives, everything said so far is shown again.
      await shows(["first", "You said first", question, "You said a b c "]);
      open(question);
      const whole = "You said a b c  d e f";
      await shows(["first", "You said first", question, whole]);
      await rests();
      grows(await shownOf(page), whole);
      expect(await page.textContent("#error")).toBe("");
      expect(wrong).toEqual([]);
    });

    test("an earlier message is said otherwise and an answer made anew: branches, each with what follows it", async () => {
      const { page, say, shows, rests, wrong } = await start();
      for (const text of ["one", "two"]) {
        await say(text);
        await expect.poll(() => page.textContent("li:last-of-type > span"), SOON).toBe(`You said ${text}`);
        await rests();
      }
      const first = ["one", "You said one", "two", "You said two"];
      await page.fill("#text", "other");
      await page.click("li:nth-of-type(1) > button");
      await shows(["other", "You said other"]);
      await rests();
      await page.waitForSelector("li:nth-of-type(1) nav b:text-is('2/2')");
      await page.click("text=previous");
      await shows(first);
      await page.click("text=next");
      await shows(["other", "You said other"]);
      await page.click("li:nth-of-type(2) > button");
      await page.waitForSelector("li:nth-of-type(2) nav b:text-is('2/2')");
      await shows(["other", "You said other"]);
      await rests();
      // The next message continues the branch that is shown.
      await page.click("li:nth-of-type(1) nav button:first-child");
      await shows(first);
      await say("three");
      await shows([...first, "three", "You said three"]);
      expect(wrong).toEqual([]);
    });
  },
);

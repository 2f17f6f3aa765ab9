import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list, messages, value } from "../../src/index.ts";
import { EventLog } from "../../src/dashboard/live/event-log.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";
import { talker } from "./talker.ts";

describe("what a page keeps of a long thread", () => {
  test("is a bounded part of its events, however large each is", () => {
    const log = new EventLog();
    const text = "x".repeat(1_000_000);
    for (let i = 0; i < 10; i++) log.add({ id: String(i), event: "debug", data: null }, text);
    expect(log.events.map(({ id }) => id)).toEqual(["6", "7", "8", "9"]);
    for (let i = 10; i < 3_000; i++) log.add({ id: String(i), event: "debug", data: null }, "{}");
    expect(log.events).toHaveLength(2_000);
    log.add({ id: "last", event: "debug", data: null }, "x".repeat(9_000_000));
    expect(log.events.map(({ id }) => id)).toEqual(["last"]);
  });
});

/** Answers each message with a text of one to eight lines. */
const lines = graph({
  state: { messages: messages(), mood: value("calm"), numbers: list<number>() },
  nodes: {
    answer: ({ messages: said }) => {
      const text = String(said.at(-1)?.content);
      const count = (Number(text.replaceAll(/\D/g, "")) % 8) + 1;
      return {
        messages: [{ role: "assistant", content: `Answer to ${text}.${"\n\nA line.".repeat(count - 1)}` }],
      };
    },
  },
  edges: { start: "answer" },
});

describe.skipIf(isMissing)("a conversation of a thousand messages", { timeout: 60_000 }, () => {
  async function start() {
    const { url } = await serve({ graphs: { lines } });
    const thread = await newThread(url);
    const say = async (first: number, count: number) => {
      const input = {
        messages: Array.from({ length: count }, (_, i) => ({
          id: `m${first + i}`,
          role: "user",
          content: `number ${first + i}${"\n\nmore".repeat((first + i) % 5)}`,
        })),
      };
      await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "lines", input });
    };
    await say(0, 1_000);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    return { page, wrong, url, thread, say };
  }
  const drawn = (page: Page) => page.locator(".bubble").count();
  /** Whether a message is wholly within the part of the conversation that is visible. */
  const isSeen = async (page: Page, text: string) =>
    page
      .locator(".bubble", { hasText: text })
      .first()
      .evaluate((row) => {
        const box = row.closest(".flow")?.getBoundingClientRect();
        const { top, bottom } = row.getBoundingClientRect();
        return box !== undefined && top >= box.top - 1 && bottom <= box.bottom + 1;
      });

  test("is drawn where it is seen, from its end on, and follows it until one scrolls away", async () => {
    const { page, wrong, say } = await start();
    await page.getByText("Answer to number 999").waitFor();
    expect(await drawn(page)).toBeLessThan(60);
    // The script that lays out charts is 1.5 MB: it is loaded where one is shown.
    expect(page.workers()).toEqual([]);
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    await say(1_000, 1);
    await page.getByText("Answer to number 1000").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    await page.locator(".flow").focus();
    await page.keyboard.press("Home");
    await page.locator(".bubble").getByText("number 0", { exact: true }).waitFor();
    expect(await page.locator(".bubble").first().getAttribute("aria-posinset")).toBe("1");
    expect(await page.locator(".bubble").first().getAttribute("aria-setsize")).toBe("1003");
    await say(1_001, 1);
    await page.waitForSelector('.bubble[aria-setsize="1005"]');
    expect(await isSeen(page, "number 0")).toBe(true);
    await page.keyboard.press("End");
    await page.getByText("Answer to number 1001").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    expect(await drawn(page)).toBeLessThan(60);
    expect(wrong).toEqual([]);
  });

  test("is not taken back to its end by an update in the frame in which one scrolls away, before the page gets the event", async () => {
    const { talking, say, end } = talker(["first ", "second ", "third "]);
    const { url } = await serve({ graphs: { lines, talking } });
    const thread = await newThread(url);
    const input = {
      messages: Array.from({ length: 200 }, (_, i) => ({ role: "user", content: `number ${i}` })),
    };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "lines", input });
    const context = await browser();
    // When a message with this text arrives, the view is scrolled right before the page shows it.
    await context.addInitScript(`
      window.WebSocket = class extends WebSocket {
        constructor(...given) {
          super(...given);
          this.addEventListener("message", ({ data }) => {
            if (String(data).includes("second "))
              requestAnimationFrame(() => { document.querySelector(".flow").scrollTop -= 700; });
          });
        }
      };
    `);
    const { page } = await opened(context, `${url}/#/threads/${thread}`);
    await page.getByText("Answer to number 199").waitFor();
    await postJson(`${url}/threads/${thread}/runs`, { assistant_id: "talking", input: {} });
    say("first ");
    await page.locator(".coming").getByText("first").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    say("second ");
    await page.locator(".coming").getByText("first second").waitFor({ state: "attached" });
    expect(await distanceToEnd(page)).toBeGreaterThan(600);
    say("third ");
    await page.locator(".coming").getByText("first second third").waitFor({ state: "attached" });
    expect(await distanceToEnd(page)).toBeGreaterThan(600);
    end();
    await page.locator("ol.coming").waitFor({ state: "detached" });
    expect(await distanceToEnd(page)).toBeGreaterThan(600);
  });

  /** The text and the distance from the top of the first message that is wholly visible. */
  const firstSeen = (page: Page) =>
    page.evaluate<readonly [text: string, top: number]>(`(() => {
      const top = document.querySelector(".flow").getBoundingClientRect().top;
      const rows = [...document.querySelectorAll(".bubble[data-index]")].map((row) => [row.innerText, row.getBoundingClientRect().top - top]);
      return rows.filter(([, distance]) => distance >= 0).sort(([, a], [, b]) => a - b)[0];
    })()`);

  test("is read from its end on; earlier messages come when asked for, and those that are seen stay in place", async () => {
    const { page, wrong, say } = await start();
    await page.getByText("The last 500 of 1,001 messages").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    await page.getByRole("button", { name: "Show 500 earlier messages" }).click();
    await page.getByText("The last 1,000 of 1,001 messages").waitFor({ state: "attached" });
    await page.keyboard.press("End");
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    // Each run that is followed takes the place of the oldest messages.
    await say(1_000, 3);
    await page.getByText("The last 500 of 1,005 messages").waitFor({ state: "attached" });
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    await page.locator(".flow").evaluate((box) => (box.scrollTop = 0));
    await page.locator(".bubble").getByText("number 505", { exact: true }).waitFor();
    // An update in the same frame would take the page to its end again, before it gets the scroll event.
    await page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))");
    const isInPlace = async ([text, top]: readonly [string, number]) => {
      const [now, place] = await firstSeen(page);
      expect(now).toBe(text);
      expect(Math.abs(place - top)).toBeLessThan(3);
    };
    const first = await firstSeen(page);
    // The messages that are seen are not taken away by newer ones.
    await say(1_003, 3);
    await page.getByText(/The last 5\d\d of 1,009 messages/).waitFor({ state: "attached" });
    await isInPlace(first);
    await page.getByRole("button", { name: "Show all" }).scrollIntoViewIfNeeded();
    const seen = await firstSeen(page);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByText("All 1,009 messages").waitFor({ state: "attached" });
    await isInPlace(seen);
    await page.locator(".flow").evaluate((box) => (box.scrollTop = 0));
    await page.locator(".bubble").getByText("number 0", { exact: true }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("goes to its beginning by the key Home, wherever the focus is, unless one scrolls meanwhile", async () => {
    const { page, wrong, url, thread } = await start();
    await page.getByText("The last 500 of 1,001 messages").waitFor();
    const gate = await heldBack(page.context(), "**/state?list_limit=1000000000*");
    await page.keyboard.press("Home");
    await page.locator(".bubble").getByText("number 505", { exact: true }).waitFor();
    await page.locator(".flow").hover();
    await page.mouse.wheel(0, 2_000);
    await expect.poll(() => page.locator(".flow").evaluate((box) => box.scrollTop)).toBe(2_000);
    const before = await firstSeen(page);
    gate.pass();
    await page.getByText("All 1,001 messages").waitFor({ state: "attached" });
    const [text, top] = await firstSeen(page);
    expect(text).toBe(before[0]);
    expect(Math.abs(top - before[1])).toBeLessThan(3);
    await page.keyboard.press("Home");
    await page.locator(".bubble").getByText("number 0", { exact: true }).waitFor();
    // A link to a message that there is not shows the end.
    await page.goto(`${url}/#/threads/${thread}?message=nothing`);
    await page.reload();
    await page.getByText("The message of this link is not in the conversation").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    expect(wrong).toEqual([]);
  });

  test("shows nothing of messages that were removed, and of what nodes wrote only the messages that it shows", async () => {
    const { page, wrong, url, thread, say } = await start();
    await say(1_000, 3);
    await page.getByText("Answer to number 1002").waitFor();
    const { values } = (await (await fetch(`${url}/threads/${thread}/state`)).json()) as {
      values: { messages: readonly { id: string }[] };
    };
    const messages = values.messages.map(({ id }) => ({ type: "remove", id }));
    const read = page.waitForResponse(async (response) => {
      if (!response.url().includes("/state?list_limit=")) return false;
      const { values: found } = (await response.json()) as { values: { messages: readonly unknown[] } };
      return found.messages.length === 0;
    });
    await postJson(`${url}/threads/${thread}/state`, { values: { messages }, as_node: "answer" });
    await expect.poll(() => page.locator(".bubble").count(), { timeout: 20_000 }).toBe(0);
    // The update of the state has 1,007 removals among its writes, which are not read.
    expect((await (await read).body()).length).toBeLessThan(5_000);
    expect(wrong).toEqual([]);
  });

  test("is edited whole, however little of it is shown", async () => {
    const { page, wrong, url, thread } = await start();
    await page.getByText("The last 500 of 1,001 messages").waitFor();
    await page.goto(`${url}/#/threads/${thread}?tab=history`);
    await page.getByRole("button", { name: "Edit state" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("mood").fill("merry");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("State saved.").waitFor();
    const { values } = (await (await fetch(`${url}/threads/${thread}/state`)).json()) as {
      values: { mood: string; messages: readonly unknown[] };
    };
    expect([values.mood, values.messages.length]).toEqual(["merry", 1_001]);
    expect(wrong).toEqual([]);
  });

  test("is not part of the stream, and is read when it has changed, also without a run", async () => {
    const { page, wrong, url, thread, say } = await start();
    const frames: string[] = [];
    page.on("websocket", (socket) => {
      socket.on("framereceived", ({ payload }) => frames.push(String(payload)));
    });
    await page.reload();
    await page.getByText("Answer to number 999").waitFor();
    await page.waitForSelector(".live.open");
    const reads: string[] = [];
    page.on("request", (request) => reads.push(request.url()));
    const whole = () => reads.filter((read) => read.includes("/state?list_limit="));
    for (let i = 1_000; i < 1_005; i++) {
      const before = whole().length;
      await say(i, 1);
      await page.getByText(`Answer to number ${i}`).waitFor();
      await expect.poll(() => whole().length).toBeGreaterThan(before);
    }
    expect(frames.filter((frame) => frame.includes("Answer to number 1004"))).not.toEqual([]);
    expect(frames.filter((frame) => frame.includes("Answer to number 500"))).toEqual([]);
    const values = { messages: [{ role: "user", content: "said by hand" }] };
    await postJson(`${url}/threads/${thread}/state`, { values, as_node: "answer" });
    await page.locator(".bubble", { hasText: "said by hand" }).waitFor({ timeout: 20_000 });
    expect(wrong).toEqual([]);
  });

  test("has no gaps and no overlaps, wherever one scrolls", async () => {
    const { page } = await start();
    await page.getByText("Answer to number 999").waitFor();
    for (const share of [0.2, 0.9, 0.5]) {
      await page.locator(".flow").evaluate((box, part) => {
        box.scrollTop = box.scrollHeight * part;
      }, share);
      await expect
        .poll(() =>
          page.$$eval(".flow .messages .bubble", (rows) => {
            const boxes = rows.map((row) => row.getBoundingClientRect());
            return boxes.slice(1).every((box, i) => Math.abs(box.top - (boxes[i]?.bottom ?? 0) - 13) < 1.5);
          }),
        )
        .toBe(true);
    }
  });

  test("opens at the message of its address, and goes to another one's", async () => {
    const { page, url, thread } = await start();
    await page.getByText("Answer to number 999").waitFor();
    for (const number of [100, 300, 700]) {
      await page.goto(`${url}/#/threads/${thread}?message=m${number}`);
      if (number === 300) await page.reload();
      await expect
        .poll(() => page.locator(".bubble[aria-current]").innerText())
        .toContain(`number ${number}`);
      await expect.poll(() => isSeen(page, `number ${number}`)).toBe(true);
    }
    // One may scroll away from it.
    await page.locator(".flow").focus();
    await page.keyboard.press("End");
    await page.getByText("Answer to number 999").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
  });

  test("and of other lists, the last elements are shown", async () => {
    const { page, url, thread, wrong } = await start();
    const numbers = Array.from({ length: 700 }, (_, i) => i);
    await postJson(`${url}/threads/${thread}/state`, { values: { numbers }, as_node: "answer" });
    await page.getByText("numbers: the last 500 of 700 elements").waitFor({ timeout: 20_000 });
    await page.getByRole("button", { name: "Show all elements" }).click();
    await page.getByText("All 1,001 messages").waitFor();
    expect(await page.getByText("elements.").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("keeps the place of the keyboard while one scrolls", async () => {
    const { page } = await start();
    const link = page
      .locator(".bubble", { hasText: "number 998" })
      .getByRole("link", { name: "Link to this message" });
    await link.focus();
    await page.locator(".flow").evaluate((box) => (box.scrollTop = 0));
    await page.locator(".bubble").getByText("number 505", { exact: true }).waitFor();
    expect(await page.evaluate("document.activeElement.getAttribute('href')")).toContain("message=m998");
    await page.keyboard.press("Tab");
    await page.getByText("number 999", { exact: false }).first().waitFor();
  });
});

describe.skipIf(isMissing)("what one reads in a conversation", { timeout: 60_000 }, () => {
  test("stays in place while runs go on below, with messages that are streamed and a state that grows", async () => {
    const talk = graph({
      state: { messages: messages(), log: list<string>() },
      nodes: {
        look: async () => ({ log: ["looked"] }),
        answer: async (_, ctx) => {
          const message = ctx.message();
          for (const word of "An answer that takes more than one line. ".repeat(5).split(/(?<= )/))
            message.write(word);
          return { messages: [message.end()] };
        },
      },
      edges: { start: "look", look: "answer" },
    });
    const { url } = await serve({ graphs: { talk } });
    const thread = await newThread(url);
    const say = async (count: number) => {
      const input = {
        messages: Array.from({ length: count }, (_, i) => ({
          role: "user",
          content: `number ${i}${"\n\nmore".repeat(i % 5)}`,
        })),
      };
      await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "talk", input });
    };
    await say(45);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.getByRole("region", { name: "State" }).waitFor();
    await page.locator(".flow").hover();
    await page.mouse.wheel(0, -700);
    const flow = page.locator(".flow");
    const scrolled = () => flow.evaluate((box) => box.scrollTop);
    await expect.poll(async () => (await distanceToEnd(page)) > 300).toBe(true);
    const before = await scrolled();
    const seen = page.locator(".bubble", { hasText: "number 40" });
    const place = async () => (await seen.boundingBox())?.y;
    const top = await place();
    for (let i = 1; i <= 3; i++) {
      await say(1);
      await page.waitForSelector(`.bubble[aria-setsize="${46 + 2 * i}"]`, { state: "attached" });
      expect([await scrolled(), await place()]).toEqual([before, top]);
    }
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(isMissing)("a conversation that loses messages", { timeout: 60_000 }, () => {
  async function start(count: number, first = 0) {
    const { url } = await serve({ graphs: { lines } });
    const thread = await newThread(url);
    // The run gives the thread its graph.
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "lines", input: { messages: [] } });
    /** Adds messages from number `from` up to `to`, and removes those from number `gone` up to `kept`, if given. */
    const change = (from: number, to: number, [gone, kept]: readonly [number, number] = [0, 0]) => {
      const removed = Array.from({ length: kept - gone }, (_, i) => ({ type: "remove", id: `m${gone + i}` }));
      const added = Array.from({ length: to - from }, (_, i) => ({
        id: `m${from + i}`,
        role: "user",
        content: `number ${from + i}.${"\n\nmore".repeat((from + i) % 5)}`,
      }));
      const values = { messages: [...removed, ...added] };
      return postJson(`${url}/threads/${thread}/state`, { values, as_node: "answer" });
    };
    await change(first, first + count);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const last = page.locator(".bubble").getByText(`number ${first + count - 1}.`);
    await last.waitFor();
    await page.waitForSelector(".live.open");
    return { page, wrong, change };
  }

  test("follows its end again when it has shrunk so far that all of it is seen", async () => {
    const { page, wrong, change } = await start(40);
    await page.keyboard.press("Home");
    await expect.poll(() => page.locator(".flow").evaluate((box) => box.scrollTop)).toBe(0);
    await change(0, 0, [1, 40]);
    await expect.poll(() => page.locator(".bubble").count(), { timeout: 20_000 }).toBe(2);
    await change(40, 80);
    await page.locator(".bubble").getByText("number 79.").waitFor({ timeout: 20_000 });
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(5);
    expect(wrong).toEqual([]);
  });

  // Of 600 messages, the last 500 are read. The reader sees the first of them, which are not removed.
  test.each([
    [40, 1_500],
    [160, 1_500],
    [600, 100],
  ])("and gets as many: of %i messages, those that are seen stay in place", async (size, top) => {
    const { page, wrong, change } = await start(size);
    const flow = page.locator(".flow");
    await flow.evaluate((box, to) => (box.scrollTop = to), top);
    const seenFirst = () =>
      page.evaluate<string | undefined>(`(() => {
        const { top, bottom } = document.querySelector(".flow").getBoundingClientRect();
        const rows = [...document.querySelectorAll(".bubble[data-index]")].map((row) => [row.getBoundingClientRect().top, row.innerText]);
        const seen = rows.filter(([at]) => at >= top && at < bottom).sort(([a], [b]) => a - b);
        return seen[0]?.[1].match(/number \\d+\\./)?.[0];
      })()`);
    await expect.poll(seenFirst).toBeDefined();
    const seen = (await seenFirst()) ?? "";
    const row = page.locator(".bubble", { hasText: seen });
    const place = async () => Math.round((await row.boundingBox())?.y ?? 0);
    const position = async () => Number(await row.getAttribute("aria-posinset"));
    const [place0, position0] = [await place(), await position()];
    for (let i = 0; i < 3; i++) {
      const at = 2 * i;
      // oxlint-disable-next-line no-await-in-loop -- each change is shown before the next one
      await change(size + at, size + at + 2, [at, at + 2]);
      // oxlint-disable-next-line no-await-in-loop -- each change is shown before the next one
      await expect.poll(position, { timeout: 20_000 }).toBe(position0 - at - 2);
      // oxlint-disable-next-line no-await-in-loop -- each change is shown before the next one
      expect(Math.abs((await place()) - place0)).toBeLessThan(3);
    }
    expect(wrong).toEqual([]);
  });
});

const distanceToEnd = (page: Page) =>
  page.locator(".flow").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);

describe.skipIf(isMissing)("the history of a thread with large states", { timeout: 60_000 }, () => {
  test("is listed without the values of its states; only those of the state that is shown, and of the one before, are read", async () => {
    const { url } = await serve({ graphs: { lines } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "lines", input: { messages: [] } });
    const content = "x".repeat(300_000);
    const store = (number: number) => ({
      values: { messages: [{ id: "m", role: "user", content: `${number} ${content}` }] },
    });
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      const { checkpoint } = await postJson<{ checkpoint: { checkpoint_id: string } }>(
        `${url}/threads/${thread}/state`,
        store(i),
      );
      ids.push(checkpoint.checkpoint_id);
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    await page.locator(".travel > .dim", { hasText: /^\d+ of \d+$/ }).waitFor();
    await page.getByRole("button", { name: "Edit state" }).waitFor();
    await expect.poll(() => page.locator('.moment [aria-busy="true"]').count()).toBe(0);
    const large = await page.evaluate<readonly string[]>(
      `performance.getEntriesByType("resource").filter(({ decodedBodySize }) => decodedBodySize > 250_000).map(({ name }) => name)`,
    );
    const answers = large.filter((name) => name.includes(`/threads/${thread}/`));
    const read = new Set(answers.map((name) => name.replace(/.*\//, "").replace(/\?.*/, "")));
    expect([...read]).toEqual(["state", ids.at(-2)]);
    await page.evaluate(`location.hash = "#/threads/${thread}?tab=history&at=${ids[1]}"`);
    await page.locator(".moment code", { hasText: ids[1] ?? "" }).waitFor();
    expect(wrong).toEqual([]);
  });
});

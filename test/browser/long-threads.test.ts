import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, messages } from "../../src/index.ts";
import type { JsonRecord } from "../../src/dashboard/api/records.ts";
import { EventLog } from "../../src/dashboard/live/event-log.ts";
import { SharedMessages } from "../../src/dashboard/live/structural-sharing.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

describe("what a page keeps of a long thread", () => {
  test("is one copy of each message, however many states it was in", () => {
    const shared = new SharedMessages();
    const said = (count: number) => ({
      messages: Array.from({ length: count }, (_, i) => ({ id: `m${i}`, type: "human", content: `${i}` })),
      step: count,
    });
    const listOf = (values: JsonRecord) => values["messages"] as readonly unknown[];
    const first = shared.share(said(2));
    const second = shared.share(said(3));
    expect(second).toEqual(said(3));
    expect(listOf(second)[0]).toBe(listOf(first)[0]);
    expect(listOf(shared.share({ ...said(3), step: 4 }))).toBe(listOf(second));
    const edited = said(3);
    edited.messages[1] = { id: "m1", type: "human", content: "other" };
    expect(shared.share(edited)).toEqual(edited);
  });

  test("is one copy of what its messages have in common", () => {
    const message = (id: number) => ({
      id: `m${id}`,
      type: "ai",
      content: `${id}`,
      tool_calls: [],
      usage: { total: 3 },
    });
    const shared = new SharedMessages();
    shared.share({ messages: [message(0)] });
    const said = [message(0), { ...message(1), usage: { total: 4 } }, message(2), message(3)];
    const values = shared.share({ messages: said }) as { messages: readonly ReturnType<typeof message>[] };
    expect(values).toEqual({ messages: said });
    const [first, second, third, fourth] = values.messages;
    for (const one of [second, third, fourth]) expect(one?.tool_calls).toBe(first?.tool_calls);
    expect(fourth?.usage).toBe(third?.usage);
  });

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
  state: { messages: messages() },
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
  const distanceFromEnd = (page: Page) =>
    page.locator(".flow").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
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
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(5);
    await say(1_000, 1);
    await page.getByText("Answer to number 1000").waitFor();
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(5);
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
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(5);
    expect(await drawn(page)).toBeLessThan(60);
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
    const whole = () => reads.filter((read) => read.endsWith("/state"));
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
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(5);
  });

  test("keeps the place of the keyboard while one scrolls", async () => {
    const { page } = await start();
    const link = page
      .locator(".bubble", { hasText: "number 998" })
      .getByRole("link", { name: "Link to this message" });
    await link.focus();
    await page.locator(".flow").evaluate((box) => (box.scrollTop = 0));
    await page.locator(".bubble").getByText("number 0", { exact: true }).waitFor();
    expect(await page.evaluate("document.activeElement.getAttribute('href')")).toContain("message=m998");
    await page.keyboard.press("Tab");
    await page.getByText("number 999", { exact: false }).first().waitFor();
  });
});

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

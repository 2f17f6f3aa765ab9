import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const kept = graph({
  state: { messages: list<object>(), deep: list<unknown>(), note: value("") },
  nodes: { stay: async () => ({}) },
  edges: { start: "stay" },
});

let deep: unknown = 1;
for (let i = 0; i < 200; i++) deep = { a: deep };

const contents: readonly (readonly [string, string])[] = [
  ["1,000 quotes within one another", ">".repeat(1_000)],
  ["10,000 quotes with blanks", "> ".repeat(10_000)],
  ["marks of 60,000 characters", "*_b ".repeat(15_000)],
  ["marks in many paragraphs", `${"*_b ".repeat(240)}\n\n`.repeat(60)],
  ["lists within lists on one line", "- ".repeat(5_000)],
  ["lists by indentation", Array.from({ length: 230 }, (_, i) => `${" ".repeat(2 * i)}- a`).join("\n")],
  ["brackets", "[".repeat(30_000)],
  ["links in links", "[a](".repeat(8_000)],
  ["a line of 2,000,000 characters", "a".repeat(2_000_000)],
  ["a large table", `|a|b|\n|-|-|\n${"|1|2|\n".repeat(6_000)}`],
  ["tags", "<a ".repeat(19_000)],
  ["back ticks", "`a".repeat(29_000)],
];

/** CPU seconds of the page's main thread since the call: other processes of a busy machine do not count. */
async function cpuOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  };
  const before = await read();
  return async () => (await read()) - before;
}

/** Code for the browser: sorts texts of an element by their places, from left to right. */
const SEEN_ORDER = `(element, texts) => {
  const placeOf = (text) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode() !== null) {
      const at = walker.currentNode.textContent.indexOf(text);
      if (at < 0) continue;
      const range = document.createRange();
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, at + text.length);
      return range.getBoundingClientRect().left;
    }
    return -1;
  };
  return texts.map((text) => [text, placeOf(text)]).sort(([, a], [, b]) => a - b).map(([text]) => text);
}`;

const isAlive = (page: Page) => page.locator(".bubble").count();

describe.skipIf(isMissing)("what others wrote does not break the dashboard", { timeout: 60_000 }, () => {
  test.each(contents)(
    "%s: shown with less than 3 s of work, and what follows as Markdown",
    async (_, content) => {
      const { url } = await serve({ graphs: { kept } });
      const assistant = await postJson<{ assistant_id: string }>(`${url}/assistants`, { graph_id: "kept" });
      const thread = await newThread(url);
      await postJson(`${url}/threads/${thread}/runs/wait`, {
        assistant_id: assistant.assistant_id,
        input: {},
      });
      const messages = [
        { id: "1", type: "ai", content },
        { id: "2", type: "ai", content: "**the last**" },
      ];
      await postJson(`${url}/threads/${thread}/state`, {
        values: { messages, deep: [deep] },
        as_node: "stay",
      });
      const context = await browser();
      const { page, wrong } = await opened(context, `${url}/#/threads`);
      const cpu = await cpuOf(page);
      await page.goto(`${url}/#/threads/${thread}`);
      await page.waitForSelector(".bubble strong:text('the last')", { timeout: 30_000 });
      expect(await isAlive(page)).toBe(2);
      expect(await cpu()).toBeLessThan(3);
      expect(wrong).toEqual([]);
    },
  );

  test("10,000 calls of tools are shown by fifties; links lead to the web alone", async () => {
    const { url } = await serve({ graphs: { kept } });
    await newThread(url);
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "kept", input: {} });
    const tool_calls = Array.from({ length: 10_000 }, (_, i) => ({
      id: `c${i}`,
      name: "look",
      args: { i },
      type: "tool_call",
    }));
    const content = "[click](javascript:alert(1)) <img src=x onerror=alert(1)> [web](https://example.com)";
    await postJson(`${url}/threads/${thread}/state`, {
      values: { messages: [{ id: "1", type: "ai", content, tool_calls }] },
      as_node: "stay",
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.waitForSelector(".bubble .call");
    expect(await page.locator(".bubble .call").count()).toBe(50);
    await page.waitForSelector('button:has-text("9950 more calls")');
    const targets = await page.$$eval(".bubble a", (links) => links.map((link) => link.getAttribute("href")));
    expect(targets).toEqual([`#/threads/${thread}?message=1`, "https://example.com"]);
    expect(await page.locator(".bubble img").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("of states that differ in 20,000 lines, the values that are small enough are compared, and the others named", async () => {
    const { url } = await serve({ graphs: { kept } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "kept", input: {} });
    for (const shift of [0, 1]) {
      const numbers = Array.from({ length: 10_000 }, (_, i) => 2 * i + shift);
      const values = { deep: [numbers], note: `shift ${shift}` };
      await postJson(`${url}/threads/${thread}/state`, { values, as_node: "stay" });
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    await page.getByText("Too large to compare: deep.", { exact: true }).waitFor();
    const difference = page.getByLabel("Difference");
    expect(await difference.locator("del").allInnerTexts()).toEqual(['-   "note": "shift 0"\n']);
    expect(await difference.locator("ins").allInnerTexts()).toEqual(['+   "note": "shift 1"\n']);
    expect(await difference.innerText()).not.toContain("deep");
    await postJson(`${url}/threads/${thread}/state`, { values: { note: "shift 1" }, as_node: "stay" });
    await page.getByText("No difference.").waitFor({ timeout: 20_000 });
    expect(wrong).toEqual([]);
  });

  test("a text that turns the direction reorders nothing beside it", async () => {
    const { url } = await serve({ graphs: { kept } });
    const turned = "abc\u202Edef";
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, {
      metadata: { title: turned, "te\u202Eam": turned, zone: "north" },
    });
    await postJson(`${url}/threads/${thread_id}/runs/wait`, {
      assistant_id: "kept",
      input: { note: turned },
      interrupt_before: ["stay"],
    });
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, {
      graph_id: "kept",
      name: turned,
    });
    const { page } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    const seen = (selector: string, texts: readonly string[]) =>
      page.evaluate<unknown>(
        `(${SEEN_ORDER})(document.querySelector('${selector}'), ${JSON.stringify(texts)})`,
      );
    const inOrder = async (selector: string, ...texts: readonly string[]) =>
      expect.poll(() => seen(selector, texts)).toEqual(texts);
    await page.locator(".head .status").waitFor();
    await inOrder(".head h2", "abc", "paused");
    await inOrder(".head .metadata", "te", "zone", "north");
    await page.locator(".thread .what").first().waitFor();
    await inOrder(".thread", "zone", "north");
    await page.goto(`${url}/#/inbox`);
    await page.locator(".from").waitFor();
    await inOrder(".from", "abc", "kept", "thread");
    await page.goto(`${url}/#/assistants`);
    await page.locator("aside a", { hasText: "def" }).waitFor();
    await inOrder(`aside a[href$="${assistant_id}"]`, "abc", "def", "(kept");
    await page.goto(`${url}/#/new`);
    await expect
      .poll(() => page.getByLabel("Assistant").locator("option").allTextContents())
      .toContainEqual(expect.stringMatching(/^abcdef \(kept/));
  });

  test("ids of the address are looked at before they are asked for", async () => {
    const { url } = await serve();
    const context = await browser();
    const { page } = await opened(context, `${url}/#/threads`);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    for (const id of ["..", "%2e%2e", "%", "x%2Fruns%2Fy", "a%3Fb", "a%23b", "..%2F..%2Fmetrics"]) {
      await page.goto(`${url}/#/threads/${id}`);
      await page.waitForSelector("text=Page not found");
    }
    await page.goto(`${url}/#/threads/00000000-0000-4000-8000-000000000000/runs/..`);
    await page.waitForSelector("text=Page not found");
    expect(asked.filter((path) => /metrics|^\/threads\/(?!search|count)/.test(path))).toEqual([]);
  });

  test("an address that names no assistant is said to name none, and shows no other", async () => {
    const { url } = await serve();
    const { page } = await opened(await browser(), `${url}/#/graphs/approval`);
    await page.getByRole("heading", { name: "approval" }).waitFor();
    for (const id of ["nope", "..", "a%2Fb", "%"]) {
      await page.goto(`${url}/#/graphs/${id}`);
      await page.getByText("Assistant not found").waitFor();
      expect(await page.locator(".graphs svg").count()).toBe(0);
    }
    await page.goto(`${url}/#/new?graph=..`);
    await page.getByText('".." is not a valid ID.').waitFor();
  });

  test("an answer that is no JSON, as of a proxy that asks for a login, is said to be none", async () => {
    const { url } = await serve();
    const context = await browser();
    await context.route("**/threads/*", (route) =>
      route.fulfill({ contentType: "text/html", body: "<!doctype html><title>Log in</title>" }),
    );
    const { page } = await opened(context, `${url}/#/inbox`);
    await expect
      .poll(() => page.getByRole("alert").innerText())
      .toContain("The response is not JSON. A proxy or login page may have replaced it.");
  });
});

import { describe, expect, test } from "vitest";
import { graph, messages } from "../../src/index.ts";
import { exampleInput } from "../../src/dashboard/threads/run-input.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const echo = graph({
  state: { messages: messages() },
  nodes: {
    answer: async ({ messages: said }) => ({
      messages: [{ role: "ai", content: `You said: ${String(said.at(-1)?.content)}` }],
    }),
  },
  edges: { start: "answer" },
});

test("the example of an input has what is required, or there is none", () => {
  const properties = {
    messages: { type: "array", langgraph_type: "messages" },
    name: { type: "string" },
    size: { enum: ["small", "large"] },
    note: { type: "string" },
  };
  expect(exampleInput(null)).toEqual({});
  expect(exampleInput({ type: "object", properties, required: ["name", "size"] })).toEqual({
    messages: [{ role: "user", content: "Hello" }],
    name: "an example",
    size: "small",
  });
  const list = { type: "object", properties: { all: { type: "array", minItems: 2 } }, required: ["all"] };
  expect(exampleInput(list)).toBeNull();
});

describe.skipIf(isMissing)("a first visit in a real browser", { timeout: 60_000 }, () => {
  test("a graph runs at one click, as long as there is no thread", async () => {
    const { url } = await serve({ graphs: { echo } });
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await page.getByRole("button", { name: "Run echo" }).click();
    await page.getByText("You said: Hello").waitFor();
    await page.getByRole("link", { name: "Heddle" }).click();
    await page.getByRole("link", { name: "New thread" }).waitFor();
    expect(await page.getByRole("button", { name: "Run echo" }).count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("a message has an address: it is in sight there, and marked", async () => {
    const { url } = await serve({ graphs: { echo } });
    const thread = await newThread(url);
    for (let i = 0; i < 30; i++) {
      const input = { messages: [{ role: "user", content: `number ${i}` }] };
      await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "echo", input });
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const third = page.locator(".bubble", { hasText: "You said: number 3" }).first();
    const link = await third.getByRole("link", { name: "Link to this message" }).getAttribute("href");
    expect(await third.evaluate((box) => box.getBoundingClientRect().bottom)).toBeLessThan(0);
    await page.goto(`${url}/${link}`);
    await page.reload();
    const marked = page.locator(".bubble[aria-current]");
    await expect.poll(() => marked.innerText()).toContain("number 3");
    const height = page.viewportSize()?.height ?? 0;
    await expect
      .poll(async () => {
        const { y = -1, height: own = 0 } = (await marked.boundingBox()) ?? {};
        return y > 0 && y + own < height;
      })
      .toBe(true);
    expect(wrong).toEqual([]);
  });

  test("colours chosen on one page hold on the others, which all have the same header", async () => {
    const { url } = await serve({ graphs: { echo } });
    const { page } = await opened(await browser(), `${url}/inspector`);
    await page.getByRole("button", { name: "Theme: system. Change theme" }).click();
    for (const path of ["inspector", "docs", "#/runs"]) {
      await page.goto(`${url}/${path}`);
      await page.getByRole("button", { name: "Theme: light. Change theme" }).waitFor();
      expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("light");
      const others = await page.getByLabel("Other pages").getByRole("link").allInnerTexts();
      expect(others).toHaveLength(2);
      expect(await page.locator("header.top").evaluate((header) => header.clientHeight)).toBeLessThan(50);
    }
  });
});

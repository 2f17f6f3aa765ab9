import { Agent, request } from "node:http";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, messages, value } from "../../src/index.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const MANY = 10_000;

/**
 * Code for the browser that scrolls through the list frame by frame: the time of a frame, compared with one without
 * scrolling, and the largest number of rows.
 */
const SCROLL = `(async () => {
  const box = document.querySelector(".rows");
  let most = 0;
  const median = async (step) => {
    const took = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < 120; i++) {
      box.scrollTop += step;
      const now = await new Promise(requestAnimationFrame);
      took.push(now - last);
      last = now;
      most = Math.max(most, box.querySelectorAll(".row").length);
    }
    return took.sort((a, b) => a - b)[60];
  };
  return { still: await median(0), scrolling: await median(400), most };
})()`;

/** Over plain connections, because `fetch` takes several times as long. */
async function makeThreads(url: string, many = MANY): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const headers = { "content-type": "application/json" };
  const make = (n: number) =>
    new Promise<void>((resolve, reject) => {
      request(`${url}/threads`, { method: "POST", agent, headers }, (answer) => {
        answer.resume().on("end", resolve);
      })
        .on("error", reject)
        .end(JSON.stringify({ metadata: { n } }));
    });
  await Promise.all(Array.from({ length: many }, (_, n) => make(n)));
  agent.destroy();
}

const names = (page: Page): Promise<string[]> =>
  page.$$eval("a.thread", (rows) => rows.map((row) => row.querySelector(".name")?.textContent ?? ""));

describe.skipIf(isMissing)("the list of threads in a real browser", { timeout: 120_000 }, () => {
  test("10,000 of them scroll smoothly, the last one is reached, and a new one appears by itself", async () => {
    const { url } = await serve();
    await makeThreads(url);
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await page.waitForSelector('h1 .count:has-text("10,000")');
    await page.waitForSelector("a.thread");
    const { still, scrolling, most } =
      await page.evaluate<Record<"still" | "scrolling" | "most", number>>(SCROLL);
    // At least a third of the frame rate that the machine reaches without scrolling.
    expect(scrolling).toBeLessThan(3 * still);
    expect(most).toBeLessThan(60);
    await page.evaluate("document.querySelector('.rows').scrollTop = 1e9");
    await page.waitForSelector(`.row[aria-posinset="${MANY}"] a.thread`);

    await page.evaluate("document.querySelector('.rows').scrollTop = 0");
    await postJson(`${url}/threads`, { metadata: { title: "quite new" } });
    await page.waitForSelector('.row[aria-posinset="1"] .name:has-text("quite new")');
    await page.fill('input[type="search"]', "tea n=4711");
    await page.getByText("No matching threads").waitFor();
    await page.fill('input[type="search"]', "QUITE new");
    await expect.poll(() => names(page)).toEqual(["quite new"]);
    const id = (await page.innerText("a.thread .id")).slice(1);
    await page.fill('input[type="search"]', "n=4711");
    await expect.poll(() => names(page)).toEqual(["Untitled thread"]);
    await page.fill('input[type="search"]', id);
    await expect.poll(() => names(page)).toEqual(["quite new"]);
    await page.fill('input[type="search"]', "n=4711");
    await expect.poll(() => names(page)).toEqual(["Untitled thread"]);
    await expect.poll(() => page.locator("a.thread").count()).toBe(1);
    await page.focus(".rows");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.head h2:has-text("Untitled thread")');
    expect(wrong).toEqual([]);
  });

  test("a search that finds more than it shows says so, and one that found all says nothing", async () => {
    const { url } = await serve();
    await makeThreads(url, 1_500);
    await postJson(`${url}/threads`, { metadata: { title: "tea" } });
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await page.waitForSelector("a.thread");
    await page.fill('input[type="search"]', "n");
    const note = page.locator(".stray");
    await expect
      .poll(() => note.innerText())
      .toBe("More than 1,000 threads match: these are the last updated.");
    await expect.poll(() => page.innerText("h1 .count")).toBe("1,000");
    await page.fill('input[type="search"]', "tea");
    await expect.poll(() => names(page)).toEqual(["tea"]);
    expect(await note.innerText()).toBe("");
    expect(wrong).toEqual([]);
  });

  test("a search in words does not find digits of ids; an id is found by its beginning of at least four characters", async () => {
    const { url } = await serve();
    const customer = "3c3e3333-3333-4333-8333-333333333333";
    await postJson(`${url}/threads`, { metadata: { title: "Refund 3" } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, {
      thread_id: "0192d3a4-0000-7000-8000-000000abcd33",
      metadata: { title: "Refund 12", customer, list: [{ trace: "33".repeat(16) }] },
    });
    const { page, wrong } = await opened(await browser(), `${url}/`);
    const search = page.locator('input[type="search"]');
    const found = async () => (await names(page)).toSorted();
    await expect.poll(found).toEqual(["Refund 12", "Refund 3"]);
    for (const [text, titles] of [
      ["Refund 3", ["Refund 3"]],
      ["Refund 12", ["Refund 12"]],
      ["refund", ["Refund 12", "Refund 3"]],
      ["3C3E", ["Refund 12"]],
      ["refund customer", ["Refund 12"]],
      ["3333", ["Refund 12"]],
      ["abcd33", ["Refund 12"]],
      [thread_id, ["Refund 12"]],
      ["Refund 3", ["Refund 3"]],
      [customer, ["Refund 12"]],
    ] as const) {
      await search.fill(text);
      await expect.poll(found, { message: text }).toEqual(titles);
    }
    for (const text of ["c3e3", "3c3 ", "d33"]) {
      await search.fill(text);
      await page.getByText("No matching threads").waitFor();
      await search.fill("");
      await expect.poll(found).toEqual(["Refund 12", "Refund 3"]);
    }
    expect(wrong).toEqual([]);
  });

  test("a search finds what the list shows of a thread: its first message, values of its state, its error", async () => {
    const chat = graph({
      state: { messages: messages() },
      nodes: { say: async () => ({ messages: [{ role: "assistant", content: "Refused: see rule 77" }] }) },
      edges: { start: "say" },
    });
    const expense = graph({
      state: { item: value(""), amount: value(0) },
      nodes: {
        pay: async ({ amount }) => {
          if (amount > 1_000) throw new Error("over the limit of the month");
          return {};
        },
      },
      edges: { start: "pay" },
    });
    const { url } = await serve({ graphs: { chat, expense } });
    const { assistant_id: strict } = await postJson<{ assistant_id: string }>(`${url}/assistants`, {
      graph_id: "expense",
      name: "strict",
    });
    const run = async (title: string, assistant_id: string, input: object) => {
      const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata: { title } });
      await post(`${url}/threads/${thread_id}/runs/wait`, { assistant_id, input });
    };
    await run("Hana", "chat", {
      messages: [{ role: "user", content: "Hana wants the money back for order 1845" }],
    });
    await run("Desk", "expense", { item: "Laptop", amount: 300 });
    await run("Trip", strict, { item: "Train", amount: 4_500 });
    await newThread(url);
    const { page, wrong } = await opened(await browser(), `${url}/`);
    const requests: string[] = [];
    const search = page.locator('input[type="search"]');
    await expect.poll(async () => (await names(page)).length).toBe(4);
    await page.getByText("Train · amount 4500").waitFor();
    page.on("request", (request) => {
      if (request.postData()?.includes('"extract"') === true) requests.push(request.url());
    });
    for (const [text, titles] of [
      ["1845", ["Hana"]],
      ["money HANA", ["Hana"]],
      ["300", ["Desk"]],
      ["laptop desk", ["Desk"]],
      ["4500", ["Trip"]],
      ["of the month", ["Trip"]],
    ] as const) {
      await search.fill(text);
      await expect.poll(() => names(page), { message: text }).toEqual(titles);
      expect(await page.innerText(".stray")).toBe("");
    }
    // What the list does not show is not searched.
    await search.fill("77");
    await page.getByText("No matching threads").waitFor();
    // The descriptions of all were known: they are visible.
    expect(requests).toEqual([]);
    expect(wrong).toEqual([]);
  });

  test("a search reads the descriptions of invisible threads with one request for each kind; it says which it did not read", async () => {
    const { url } = await serve();
    const { thread_id: old } = await postJson<{ thread_id: string }>(`${url}/threads`);
    await post(`${url}/threads/${old}/runs/wait`, { assistant_id: "approval", input: { topic: "oolong" } });
    await makeThreads(url, 300);
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await page.waitForSelector('h1 .count:has-text("301")');
    const requests: string[] = [];
    page.on("request", (request) => {
      if (request.postData()?.includes('"extract"') === true) requests.push(request.url());
    });
    const search = page.locator('input[type="search"]');
    await search.fill("oolong");
    await expect.poll(() => names(page)).toEqual(["approval"]);
    expect(requests).toHaveLength(1);
    expect(await page.innerText(".stray")).toBe("");
    await search.fill("");
    // A reload shows what was looked for last, so each search has to be carried out before the next.
    await expect.poll(async () => (await names(page)).length).toBeGreaterThan(1);
    await makeThreads(url, 900);
    // Nothing changed in the thread, so its description is still known; after a reload of the page it is not.
    await search.fill("oolong");
    await expect.poll(() => names(page)).toEqual(["approval"]);
    expect(requests).toHaveLength(1);
    await page.reload();
    await page.getByText("No matching threads").waitFor();
    await expect
      .poll(() => page.innerText(".stray"))
      .toBe("Messages and state were searched only in the 1,000 threads that were updated last.");
    expect(wrong).toEqual([]);
  });

  test("their statuses change as they do; what is looked for is so after a reload, too; one that is deleted is gone", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const other = await newThread(url);
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await expect.poll(() => names(page)).toEqual(["Untitled thread", "Untitled thread"]);
    await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      input: { topic: "tea" },
    });
    await page.waitForSelector('.row[aria-posinset="1"] .about:has-text("tea")');
    await page.waitForSelector(`.row[aria-posinset="1"] a.thread.interrupted[href="#/threads/${thread}"]`);
    await page.selectOption('[aria-label="Status"]', "interrupted");
    await expect.poll(() => names(page)).toEqual(["approval"]);
    await page.reload();
    await expect.poll(() => names(page)).toEqual(["approval"]);
    expect(await page.inputValue('[aria-label="Status"]')).toBe("interrupted");
    await page.selectOption('[aria-label="Status"]', "");
    // By creation: runs do not change this order.
    await page.selectOption('[aria-label="Order"]', "oldest");
    await expect.poll(() => names(page)).toEqual(["approval", "Untitled thread"]);
    // By last change, the longest unchanged first.
    await page.selectOption('[aria-label="Order"]', "unchanged");
    await expect.poll(() => names(page)).toEqual(["Untitled thread", "approval"]);
    await page.selectOption('[aria-label="Order"]', "oldest");
    await page.click(`a.thread[href="#/threads/${other}"]`);
    await page.click('.head button:has-text("Delete")');
    await page.click('dialog button:has-text("Delete")');
    await expect.poll(() => names(page)).toEqual(["approval"]);
    expect(wrong).toEqual([]);
  });

  test("the controls of 1,000 of them stay within their column, and a notice covers no button of a run", async () => {
    const { url } = await serve();
    await makeThreads(url, 1_000);
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    const [run] = (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run?.run_id}`);
    for (const [width, height] of [
      [1400, 800],
      [1180, 700],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height });
      await page.waitForSelector('.head button:has-text("Run again")');
      await page.evaluate("navigator.clipboard.writeText = async () => undefined");
      await page.getByRole("button", { name: "Copy run ID" }).click();
      await page.locator(".notice").waitFor();
      // Playwright only checks whether they can be clicked.
      for (const name of ["Run again", "Copy link"])
        await page.getByRole("button", { name, exact: false }).first().click({ trial: true });
      await page.locator(".head .actions").getByRole("link", { name: "Thread" }).click({ trial: true });
      await page.getByRole("button", { name: "Dismiss" }).click();
      const out = await page.$$eval("aside.threads", ([aside]) =>
        [...(aside?.querySelectorAll(".tools *") ?? [])]
          .filter(
            (one) => one.getBoundingClientRect().right > (aside?.getBoundingClientRect().right ?? 0) + 1,
          )
          .map(({ tagName }) => tagName),
      );
      expect(out, String(width)).toEqual([]);
    }
    expect(wrong).toEqual([]);
  });

  test("a failed one whose state is edited is paused: it says so, and stays in sight among the failed ones", async () => {
    const fails = graph({
      state: { n: value(0) },
      nodes: {
        bad: async () => {
          throw new Error("no such card");
        },
      },
      edges: { start: "bad" },
    });
    const { url } = await serve({ graphs: { fails } });
    const made: string[] = [];
    for (let i = 0; i < 2; i++) {
      const thread = await newThread(url);
      await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "fails", input: { n: i } });
      made.push(thread);
    }
    const { page, wrong } = await opened(await browser(), `${url}/`);
    await page.selectOption('[aria-label="Status"]', "error");
    await expect.poll(() => names(page)).toEqual(["fails", "fails"]);
    expect(await page.innerText("a.thread .what >> nth=0")).toBe("failed: no such card");
    await page.click(`a.thread[href="#/threads/${made[0]}"]`);
    await page.getByRole("button", { name: "Edit state" }).click();
    await page.getByLabel("n", { exact: true }).fill("7");
    await page.click('dialog button:has-text("Save")');
    await page.getByText("The thread is paused: resume it to continue.").waitFor();
    await page.getByText("No longer matches the filter (now waiting or paused):").waitFor();
    expect(await page.getAttribute(".left a.thread", "href")).toBe(`#/threads/${made[0]}`);
    expect(await page.locator(".rows a.thread").count()).toBe(1);
    await page.getByRole("button", { name: "Resume" }).click();
    await expect.poll(() => page.locator(".rows a.thread").count()).toBe(2);
    await expect.poll(() => page.locator(".left").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("one that is being deleted is not read until that is answered", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const context = await browser();
    const answer = latch();
    const paths: string[] = [];
    await context.route(`**/threads/${thread}`, async (route) => {
      if (route.request().method() !== "DELETE") return route.continue();
      const response = await route.fetch();
      await answer.passed;
      await route.fulfill({ response });
    });
    const { page, wrong } = await opened(context, `${url}/#/threads/${thread}`);
    await page.waitForSelector('.head .live:has-text("live")');
    await page.click('.head button:has-text("Delete")');
    page.on("request", (request) => paths.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.click('dialog button:has-text("Delete")');
    await page.getByText("Thread not found").waitFor();
    // Longer than the time for which changes are gathered before a read.
    await page.waitForTimeout(500);
    // Earlier reads do not count: the page may still have had a change to read.
    const since = paths.slice(paths.indexOf(`DELETE /threads/${thread}`));
    expect(since.filter((path) => path.includes(thread))).toEqual([`DELETE /threads/${thread}`]);
    answer.pass();
    await page.getByText("Thread deleted.").waitFor();
    expect(wrong).toEqual([]);
  });
});

import type { BrowserContext, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { gated, latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { cableTo } from "./cable.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

const status = (page: Page): Promise<string> => page.innerText(".head .status");

/** From now on the pages' clock stands still, unless a test advances it. */
async function stopClock(context: BrowserContext): Promise<void> {
  await context.clock.install();
  await context.clock.pauseAt(Date.now() + 60_000);
}

/** Milliseconds: shorter than the interval at which a page reads everything again without a report. */
const SOON = 2_000;
/** A part of the address from which a thread's page reads the state. */
const STATE_READ = "/state?list_limit=500";

/** The content of the page while its clock advances by at most `SOON`. */
function whileTimeMoves(page: Page, shown: () => Promise<string>): () => Promise<string> {
  let moved = 0;
  return async () => {
    if (moved < SOON) await page.clock.runFor(100);
    moved += 100;
    return shown();
  };
}

/** Resolves when the page has received the response to a request. */
const answered = (context: BrowserContext, address: string): Promise<unknown> =>
  context.waitForEvent("response", (response) => response.url().includes(address));

/** Makes the first requests that match `url` fail, as during a restart of the server: more than a page sends anyway. */
async function failsAtFirst(page: Page, url: string): Promise<void> {
  await page.route(url, (route) => route.fulfill({ status: 503, json: { detail: "busy" } }), { times: 3 });
}

describe.skipIf(isMissing)("what a page shows of a thread", { timeout: 60_000 }, () => {
  test("is read again when its feed begins: what changed before may have come between the reads", async () => {
    const { held, waits, open } = gated();
    const app = await serve({ graphs: { held } });
    const thread = await newThread(app.url);
    const runs = `${app.url}/threads/${thread}/runs`;
    const { run_id } = await postJson<{ run_id: string }>(runs, {
      assistant_id: "held",
      input: { name: "a" },
    });
    await waits("a");
    const context = await browser();
    await stopClock(context);
    const list = await heldBack(context, /\/runs\?limit=100$/);
    const feed = latch();
    // The socket never connects.
    await context.routeWebSocket(/\/stream\?/, () => latch().passed);
    await context.routeWebSocket(/\/inspect\?/, async (socket) => {
      await feed.passed;
      socket.connectToServer();
    });
    const record = context.waitForEvent("response", (response) =>
      (response.request().postData() ?? "").includes(thread),
    );
    const state = answered(context, `/threads/${thread}${STATE_READ}`);
    const { page } = await opened(context, `${app.url}/#/threads/${thread}`);
    await page.clock.runFor(200);
    // The thread is read while its run is active, the list of its runs after the run has ended.
    await Promise.all([record, state]);
    open("a");
    await get(`${runs}/${run_id}/join`);
    list.pass();
    await expect.poll(() => status(page)).toBe("busy");
    feed.pass();
    await expect.poll(whileTimeMoves(page, () => status(page))).toBe("idle");
  });

  test("is its status before its state has come, which may be large and is read once", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const input = { assistant_id: "approval", input: { topic: "tea" } };
    await post(`${app.url}/threads/${thread}/runs/wait`, input);
    const context = await browser();
    const state = await heldBack(context, `**${STATE_READ}*`);
    const read: string[] = [];
    context.on("response", async (response) => read.push(await response.text().catch(() => "")));
    const { page, wrong } = await opened(context, `${app.url}/#/threads/${thread}`);
    await expect.poll(() => status(page)).toBe("waiting for an answer");
    await page.locator(".flow").getByText("Loading…").waitFor();
    expect(await page.getByText("No state yet").count()).toBe(0);
    expect(read.filter((text) => text.includes('"values":{'))).toEqual([]);
    state.pass();
    await page.waitForSelector(".card.state");
    expect(await page.locator(".flow").getByText("Loading…").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("is read again when its feed was interrupted: changes that the feed would have reported are seen", async () => {
    const { held, waits, open } = gated();
    const app = await serve({ graphs: { held } });
    const thread = await newThread(app.url);
    const ended = post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    await waits("a");
    open("a");
    await ended;
    const context = await browser();
    await stopClock(context);
    let interrupt = () => Promise.resolve();
    await context.routeWebSocket(/\/inspect\?/, (socket) => {
      socket.connectToServer();
      // The server does this with a page that is too slow.
      interrupt = () => socket.close({ code: 1013 });
    });
    const { page } = await opened(context, `${app.url}/#/threads/${thread}`);
    const name = async () => {
      const [state = ""] = await page.locator(".card.state").allInnerTexts();
      return /name\W+(.*)/.exec(state)?.[1] ?? "";
    };
    await expect.poll(whileTimeMoves(page, name)).toBe("a");
    await page.waitForSelector(".live.open");
    await interrupt();
    await postJson(`${app.url}/threads/${thread}/state`, { values: { name: "somebody else" } });
    await expect.poll(whileTimeMoves(page, name)).toBe("somebody else");
  });

  test("is read again after reads that failed", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const { page } = await opened(await browser(), app.url);
    await failsAtFirst(page, `**/threads/${thread}${STATE_READ}*`);
    await page.goto(`${app.url}/#/threads/${thread}`);
    await page.waitForSelector('.head .status:has-text("idle")');
    await expect.poll(() => page.locator(".failure").count()).toBe(0);
  });

  test("is read again where a read got no answer, in the list of threads too", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const context = await browser();
    await context.clock.install();
    // As with a dead connection that shows no sign of it.
    const silent = [`**/threads/${thread}${STATE_READ}*`, "**/threads/search"];
    for (const url of silent) await context.route(url, () => latch().passed, { times: 1 });
    const asked = silent.map((url) =>
      context.waitForEvent("request", {
        predicate: (request) => request.url().includes(url.replaceAll("*", "")),
      }),
    );
    const { page } = await opened(context, `${app.url}/#/threads/${thread}`);
    await Promise.all(asked);
    await page.clock.fastForward(60_000);
    await page.waitForSelector('.threads .failure:has-text("The server does not answer.")');
    await page.waitForSelector('.head .status:has-text("idle")');
    await page.clock.fastForward(10_000);
    await page.waitForSelector("a.thread");
    await expect.poll(() => page.locator(".failure").count()).toBe(0);
  });

  test("appears when a thread that was not there is created, and disappears when it is deleted", async () => {
    const app = await serve();
    const thread_id = "0b7d5a52-3d1c-4f0e-9a3e-5f2f0e6c7a11";
    const { page } = await opened(await browser(), `${app.url}/#/threads/${thread_id}`);
    const missing = page.getByText("Thread not found");
    await missing.waitFor();
    await postJson(`${app.url}/threads`, { thread_id });
    await page.waitForSelector('.head .status:has-text("idle")');
    await page.reload();
    await page.waitForSelector(".live.open");
    await fetch(`${app.url}/threads/${thread_id}`, { method: "DELETE" });
    await expect.poll(() => missing.isVisible()).toBe(true);
  });

  test("stays missing while reads fail, which do not tell whether it exists", async () => {
    const app = await serve();
    const thread = "0b7d5a52-3d1c-4f0e-9a3e-5f2f0e6c7a11";
    const context = await browser();
    await context.clock.install();
    const { page } = await opened(context, `${app.url}/#/threads/${thread}`);
    const missing = page.getByText("Thread not found");
    await missing.waitFor();
    const reason = page.locator(".empty .dim");
    const text = await reason.innerText();
    const busy = { status: 503, json: { detail: "busy" } };
    const reads = /\/threads\/(search|[0-9a-f-]{36}\/)/;
    await context.route(reads, (route) => route.fulfill(busy));
    // The second read is a repetition, which follows when the page has handled the failure of the first one.
    for (let i = 0; i < 2; i++) {
      const read = answered(context, `${thread}${STATE_READ}`);
      await page.clock.fastForward(20_000);
      await read;
    }
    expect(await missing.isVisible()).toBe(true);
    expect(await reason.innerText()).toBe(text);
    await context.unroute(reads);
    await postJson(`${app.url}/threads`, { thread_id: thread });
    await page.clock.fastForward(20_000);
    await page.waitForSelector('.head .status:has-text("idle")');
  });

  test.each(["", "/runs/"])("says that a thread is gone which is deleted during a run: %s", async (part) => {
    const held = gated();
    const app = await serve({ graphs: { held: held.held } });
    const thread = await newThread(app.url);
    const run = { assistant_id: "held", input: { name: "a" } };
    const { run_id } = await postJson<{ run_id: string }>(`${app.url}/threads/${thread}/runs`, run);
    await held.waits("a");
    const shown = part === "" ? "" : part + run_id;
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}${shown}`);
    await page.waitForSelector('.head .status:has-text("running"), .head .status:has-text("busy")');
    await page.waitForSelector(part === "" ? ".live.open" : ".line.task.running");
    await fetch(`${app.url}/threads/${thread}`, { method: "DELETE" });
    await page.getByText("The thread was deleted").waitFor();
    const reads: string[] = [];
    page.on("request", (request) => reads.push(request.url()));
    // Longer than the page's interval between two reads.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(reads.filter((url) => url.includes(thread))).toEqual([]);
    // A read that began before the page knew of the deletion finds nothing.
    expect(wrong.filter((line) => !line.includes("404"))).toEqual([]);
  });

  test("includes, after a while, what nothing reports: that a run was deleted elsewhere", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const run = { assistant_id: "approval", input: { topic: "tea" } };
    await post(`${app.url}/threads/${thread}/runs/wait`, run);
    await post(`${app.url}/threads/${thread}/runs/wait`, run);
    const context = await browser();
    await context.clock.install();
    const { page, wrong } = await opened(context, `${app.url}/#/threads/${thread}?tab=runs`);
    await expect.poll(() => page.locator(".runs li").count()).toBe(2);
    await page.waitForSelector(".live.open");
    const [, first] = (await (await get(`${app.url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    await fetch(`${app.url}/threads/${thread}/runs/${first?.run_id}`, { method: "DELETE" });
    await page.clock.fastForward(20_000);
    await expect.poll(() => page.locator(".runs li").count()).toBe(1);
    expect(wrong).toEqual([]);
  });

  test("by its run: that an answer was given while the connection was lost", async () => {
    const app = await serve();
    const cable = await cableTo(app.url);
    const thread = await newThread(app.url);
    const runs = `${app.url}/threads/${thread}/runs`;
    await post(`${runs}/wait`, { assistant_id: "approval", input: { topic: "tea" } });
    const [run] = (await (await get(runs)).json()) as { run_id: string }[];
    const { page } = await opened(await browser(), `${cable.url}/#/threads/${thread}/runs/${run?.run_id}`);
    await expect.poll(() => status(page)).toBe("waiting for an answer");
    cable.pull();
    await post(`${runs}/wait`, { assistant_id: "approval", command: { resume: { ok: true, note: "" } } });
    cable.plug();
    await expect.poll(() => status(page)).toBe("succeeded");
  });

  test("in the inspector is read again after reads that failed", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    const { page } = await opened(await browser(), app.url);
    await failsAtFirst(page, `**/threads/${thread}/history`);
    await page.goto(`${app.url}/inspector?thread_id=${thread}`);
    await expect.poll(() => page.locator('#log li:has-text("graph approval")').count()).toBeGreaterThan(0);
  });
});

describe.skipIf(isMissing)("what a page reads once", { timeout: 60_000 }, () => {
  test("is there although the server was busy at first: assistants, the form of their input", async () => {
    const app = await serve();
    const { page } = await opened(await browser(), app.url);
    await failsAtFirst(page, "**/assistants/search");
    await failsAtFirst(page, "**/assistants/*/schemas");
    await page.goto(`${app.url}/#/new?graph=approval`);
    await page.reload();
    await page.waitForSelector('option:checked:has-text("approval")', { state: "attached" });
    await page.getByLabel("topic").waitFor();
    await expect.poll(() => page.locator(".bad").count()).toBe(0);
  });

  test("replaces no JSON that somebody has begun to write while a form could not be made", async () => {
    const app = await serve();
    const context = await browser();
    await context.clock.install();
    const { page } = await opened(context, app.url);
    // Until the JSON is begun, because the form would take its place.
    const schemas = "**/assistants/*/schemas";
    await page.route(schemas, (route) => route.fulfill({ status: 503, json: { detail: "busy" } }));
    await page.goto(`${app.url}/#/new?graph=approval`);
    await page.reload();
    await page.getByLabel("Input, as JSON").fill('{"topic": ');
    await page.locator('form > .bad:has-text("busy")').waitFor();
    await page.unroute(schemas);
    await page.clock.fastForward(60_000);
    await page.waitForSelector('option:checked:has-text("approval")', { state: "attached" });
    await page.locator('form > .bad:has-text("busy")').waitFor({ state: "detached" });
    expect(await page.getByLabel("Input, as JSON").inputValue()).toBe('{"topic": ');
  });

  test("is there although the server was busy at first: what a thread in the list is about", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      input: { topic: "tea" },
    });
    const { page } = await opened(await browser(), `${app.url}/#/graphs`);
    await failsAtFirst(page, "**/assistants/*/schemas");
    await page.goto(`${app.url}/#/threads`);
    await expect
      .poll(() => page.locator("a.thread .about").allInnerTexts())
      .toEqual([expect.stringContaining("tea")]);
  });
});

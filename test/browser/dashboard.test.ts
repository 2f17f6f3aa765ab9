import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { headersOf, type Name, owned, tokens } from "../e2e/support/auth.ts";
import { gated } from "../e2e/support/latches.ts";
import { directory, serve } from "../e2e/support/server.ts";
import { get, newThread, post } from "../e2e/support/wire.ts";
import { cableTo } from "./cable.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";
import { talker } from "./talker.ts";

const said = (page: Page): Promise<string[]> =>
  page.$$eval(".bubble .text", (texts) => texts.map(({ textContent }) => textContent ?? ""));

const status = (page: Page): Promise<string> => page.innerText(".head .status");

/** The nodes of the drawn graph with this mark. */
const marked = (page: Page, mark: string): Promise<string[]> =>
  page.$$eval(`.graphs svg g.${mark}[data-node]`, (groups) =>
    groups.map((group) => group.getAttribute("data-node") ?? ""),
  );

describe.skipIf(isMissing)("the dashboard in a real browser", { timeout: 60_000 }, () => {
  test("a run is started, its tokens appear one by one, it is followed step by step and found again by its link", async () => {
    const { talking, say, end } = talker(["Good ", "morning ", "sir"]);
    const app = await serve({ graphs: { talking } });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/new?graph=talking`);
    await page.waitForSelector('option:checked:has-text("talking")', { state: "attached" });
    await page.fill("textarea.message", "hello");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".bubble.human");
    say("Good ");
    await expect.poll(() => said(page)).toEqual(["hello", "Good "]);
    say("morning ");
    await expect.poll(() => said(page)).toEqual(["hello", "Good morning "]);
    expect(await status(page)).toBe("busy");

    await page.click('.working a:has-text("Open run")');
    await page.waitForSelector(".line.task.running");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.innerText(".detail .tokens")).toBe("Good morning ");
    say("sir");
    end();
    await page.waitForSelector(".line.task.done");
    await expect.poll(() => page.innerText(".detail .tokens")).toBe("Good morning sir");
    expect(await page.innerText(".detail .diff ins")).toContain("Good morning sir");
    expect(page.url()).toMatch(/#\/threads\/.+\/runs\/.+\?task=.+&step=1$/);
    await page.reload();
    await expect.poll(() => page.innerText(".detail .tokens")).toBe("Good morning sir");
    await page.click('.head a:has-text("Thread")');
    await expect.poll(() => said(page)).toEqual(["hello", "Good morning sir"]);
    expect(await status(page)).toBe("idle");
    expect(wrong).toEqual([]);
  });

  test("nodes light up and are marked when done; a cancel stops the run", async () => {
    const { held, waits } = gated();
    const app = await serve({ graphs: { held } });
    const thread = await newThread(app.url);
    const context = await browser();
    await context.clock.install();
    const { page, wrong } = await opened(context, `${app.url}/#/threads/${thread}?tab=graph`);
    await post(`${app.url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "a" } });
    await waits("a");
    await expect.poll(() => marked(page, "running"), { timeout: 30_000 }).toEqual(["hold"]);
    await expect.poll(() => marked(page, "done")).toEqual(["begin"]);
    await post(`${app.url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: { name: "b" },
      multitask_strategy: "enqueue",
    });
    await page.click('.tabs a:has-text("Runs")');
    await page.waitForSelector('.runs li:has-text("next in the queue")');
    // All ages use one clock.
    await page.clock.fastForward(180_000);
    const aged = (place: string) => expect.poll(() => page.innerText(place)).toContain("3m");
    for (const place of ["a.thread", ".head", ".runs li:last-child"]) await aged(place);
    // The run's duration is there once the page knows when the run began.
    await expect.poll(() => page.innerText(".runs li:last-child")).toMatch(/3m ago · 3 m \d+ s/);
    await page.click('.runs li:has-text("running") button:has-text("Cancel")');
    await page.waitForSelector('.runs li:has-text("cancelled")');
    // The queued run is running now.
    await waits("b");
    await page.waitForSelector('.runs li:has-text("running")');
    await page.click('.head button:has-text("Cancel run")');
    await expect.poll(() => page.locator('.runs li:has-text("cancelled")').count()).toBe(2);
    expect(await status(page)).toBe("idle");
    expect(wrong).toEqual([]);
  });

  test("a tab of a thread may be named in the path; a part of an address that is no page's is said to be none", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}/runs`);
    const current = page.locator('.tabs a[aria-current="page"]');
    await expect.poll(() => current.innerText()).toBe("Runs");
    await page.goto(`${app.url}/#/threads/${thread}/history`);
    await expect.poll(() => current.innerText()).toBe("History");
    await page.click('.tabs a:has-text("Current")');
    await expect.poll(() => current.innerText()).toBe("Current");
    for (const path of ["rums", "runs/1", `history/${thread}`, `runs/${thread}/${thread}`]) {
      await page.goto(`${app.url}/#/threads/${thread}`);
      await current.waitFor();
      await page.goto(`${app.url}/#/threads/${thread}/${path}`);
      await page.getByText("Page not found").waitFor();
    }
    expect(wrong).toEqual([]);
  });

  test("an interrupt is answered, by keyboard and as JSON; bad JSON is told and not sent", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      input: { topic: "tea" },
    });
    const [run] = (await (await get(`${app.url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(
      await browser(),
      `${app.url}/#/threads/${thread}/runs/${run?.run_id}`,
    );
    await expect.poll(() => status(page)).toBe("waiting for an answer");
    expect(await page.getByRole("link", { name: "Answer", exact: true }).getAttribute("href")).toBe(
      `#/threads/${thread}`,
    );
    await page.click('.head a:has-text("Thread")');
    await page.click('.tabs a:has-text("Runs")');
    await page.waitForSelector('.runs li:has-text("waiting for an answer")');
    await page.getByRole("link", { name: "Answer", exact: true }).click();
    await page.waitForSelector('legend:has-text("Question from review")');
    expect(await page.innerText(".question")).toContain("Draft 1: tea");
    await page.click('.ways button:has-text("JSON")');
    const json = page.getByLabel("Answer, as JSON");
    await json.fill('{"ok": ');
    expect(await page.innerText('.question [role="alert"]')).toContain("Invalid JSON");
    expect(await page.isDisabled('button:has-text("Send answer")')).toBe(true);
    await json.fill('{"ok": false, "note": "longer"}');
    await page.click('button:has-text("Send answer")');
    await page.waitForSelector('.question:has-text("Draft 3: tea (longer)")');
    await page.waitForSelector('.hint:has-text("Missing: Send it?")');
    await page.getByRole("radio", { name: "yes" }).check();
    await page.focus('button:has-text("Send answer")');
    await page.keyboard.press("Enter");
    await expect.poll(() => status(page)).toBe("idle");
    expect(await page.innerText(".card.state")).toContain("approved");
    expect(wrong).toEqual([]);
  });

  test("the connection drops and comes back: no token is lost, none comes twice", async () => {
    const words = ["one ", "two ", "three ", "four ", "five "];
    const { talking, say, end } = talker(words);
    const app = await serve({ graphs: { talking } });
    const cable = await cableTo(app.url);
    const thread = await newThread(app.url);
    await post(`${app.url}/threads/${thread}/runs`, { assistant_id: "talking", input: { messages: [] } });
    const { page } = await opened(await browser(), `${cable.url}/#/threads/${thread}`);
    say("one ");
    say("two ");
    await expect.poll(() => said(page)).toEqual(["one two "]);
    cable.pull();
    await page.waitForSelector(".live.broken");
    say("three ");
    say("four ");
    cable.plug();
    await expect.poll(() => said(page), { timeout: 15_000 }).toEqual(["one two three four "]);
    say("five ");
    await expect.poll(() => said(page)).toEqual([words.join("")]);
    end();
    await expect.poll(() => status(page)).toBe("idle");
    expect(await said(page)).toEqual([words.join("")]);
    await page.click('.tabs a:has-text("Events")');
    const ids = await page.$$eval(".events .id", (all) => all.map(({ textContent }) => Number(textContent)));
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
  });

  test("one travels in time, sees what changed, edits a state, goes on from an older one, and compares two runs", async () => {
    const app = await serve();
    const thread = await newThread(app.url);
    const runs = `${app.url}/threads/${thread}/runs`;
    await post(`${runs}/wait`, { assistant_id: "approval", input: { topic: "tea" } });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}?tab=history`);
    await page.waitForSelector('.moment h3:has-text("Checkpoint, after superstep 1")');
    expect(await page.innerText(".diff ins")).toContain('"draft": "Draft 1: tea"');
    await page.focus('input[type="range"]');
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector('.moment h3:has-text("Checkpoint, start of the run → write")');
    expect(page.url()).toContain("at=");

    await page.click('button:has-text("Edit state")');
    await page.fill("#edit-values", '{"topic": "coffee"}');
    await page.fill("#edit-node", "__start__");
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector('.moment h3:has-text("Checkpoint, update")');
    expect(await page.innerText(".diff ins")).toContain('"topic": "coffee"');
    // The abandoned branch has a slider of its own.
    expect(await page.innerText(".travel > .dim")).toBe("3 of 3");
    await page.getByLabel("Branch").selectOption({ index: 1 });
    await page.waitForSelector('.moment h3:has-text("Checkpoint, after superstep 1")');
    await page.getByLabel("Branch").selectOption({ index: 0 });
    await page.waitForSelector('.moment h3:has-text("Checkpoint, update")');
    await page.click('button:has-text("Run from this state")');
    await page.waitForSelector('.question:has-text("coffee")');

    await page.click('.tabs a:has-text("Runs")');
    await page.waitForSelector(".runs li:nth-child(2)");
    for (const box of await page.$$(".runs input")) await box.check();
    await page.click('a:has-text("Compare")');
    await page.waitForSelector('.compare td:has-text("write")');
    await expect.poll(() => page.innerText(".compare")).toContain("Draft 1: coffee");
    const outputs = page.locator('.compare tr:has(td:text-is("write"))');
    await expect.poll(() => outputs.innerText()).toContain("differs");
    expect(wrong).toEqual([]);
  });

  test("after nodes that ran in parallel, an edit asks for the node that it is stored as, and offers all", async () => {
    const both = graph({
      state: { amount: value(0), said: list<string>() },
      nodes: {
        begin: async () => ({ said: ["begin"] }),
        left: async () => ({ said: ["left"] }),
        right: async () => ({ said: ["right"] }),
        charge: async ({ amount }) => {
          if (amount < 0) throw new RangeError("too little");
          return { said: ["charge"] };
        },
      },
      edges: { start: "begin", begin: ["left", "right"], left: "charge", right: "charge" },
    });
    const app = await serve({ graphs: { both } });
    const thread = await newThread(app.url);
    const runs = `${app.url}/threads/${thread}/runs`;
    await post(`${runs}/wait`, { assistant_id: "both", input: { amount: -1 } });
    const { page } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    await page.click('button:has-text("Edit state")');
    await page.fill("dialog input[inputmode=decimal]", "5");
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector('dialog [role="alert"]:has-text("Choose a node"):has-text("left, right")');
    expect(await page.getAttribute("#edit-node", "aria-invalid")).toBe("true");
    const offered = await page.$$eval("#edit-nodes option", (all) =>
      all.map((one) => one.getAttribute("value")),
    );
    expect(offered.toSorted()).toEqual(["begin", "charge", "left", "right"]);
    await page.fill("#edit-node", "right");
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector("dialog", { state: "detached" });
    await page.click('button:has-text("Resume")');
    await expect.poll(() => status(page)).toBe("idle");
    const { values } = (await (await fetch(`${app.url}/threads/${thread}/state`)).json()) as {
      readonly values: { readonly amount: number; readonly said: readonly string[] };
    };
    expect(values.amount).toBe(5);
    expect(values.said.at(-1)).toBe("charge");
  });

  test("under a prefix, with a key: it is asked for, a wrong one again", async () => {
    const app = await serve({ mount: "/api", keys: ["sesame"] });
    const headers = { "x-api-key": "sesame", "content-type": "application/json" };
    const answer = await fetch(`${app.url}/api/threads`, { method: "POST", headers, body: "{}" });
    const { thread_id } = (await answer.json()) as { thread_id: string };
    const { page } = await opened(await browser(), `${app.url}/api#/threads/${thread_id}`);
    await page.waitForSelector("#secret:focus");
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.lock [role="alert"]:has-text("is not valid")');
    await page.fill("#secret", "sesame");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`.head:has-text("${thread_id}")`);
    await page.waitForSelector(".live.open");
    expect(new URL(page.url()).pathname).toBe("/api/");
  });

  test("servers below different prefixes of an origin get only their own keys", async () => {
    const one = await serve({ mount: "/one", keys: ["key-of-one"] });
    const other = await serve({ mount: "/other", keys: ["key-of-other"] });
    const context = await browser();
    // What a proxy does that serves both.
    await context.route(`${one.url}/other/**`, async (route) => {
      const { origin: _, ...headers } = route.request().headers();
      const url = route.request().url().replace(one.url, other.url);
      await route.fulfill({ response: await route.fetch({ url, headers }) });
    });
    const keys = new Set<string | undefined>();
    context.on("request", (request) => {
      if (request.url().includes("/other/")) keys.add(request.headers()["x-api-key"]);
    });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(`${one.url}/one/#/runs`);
    await page.fill("#secret", "key-of-one");
    await page.keyboard.press("Enter");
    await page.getByText("No runs yet").waitFor();
    await page.goto(`${one.url}/other/#/runs`);
    await page.waitForSelector("#secret:focus");
    expect([...keys]).toEqual([undefined]);
    await page.fill("#secret", "key-of-other");
    await page.keyboard.press("Enter");
    await page.getByText("No runs yet").waitFor();
    await page.goto(`${one.url}/one/#/runs`);
    await page.getByText("No runs yet").waitFor();
  });

  test("an edit of an older state says that it begins a branch; one of the latest state does not", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "approval", input: { topic: "tea" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    const dialog = page.getByRole("dialog", { name: "Edit state" });
    const edit = page.getByRole("button", { name: "Edit state" });
    const told = dialog.getByText("This is an older state: after saving, the thread continues from it.");
    await edit.click();
    await dialog.getByRole("button", { name: "Save", exact: true }).waitFor();
    expect(await told.count()).toBe(0);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Earlier" }).click();
    await edit.click();
    await told.waitFor();
    await dialog.getByLabel("topic").fill("coffee");
    await dialog.getByRole("button", { name: "Save as a branch", exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(await (await fetch(`${url}/threads/${thread}/state`)).json()).toMatchObject({
      values: { topic: "coffee" },
    });
    await page.getByLabel("Branch").waitFor();
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(isMissing)("with users", { timeout: 60_000 }, () => {
  test("each sees with a token what is the user's own, live too; what is another's is not there", async () => {
    const app = await serve({ auth: owned() });
    const made = async (name: Name): Promise<string> => {
      const headers = { ...headersOf(name), "content-type": "application/json" };
      const answer = await fetch(`${app.url}/threads`, { method: "POST", headers, body: "{}" });
      return ((await answer.json()) as { thread_id: string }).thread_id;
    };
    const [own, foreign] = [await made("alice"), await made("bob")];
    const { page } = await opened(await browser(), `${app.url}/#/threads/${own}`);
    await page.waitForSelector("#secret:focus");
    await page.keyboard.type(tokens.alice);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`.head:has-text("${own}")`);
    await page.waitForSelector(".live.open");
    await page.goto(`${app.url}/#/threads`);
    await page.waitForSelector(`a[href*="${own}"]`);
    expect(await page.locator(`a[href*="${foreign}"]`).count()).toBe(0);
    await page.goto(`${app.url}/#/threads/${foreign}`);
    await page.waitForSelector(':text("not found")');
  });
});

describe("its address", () => {
  const html = { accept: "text/html,*/*;q=0.8" };

  test("gives the page to browsers, with a policy that lets it ask nobody else; programs are told where the documentation is", async () => {
    const { url } = await serve();
    const page = await fetch(`${url}/`, { headers: html });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    for (const accept of ["application/json", "*/*"]) {
      const answer = await fetch(`${url}/`, { headers: { accept } });
      expect([answer.status, await answer.json()]).toMatchObject([200, { ok: true, docs: "/docs" }]);
    }
    const script = await fetch(`${url}/dashboard/dashboard.js`);
    expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect((await fetch(`${url}/dashboard/..%2Fpages.js`)).status).toBe(404);
  });

  test("is not there where http.disable_ui says so", async () => {
    const config = join(await directory(), "heddle.json");
    await writeFile(config, JSON.stringify({ graphs: {}, http: { disable_ui: true } }));
    const { url } = await serve({ config });
    expect((await fetch(`${url}/`, { headers: html })).status).toBe(404);
    expect((await fetch(`${url}/dashboard/dashboard.js`)).status).toBe(404);
    expect((await fetch(`${url}/ok`)).status).toBe(200);
  });
});

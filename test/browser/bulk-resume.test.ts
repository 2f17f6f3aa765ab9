import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** Two graphs of two steps. The second step fails for "bad" until the test repairs it, and for "worse" always. */
function fragile() {
  let isMended = false;
  const prepared: string[] = [];
  const prepare = (name: string) => {
    prepared.push(name);
    return { log: ["prepared"] };
  };
  const finish = (name: string) => {
    if (name === "worse" || (name === "bad" && !isMended)) throw new TypeError("no such file");
    return { log: [`finished ${name}`] };
  };
  const own = graph({
    state: { log: list<string>(), name: value("") },
    nodes: { prepare: async ({ name }) => prepare(name), finish: async ({ name }) => finish(name) },
    edges: { start: "prepare", prepare: "finish" },
  });
  const State = Annotation.Root({
    log: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
    name: Annotation<string>(),
  });
  const js = new StateGraph(State)
    .addNode("prepare", ({ name }) => prepare(name))
    .addNode("finish", ({ name }) => finish(name))
    .addEdge(START, "prepare")
    .addEdge("prepare", "finish")
    .compile();
  return { own, js, prepared, mend: () => (isMended = true) };
}

/** A graph that puts a setting of the run into its log: when it goes on after a failure, and when it was answered. */
function settings() {
  let isMended = false;
  const tones = graph({
    state: { log: list<string>() },
    nodes: {
      go: async (_, ctx) => {
        if (!isMended) throw new TypeError("no such file");
        return { log: [toneOf(ctx)] };
      },
      ask: async (_, ctx) => {
        await ctx.interrupt("May it go out?");
        return { log: [toneOf(ctx)] };
      },
    },
    edges: { start: "go", go: "ask" },
  });
  return { tones, mend: () => (isMended = true) };
}

const toneOf = ({ config }: { readonly config: { readonly [name: string]: unknown } }): string =>
  String((config["configurable"] as { readonly tone?: string }).tone);

describe.skipIf(isMissing)("failed runs of many threads in a real browser", { timeout: 60_000 }, () => {
  test("are resumed together where their threads have not gone on; the list says what became of them", async () => {
    const { own, js, prepared, mend } = fragile();
    const { url } = await serve({ graphs: { own }, langGraphs: await served({ js }) });
    const runs = (thread: string) => `${url}/threads/${thread}/runs`;
    const failing = async (assistant_id: string, ...names: readonly (string | null)[]) => {
      const thread = await newThread(url);
      for (const name of names) {
        const input = name === null ? null : { name };
        await postJson(`${runs(thread)}/wait`, { assistant_id, input });
      }
      return thread;
    };
    const once = await failing("own", "bad");
    const ofLangGraph = await failing("js", "bad");
    const twice = await failing("own", "bad", "bad");
    const goneOn = await failing("own", "bad", "good");
    const hopeless = await failing("own", "worse");
    await failing("own", null);
    prepared.length = 0;

    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    const rows = page.locator(".all-runs tbody tr");
    await expect.poll(() => rows.count()).toBe(8);
    await page.getByLabel("Select all runs on this page").check();
    const bar = page.getByRole("group", { name: "Selected runs" });
    await expect
      .poll(() => bar.innerText())
      .toContain(
        "4 of 8 selected can be resumed. Skipped: 1 that did not fail, 1 whose thread has gone on with newer runs, 1 whose thread is resumed from its latest run instead, 1 without a pending task.",
      );
    mend();
    await bar.getByRole("button", { name: "Resume" }).click();
    const results = page.locator(".run-results");
    await expect.poll(() => results.innerText()).toBe("Done: 4. Not done: 4; the rows show why.");
    const started = page.locator(".started-runs");
    await expect.poll(() => started.innerText()).toBe("4 runs started: 3 succeeded, 1 failed");
    const told = (await rows.locator(".result").allInnerTexts()).toSorted();
    expect(told).toEqual([
      "Resumed: failed",
      "Resumed: succeeded",
      "Resumed: succeeded",
      "Resumed: succeeded",
      "Skipped: a later run of this thread is resumed instead",
      "Skipped: no task is pending",
      "Skipped: the run did not fail",
      "Skipped: the thread has newer runs",
    ]);
    // What had succeeded did not run again.
    expect(prepared).toEqual([]);
    const logOf = async (thread: string) => {
      const state = await (await get(`${url}/threads/${thread}/state`)).json();
      return (state as { values: { log: string[] } }).values.log;
    };
    expect(await logOf(once)).toEqual(["prepared", "finished bad"]);
    expect(await logOf(ofLangGraph)).toEqual(["prepared", "finished bad"]);
    expect(await logOf(twice)).toEqual(["prepared", "prepared", "finished bad"]);
    const countOf = async (thread: string) =>
      ((await (await get(runs(thread))).json()) as readonly unknown[]).length;
    expect(await countOf(twice)).toBe(3);
    expect(await countOf(goneOn)).toBe(2);

    await started.getByRole("link", { name: "1 failed" }).click();
    await expect.poll(() => rows.locator(".status").allInnerTexts()).toEqual(["failed"]);
    expect(await rows.locator('a[href*="/threads/"]').last().getAttribute("href")).toContain(hopeless);
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(12);
    await page.reload();
    const since = async () => (await rows.locator(".since").allInnerTexts()).toSorted();
    const resumed = "resumed by another run";
    const gone = "the thread has newer runs";
    await expect.poll(since).toEqual([resumed, resumed, resumed, resumed, gone, gone]);
    const failed = rows.filter({ hasText: resumed }).filter({ hasText: "js" });
    await failed.locator(".which a").first().click();
    await page.waitForURL(/#\/threads\/.*\/runs\//);
    await rows.first().waitFor({ state: "detached" });
    await page.getByRole("link", { name: /^…/ }).click();
    await expect.poll(() => page.locator(".head .status").innerText()).toBe("succeeded");
    expect(wrong).toEqual([]);
  });

  test("leave nothing to resume where none has failed, and can be run again all the same", async () => {
    const { own } = fragile();
    const { url } = await serve({ graphs: { own } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "own", input: { name: "good" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.getByLabel("Select all runs on this page").check();
    const bar = page.getByRole("group", { name: "Selected runs" });
    await expect
      .poll(() => bar.innerText())
      .toContain("0 of 1 selected can be resumed. Skipped: 1 that did not fail.");
    expect(await bar.getByRole("button", { name: "Resume" }).isDisabled()).toBe(true);
    await bar.getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.locator(".started-runs").innerText()).toBe("1 run started: 1 succeeded");
    expect(wrong).toEqual([]);
  });

  test("say that a run failed, and not that it failed again, where the earlier one had succeeded", async () => {
    let isBroken = false;
    const own = graph({
      state: { log: list<string>() },
      nodes: {
        go: async () => {
          if (isBroken) throw new TypeError("no such file");
          return {};
        },
      },
      edges: { start: "go" },
    });
    const { url } = await serve({ graphs: { own } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "own", input: {} });
    isBroken = true;
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.getByLabel("Select all runs on this page").check();
    await page.getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => page.locator(".started-runs").innerText()).toBe("1 run started: 1 failed");
    expect(await page.locator(".result").innerText()).toBe("Run again: failed");
    expect(wrong).toEqual([]);
  });

  test("keep their settings when they are resumed", async () => {
    let isMended = false;
    const own = graph({
      state: { log: list<string>() },
      nodes: {
        go: async (_, { config }) => {
          if (!isMended) throw new TypeError("no such file");
          return { log: [String((config["configurable"] as { tone?: string }).tone)] };
        },
      },
      edges: { start: "go" },
    });
    const { url } = await serve({ graphs: { own } });
    const thread = await newThread(url);
    const config = { configurable: { tone: "polite" } };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "own", input: {}, config });
    isMended = true;
    const { page, wrong } = await opened(await browser(), `${url}/#/runs`);
    await page.getByLabel("Select all runs on this page").check();
    await page.getByRole("button", { name: "Resume" }).click();
    await expect.poll(() => page.locator(".started-runs").innerText()).toBe("1 run started: 1 succeeded");
    const state = await (await get(`${url}/threads/${thread}/state`)).json();
    expect(state).toMatchObject({ values: { log: ["polite"] } });
    expect(wrong).toEqual([]);
  });

  test("and questions keep the settings of their run on the page of the thread, too", async () => {
    const { tones, mend } = settings();
    const { url } = await serve({ graphs: { tones } });
    const thread = await newThread(url);
    const config = { configurable: { tone: "polite" } };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "tones", input: {}, config });
    mend();
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("textbox", { name: "Answer" }).fill("Yes");
    await page.getByRole("button", { name: "Send answer" }).click();
    const log = async () => {
      const state = await (await get(`${url}/threads/${thread}/state`)).json();
      return (state as { values: { log: string[] } }).values.log;
    };
    await expect.poll(log).toEqual(["polite", "polite"]);
    expect(wrong).toEqual([]);
  });

  test("are resumed although the thread of one is deleted, and its row says so; other failures stay in view", async () => {
    const { own, mend } = fragile();
    const { url } = await serve({ graphs: { own } });
    const failing = async () => {
      const thread = await newThread(url);
      await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "own", input: { name: "bad" } });
      return thread;
    };
    const deleted = await failing();
    await failing();
    const context = await browser();
    const { page } = await opened(context, `${url}/#/runs`);
    await page.getByLabel("Select all runs on this page").check();
    const bar = page.getByRole("group", { name: "Selected runs" });
    await expect.poll(() => bar.innerText()).toContain("2 of 2 selected can be resumed.");
    mend();
    await context.route("**/state?*", (route) => route.fulfill({ status: 503, json: { detail: "busy" } }));
    await bar.getByRole("button", { name: "Resume" }).click();
    await page.locator(".failure", { hasText: "busy" }).waitFor();
    await context.unrouteAll({ behavior: "wait" });
    await page.waitForResponse("**/runs/search");
    await page.waitForResponse("**/runs/search");
    expect(await page.locator(".failure").innerText()).toContain("busy");

    await fetch(`${url}/threads/${deleted}`, { method: "DELETE" });
    await bar.getByRole("button", { name: "Resume" }).click();
    await expect
      .poll(async () => (await page.locator(".all-runs tbody .result").allInnerTexts()).toSorted())
      .toEqual(["Resumed: succeeded", "Skipped: the thread is deleted"]);
    expect(await page.locator(".failure").count()).toBe(0);
  });
});

import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, test } from "vitest";
import { latches, unlessAborted } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { bundlePage, errorsOf, servePage } from "./react-page.ts";

let script = "";
beforeAll(() => {
  script = bundlePage("progress.tsx");
}, 60_000);

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (before, more) => [...before, ...more], default: () => [] }),
});

/** A graph of LangGraph.js that reports its progress; the test lets it go on after each step. */
function working() {
  const opened = latches();
  const report =
    (done: number) =>
    async (_: unknown, { writer, signal }: LangGraphRunnableConfig) => {
      writer?.({ name: "progress", payload: { done } });
      writer?.({ name: "other", payload: { done: -1 } });
      await unlessAborted(opened(String(done)).passed, signal as AbortSignal);
      return { log: [`did ${done}`] };
    };
  const work = new StateGraph(State)
    .addNode("first", report(1))
    .addNode("second", report(2))
    .addEdge("__start__", "first")
    .addEdge("first", "second")
    .compile();
  return { work, open: (done: number) => opened(String(done)).pass() };
}

describe.skipIf(isMissing)("useExtension in a real browser", { timeout: 60_000 }, () => {
  test.each(["sse", "websocket"])(
    "over %s: what a node reports under a name is shown while it runs, after a reload, and to the end",
    async (transport) => {
      const { work, open } = working();
      const app = await serve({ langGraphs: await served({ work }) });
      const query = new URLSearchParams({ api: app.url, transport });
      const page = await (await browser()).newPage();
      page.setDefaultTimeout(10_000);
      const wrong = errorsOf(page);
      const shows = (done: number) => page.waitForSelector(`#progress:text-is('${done}')`);
      const shown = () => page.evaluate("window.shownProgress");
      await page.goto(`${await servePage(script)}/?${query.toString()}`);
      await page.click("text=start");
      await shows(1);
      await page.reload();
      await shows(1);
      open(1);
      await shows(2);
      open(2);
      await page.waitForSelector("#log:text-is('did 1 did 2')");
      await page.waitForSelector("main[data-loading=false]");
      expect(await shown()).toEqual([1, 2]);

      // The bars are open now: the next run goes through at once, and the handle of the thread is read to its end.
      await page.click("text=start");
      await page.waitForSelector("#log:text-is('did 1 did 2 did 1 did 2')");
      // The handle is a new subscription, which gets the latest runs from their start, and closes itself when it has seen the end of a run.
      // How much of the two runs is in it depends on how the events arrive: on a busy machine it gave nothing once.
      const read = await page.evaluate("window.readProgress");
      const runs = [1, 2, 1, 2].map((done) => ({ done }));
      expect(read).toEqual(runs.slice(0, (read as readonly unknown[]).length));
      await shows(2);
      await page.reload();
      await shows(2);
      expect(await page.textContent("#error")).toBe("");
      expect(wrong).toEqual([]);
    },
  );
});

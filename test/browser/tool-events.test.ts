import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, test } from "vitest";
import { ScriptedModel } from "../conformance/scripted-model.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { bundlePage, errorsOf, servePage } from "./react-page.ts";

let script = "";
beforeAll(() => {
  script = bundlePage("tools.tsx");
}, 60_000);

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const;

/** An agent whose tool reports its progress; the test lets it go on. */
function working() {
  const opened = latch();
  const search = tool(
    async function* ({ city }: { readonly city: string }) {
      yield { found: 1 };
      await opened.passed;
      return `Sunny in ${city}`;
    },
    { name: "search", description: "Searches", schema },
  );
  const work = createReactAgent({
    llm: new ScriptedModel([
      { text: "Let me look ", call: { name: "search", args: { city: "Lisbon" } } },
      { text: "It is sunny" },
    ]),
    tools: [search],
  });
  return { work, open: () => opened.pass() };
}

describe.skipIf(isMissing)("useStream in a real browser", { timeout: 60_000 }, () => {
  test("onToolEvent and toolProgress show a tool while it runs, and its end", async () => {
    const { work, open } = working();
    const app = await serve({ langGraphs: await served({ work }) });
    const page = await (await browser()).newPage();
    page.setDefaultTimeout(10_000);
    const wrong = errorsOf(page);
    await page.goto(`${await servePage(script)}/?api=${encodeURIComponent(app.url)}`);
    await page.click("text=start");
    await page.waitForSelector(`li:text-is('search running {"found":1}')`);
    open();
    await page.waitForSelector("li:text-matches('search completed')");
    await page.waitForSelector("main[data-loading=false]");
    expect(await page.evaluate("window.toolEvents")).toEqual([
      "on_tool_start",
      "on_tool_event",
      "on_tool_end",
    ]);
    expect(await page.textContent("#error")).toBe("");
    expect(wrong).toEqual([]);
  });
});

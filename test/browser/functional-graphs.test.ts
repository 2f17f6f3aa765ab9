import { entrypoint } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

describe.skipIf(isMissing)("a graph of the functional API in a real browser", { timeout: 60_000 }, () => {
  test.each([
    ["nothing", null, "The state has no values."],
    ["a text", "twelve", "twelve"],
  ])("that returns %s: its thread shows it", async (_, returned, told) => {
    const flow = entrypoint("flow", async () => returned);
    const { url } = await serve({ langGraphs: await served({ flow }) });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "flow", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.locator(".flow").getByText(told).waitFor();
    expect(await page.getByText("No state yet").count()).toBe(0);
    expect(wrong).toEqual([]);
  });
});

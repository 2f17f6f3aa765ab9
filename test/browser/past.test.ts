import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    begin: async () => ({ log: ["begun"] }),
    charge: async () => {
      throw new RangeError("cannot charge -5");
    },
  },
  edges: { start: "begin", begin: "charge" },
});

describe.skipIf(isMissing)("a run whose events are no longer kept", () => {
  test("is told from the thread's history: its steps, and where and why it failed", async () => {
    const { url } = await serve({ graphs: { fails }, streamsTtl: 1 });
    const thread = await newThread(url);
    const body = { assistant_id: "fails", input: {} };
    const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, body);
    const run = `${url}/threads/${thread}/runs/${run_id}`;
    await (await get(`${run}/join`)).text();
    // Not by reading the events: those that are being read are kept.
    const storage = async () => (await get(`${url}/threads/${thread}/storage`)).json();
    await expect.poll(storage).toMatchObject({ events: { count: 0 } });
    // A later run: only the events of the run in question are shown.
    await post(`${url}/threads/${thread}/runs/wait`, body);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run_id}`);
    await page.getByText("The run's events have expired").waitFor();
    await page.getByText("charge failed: RangeError: cannot charge -5").waitFor();
    await page.getByRole("button", { name: "Open task" }).click();
    await page.getByRole("complementary", { name: "Task charge" }).waitFor();
    expect(await page.locator("[data-task]").allInnerTexts()).toHaveLength(2);
    expect(wrong).toEqual([]);
  });
});

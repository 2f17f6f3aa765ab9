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

const twoSteps = graph({
  state: { log: list<string>() },
  nodes: { warp: async () => ({ log: ["warp"] }), weft: async () => ({ log: ["weft"] }) },
  edges: { start: "warp", warp: "weft" },
});

describe.skipIf(isMissing)("the history of a thread with several runs", () => {
  test("names a state after the superstep with the number that the page of its run shows", async () => {
    const { url } = await serve({ graphs: { twoSteps } });
    const thread = await newThread(url);
    const body = { assistant_id: "twoSteps", input: {} };
    await post(`${url}/threads/${thread}/runs/wait`, body);
    await post(`${url}/threads/${thread}/runs/wait`, { ...body, interrupt_before: ["weft"] });
    await post(`${url}/threads/${thread}/state`, { values: { log: ["edited"] } });
    await post(`${url}/threads/${thread}/runs/wait`, { ...body, input: null });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    const heading = page.locator(".moment h3");
    const names: string[] = [];
    const earlier = page.getByRole("button", { name: "Earlier" });
    const position = page.locator(".travel > .dim");
    await position.waitFor();
    const count = Number((await position.innerText()).split(" of ")[1]);
    for (let at = count; at > 0; at--) {
      await expect.poll(() => position.innerText()).toBe(`${at} of ${count}`);
      names.push((await heading.innerText()).replace("Checkpoint, ", ""));
      if (at > 1) await earlier.click();
    }
    expect(names).toEqual([
      "after superstep 1",
      "update → weft",
      "after superstep 1 → weft",
      "start of the run → warp",
      "input → __start__",
      "after superstep 2",
      "after superstep 1 → weft",
      "start of the run → warp",
      "input → __start__",
    ]);
    for (let at = 1; at < 4; at++) await page.getByRole("button", { name: "Later", exact: true }).click();
    await expect.poll(() => heading.innerText()).toBe("Checkpoint, after superstep 2");
    await page.getByRole("link", { name: /^run …/ }).click();
    await page.getByRole("complementary", { name: "Superstep 2" }).waitFor();
    await page.goBack();
    await expect.poll(() => heading.innerText()).toBe("Checkpoint, after superstep 2");
    expect(wrong).toEqual([]);
  });
});

import { describe, expect, test } from "vitest";
import { gated } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

interface RunRow {
  readonly run_id: string;
}

describe.skipIf(isMissing)("the runs of a thread in a real browser", { timeout: 60_000 }, () => {
  test("more than are listed: the running one is shown and cancelled, and the queue is counted in full", async () => {
    const { held, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    const start = (name: string) =>
      postJson<RunRow>(runs, { assistant_id: "held", input: { name }, multitask_strategy: "enqueue" });
    const { run_id: running } = await start("first");
    await waits("first");
    const { run_id: next } = await start("next");
    for (let i = 0; i < 149; i++)
      // oxlint-disable-next-line no-await-in-loop -- the order of the queue is the order of the requests
      await start(`later ${i}`);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=runs`);
    await expect.poll(() => page.innerText(".head .which")).toContain("150 queued");
    expect(await page.innerText(".tabs .count")).toBe("151");
    const card = (id: string) => page.locator(".runs > li", { has: page.locator(`a[href*="${id}"]`) });
    expect(await card(running).innerText()).toContain("running");
    expect(await card(next).innerText()).toContain("next in the queue");
    expect(await page.getByText("next in the queue").count()).toBe(1);
    await page.getByRole("button", { name: "Cancel run" }).click();
    await expect
      .poll(async () => (await get(`${runs}/${running}`)).json())
      .toMatchObject({ status: "interrupted" });
    await expect.poll(() => page.innerText(".head .which")).toContain("149 queued");
    expect(wrong).toEqual([]);
  });

  test("the list has the focus when a run of it is deleted", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    for (const text of ["one", "two"])
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one run at a time
      await postJson(`${url}/threads/${thread}/runs/wait`, {
        assistant_id: "agent",
        input: { messages: [{ role: "user", content: text }] },
      });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=runs`);
    const rows = page.locator(".runs > li");
    await expect.poll(() => rows.count()).toBe(2);
    await rows.first().getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await expect.poll(() => rows.count()).toBe(1);
    expect(await page.evaluate("document.activeElement.className")).toBe("runs");
    expect(wrong).toEqual([]);
  });
});

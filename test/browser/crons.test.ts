import { describe, expect, test } from "vitest";
import { graph, value } from "../../src/index.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { shortlyBeforeAMinute } from "../e2e/support/minute-clock.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const work = graph({
  state: { name: value("") },
  nodes: {
    go: async ({ name }) => {
      if (name === "bad") throw new RangeError("no such file");
      return {};
    },
  },
  edges: { start: "go" },
});

describe.skipIf(isMissing)("the crons' page in a real browser", { timeout: 60_000 }, () => {
  test("a cron shows its next run and what came of the last ones; it is run now, paused, resumed and deleted", async () => {
    const { url } = await serve({ graphs: { work } });
    const { page, wrong } = await opened(await browser(), `${url}/#/crons`);
    await expect.poll(() => page.locator(".empty").innerText()).toContain("No crons yet");
    const thread = await newThread(url);
    const make = (path: string, schedule: string, name: string) =>
      postJson<{ cron_id: string }>(`${url}${path}`, { assistant_id: "work", schedule, input: { name } });
    await make("/runs/crons", "0 9 * * MON", "good");
    const { cron_id } = await make(`/threads/${thread}/runs/crons`, "30 4 * * *", "bad");
    await page.reload();
    const card = page.locator(".crons > ul > li").filter({ hasText: "30 4 * * *" });
    await expect.poll(() => card.innerText()).toMatch(/next run in \d+[hms]/);
    expect(await card.innerText()).toContain("No runs yet");

    await card.getByRole("button", { name: "Run now" }).click();
    await expect.poll(() => card.getByRole("list").innerText()).toContain("RangeError: no such file");
    await card.getByRole("link", { name: "View all runs" }).click();
    await expect.poll(() => page.locator(".all-runs tbody tr").count()).toBe(1);
    await page.goBack();

    const stored = async () =>
      (await (await get(`${url}/runs/crons/${cron_id}`)).json()) as { enabled?: boolean; detail?: string };
    await card.getByRole("button", { name: "Pause" }).click();
    await expect.poll(() => card.innerText()).toContain("no next run");
    expect(await stored()).toMatchObject({ enabled: false, next_run_date: null });
    await card.getByRole("button", { name: "Resume" }).click();
    await expect.poll(() => card.innerText()).toMatch(/next run in/);
    expect(await stored()).toMatchObject({ enabled: true });

    // A run of a cron without a thread is kept when it is started by hand.
    const other = page.locator(".crons > ul > li").filter({ hasText: "0 9 * * MON" });
    await other.getByRole("button", { name: "Run now" }).click();
    await expect.poll(() => other.getByRole("list").innerText()).toContain("succeeded");

    await card.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => page.locator(".crons > ul > li").count()).toBe(1);
    expect(await stored()).toMatchObject({ detail: "Cron not found" });
    expect(wrong).toEqual([]);
  });

  test("a cron whose runs are deleted at their end shows how the last one ended", async () => {
    const { url } = await serve({ graphs: { work }, clock: shortlyBeforeAMinute(500) });
    const cron = { assistant_id: "work", schedule: "* * * * *", input: { name: "bad" } };
    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/runs/crons`, cron);
    const stored = async () => (await get(`${url}/runs/crons/${cron_id}`)).json();
    await expect.poll(stored, { timeout: 10_000 }).toMatchObject({ last_run: { status: "error" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/crons`);
    const card = page.locator(".crons > ul > li");
    await expect.poll(() => card.innerText()).toMatch(/Last run:\s+failed .*RangeError: no such file/);
    expect(await card.innerText()).toContain('on_run_completed: "keep"');
    expect(wrong).toEqual([]);
  });

  test("are shown although they are read for longer than the time between two reads", async () => {
    const { url } = await serve({ graphs: { work } });
    await postJson(`${url}/runs/crons`, { assistant_id: "work", schedule: "0 9 * * MON", input: {} });
    const context = await browser();
    await context.clock.install();
    await context.clock.pauseAt(Date.now() + 60_000);
    const first = latch();
    let asked = 0;
    await context.route("**/runs/crons/search", async (route) => {
      asked += 1;
      // Only the first request is answered.
      await (asked === 1 ? first : latch()).passed;
      await route.continue();
    });
    const { page } = await opened(context, `${url}/#/crons`);
    await expect
      .poll(async () => {
        await page.clock.runFor(50);
        return asked;
      })
      .toBe(1);
    await page.clock.runFor(12_000);
    first.pass();
    await page.getByText("0 9 * * MON").waitFor();
  });
});

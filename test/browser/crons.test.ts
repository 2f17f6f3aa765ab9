import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { entrypoint } from "@langchain/langgraph";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { AppOptions } from "../../src/app.ts";
import { graph, value } from "../../src/index.ts";
import { authenticate, connectAs, tokens } from "../e2e/support/auth.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { shortlyBeforeAMinute } from "../e2e/support/minute-clock.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { served } from "../langgraph/support.ts";
import { seriousFaults } from "./axe.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
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

  test("fields of a cron that somebody else has changed meanwhile are not overwritten; others are saved", async () => {
    const { url } = await serve({ graphs: { work } });
    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/runs/crons`, {
      assistant_id: "work",
      schedule: "0 9 * * *",
      input: { name: "first" },
      metadata: { team: "a" },
    });
    const change = (body: object) =>
      fetch(`${url}/runs/crons/${cron_id}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const stored = async () => (await get(`${url}/runs/crons/${cron_id}`)).json();
    const { page, wrong } = await opened(await browser(), `${url}/#/crons`);
    const edit = async () => {
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("name", { exact: true }).fill("mine");
    };
    const alert = page.getByRole("dialog").getByRole("alert");
    await edit();
    await page.getByLabel("Metadata").fill('{"team": "mine"}');
    await change({ schedule: "0 10 * * *", input: { name: "theirs" } });
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => alert.innerText()).toContain("Somebody else has changed “input” while");
    await change({ input: { name: "first" }, metadata: { team: "theirs" } });
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => alert.innerText()).toContain("Somebody else has changed “team” while");
    expect(await stored()).toMatchObject({
      payload: { input: { name: "first" } },
      metadata: { team: "theirs" },
    });
    await page.getByLabel("Metadata").fill('{"team": "theirs"}');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await stored()).toMatchObject({ schedule: "0 10 * * *", payload: { input: { name: "mine" } } });
    expect(wrong).toEqual([]);
  });

  test("is not deleted unseen when somebody else has changed it since the page read it", async () => {
    const { url } = await serve({ graphs: { work } });
    const cron = { assistant_id: "work", schedule: "0 9 * * *", input: { name: "old" } };
    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/runs/crons`, cron);
    const { page } = await opened(await browser(), `${url}/#/crons`);
    const remove = async () => {
      await page.locator(".crons > ul > li").getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    };
    await page.locator(".crons > ul > li").getByRole("button", { name: "Delete" }).click();
    await fetch(`${url}/runs/crons/${cron_id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: { name: "theirs" } }),
    });
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("The cron was not deleted: somebody else has changed it.").waitFor();
    expect(await (await get(`${url}/runs/crons/${cron_id}`)).json()).toMatchObject({
      payload: { input: { name: "theirs" } },
    });
    await page.getByText("Run request").click();
    await page.getByText("theirs").waitFor();
    await remove();
    await page.getByText("No crons yet").waitFor();
  });

  test("is run now as it is stored, not as the page has read it; one that was deleted meanwhile is said to be", async () => {
    const { url } = await serve({ graphs: { work } });
    const made = async (schedule: string) => {
      const cron = { assistant_id: "work", schedule, input: { name: "old" } };
      return (await postJson<{ cron_id: string }>(`${url}/runs/crons`, cron)).cron_id;
    };
    const [changed, deleted] = [await made("0 9 * * *"), await made("0 10 * * *")];
    const context = await browser();
    const { page } = await opened(context, `${url}/#/crons`);
    const runNow = (schedule: string) =>
      page.locator(".crons > ul > li").filter({ hasText: schedule }).getByRole("button", { name: "Run now" });
    await runNow("0 9 * * *").waitFor();
    const polls = await heldBack(context, "**/runs/crons/search");
    await fetch(`${url}/runs/crons/${changed}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: { name: "new" } }),
    });
    await runNow("0 9 * * *").click();
    await page.getByText("Run started.").waitFor();
    const [found] = await postJson<readonly { thread_id: string; run_id: string }[]>(
      `${url}/runs/search`,
      {},
    );
    const run = await (await get(`${url}/threads/${found?.thread_id}/runs/${found?.run_id}`)).json();
    expect(run).toMatchObject({ kwargs: { input: { name: "new" } } });
    await fetch(`${url}/runs/crons/${deleted}`, { method: "DELETE" });
    await runNow("0 10 * * *").click();
    await page.getByText("Cron not found").waitFor();
    polls.pass();
    await expect.poll(() => page.locator(".crons > ul > li").count()).toBe(1);
  });

  test("a page of an address that is beyond the last one says so, and leads to the first one", async () => {
    const { url } = await serve({ graphs: { work } });
    await postJson(`${url}/runs/crons`, { assistant_id: "work", schedule: "0 9 * * *", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/crons?page=1e9`);
    await page.getByText("No more crons").waitFor();
    await page.getByRole("link", { name: "First page" }).click();
    await page.getByText("0 9 * * *").waitFor();
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

const named = graph({
  state: { name: z.string(), size: z.number().optional() },
  nodes: { go: async () => ({}) },
  edges: { start: "go" },
});

interface StoredCron {
  readonly cron_id: string;
  readonly schedule: string;
  readonly next_run_date: string | null;
  readonly payload: { readonly input?: unknown };
}

const storedCrons = (url: string) => postJson<readonly StoredCron[]>(`${url}/runs/crons/search`);
const dialog = (page: Page, name = "New cron") => page.getByRole("dialog", { name });
const nextRuns = (page: Page) => page.locator(".next-runs tbody tr");

/** Types into a field as a person does, in place of what is in it. */
async function typeInto(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label).focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.type(text);
}

const openForm = async (page: Page) => {
  await page.getByRole("button", { name: "New cron" }).click();
  await dialog(page).getByLabel("Schedule").waitFor();
};

/** What assistive software reads with a field: its description. */
const describedBy = async (page: Page, label: string) => {
  const id = await page.getByLabel(label).getAttribute("aria-describedby");
  return page.locator(`[id="${id}"]`).innerText();
};

describe.skipIf(isMissing)("the form for a cron, in a real browser", { timeout: 60_000 }, () => {
  test("shows the next three times in both time zones, says what is wrong with a schedule, and creates the cron", async () => {
    const { url } = await serve({ graphs: { named } });
    const context = await browser({ timezoneId: "Europe/Berlin", locale: "en-GB" });
    const { page } = await opened(context, `${url}/#/crons`);
    await openForm(page);
    await page.getByLabel("Assistant").selectOption({ label: "named" });
    expect(await page.getByLabel("Time zone").inputValue()).toBe("Europe/Berlin");
    await typeInto(page, "Schedule", "0 9 1 1");
    await expect.poll(() => describedBy(page, "Schedule")).toContain("must have five fields");
    expect(await page.getByLabel("Schedule").getAttribute("aria-invalid")).toBe("true");
    expect(await nextRuns(page).count()).toBe(0);
    await page.keyboard.type(" *");
    await expect.poll(() => nextRuns(page).count()).toBe(3);
    expect(await page.locator(".next-runs th").allInnerTexts()).toEqual([
      "Next runs in Europe/Berlin (your time zone)",
    ]);
    await typeInto(page, "Schedule", "0 25 * * *");
    await expect
      .poll(() => describedBy(page, "Schedule"))
      .toContain('the hour is wrong: "25". It takes 0 to 23');
    await typeInto(page, "Schedule", "0 9 * * FRIDAY-ish");
    await expect
      .poll(() => describedBy(page, "Schedule"))
      .toContain('the day of the week is wrong: "FRIDAY-ish"');
    await typeInto(page, "Schedule", "0 9 1 1 *");
    await typeInto(page, "Time zone", "New York");
    await expect
      .poll(() => page.locator(".next-runs th").allInnerTexts())
      .toEqual(["Next runs in America/New_York", "Your time (Europe/Berlin)"]);
    expect(await page.locator('datalist option[value="America/New_York"]').getAttribute("label")).toBe(
      "New York",
    );
    await typeInto(page, "Time zone", "Mars/Olympus");
    await expect.poll(() => describedBy(page, "Time zone")).toContain("is no IANA time zone");
    await typeInto(page, "Time zone", "Asia/Tokyo");
    await expect
      .poll(() => page.locator(".next-runs th").allInnerTexts())
      .toEqual(["Next runs in Asia/Tokyo", "Your time (Europe/Berlin)"]);
    await expect
      .poll(() => nextRuns(page).first().innerText())
      .toMatch(/1 Jan \d+, 09:00 GMT\+9\t.*1 Jan \d+, 01:00 CET/);
    const first = await nextRuns(page).first().locator("time").first().getAttribute("datetime");

    // The fields of the input are those of the form for a new run. The focus goes to what is wrong.
    await page.getByLabel("Schedule").press("Enter");
    const focused = () => page.evaluate<string>("document.activeElement.labels?.[0]?.textContent");
    await expect.poll(focused).toBe("name (required)");
    await dialog(page).getByText("is required", { exact: true }).waitFor();
    await page.keyboard.type("a letter");
    await typeInto(page, "size", "twelve");
    await page.getByLabel("Schedule").press("Enter");
    await expect.poll(focused).toBe("size");
    await dialog(page).getByText("must be a number").waitFor();
    await typeInto(page, "size", "12");
    await typeInto(page, "Metadata", '{"team": ');
    await expect.poll(() => describedBy(page, "Metadata")).toContain("Invalid JSON");
    await page.keyboard.type('"support"}');
    await page.getByRole("button", { name: "Create cron" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Cron created.").waitFor();
    await dialog(page).waitFor({ state: "detached" });
    expect(await page.locator(".crons > ul > li").innerText()).toContain("Asia/Tokyo");
    expect(await storedCrons(url)).toEqual([
      expect.objectContaining({
        schedule: "0 9 1 1 *",
        timezone: "Asia/Tokyo",
        thread_id: null,
        on_run_completed: "delete",
        end_time: null,
        enabled: true,
        next_run_date: first,
        metadata: { team: "support" },
        payload: { input: { name: "a letter", size: 12 } },
      }),
    ]);
  });

  test("creates one on a thread, with a message, an end, a multitask strategy and options", async () => {
    const { url } = await serve({ graphs: { named } });
    const metadata = { title: "Letters" };
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
    const { page, wrong } = await opened(await browser({ timezoneId: "America/New_York" }), `${url}/#/crons`);
    await openForm(page);
    await page.getByLabel("Assistant").selectOption({ label: "agent" });
    await typeInto(page, "Schedule", "@yearly");
    await page.getByLabel("An existing thread").check();
    await page.keyboard.press("Tab");
    await page.keyboard.type("letters");
    await page.getByRole("button", { name: "Create cron" }).click();
    await expect.poll(() => describedBy(page, "ID of the thread")).toContain("must be the ID of a thread");
    expect(await page.locator("datalist option").filter({ hasText: "Letters" }).getAttribute("value")).toBe(
      thread_id,
    );
    await typeInto(page, "ID of the thread", thread_id.toUpperCase());
    await expect.poll(() => describedBy(page, "ID of the thread")).toBe("Letters");
    await page.getByLabel("If a run is active").selectOption("rollback");
    await page.getByRole("textbox", { name: "Message" }).focus();
    await page.keyboard.type("What is");
    // In this form, Enter begins a new line.
    await page.keyboard.press("Enter");
    await page.keyboard.type("new?");
    await page.getByLabel(/^End time/).focus();
    await page.keyboard.type("12312998");
    await page.getByRole("button", { name: "Create cron" }).click();
    await expect.poll(() => describedBy(page, "End time")).toContain("is incomplete");
    await page.getByLabel(/^End time/).focus();
    await page.keyboard.type("123129980800PM");
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("Pause before these nodes").focus();
    await page.keyboard.type("tools");
    // The dialog of the options is within the form, which Enter in it does not send.
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await dialog(page, "Run options").waitFor({ state: "detached" });
    expect(await storedCrons(url)).toEqual([]);
    await page.getByLabel("Enabled").press("Space");
    await page.getByRole("button", { name: "Create cron" }).click();
    await page.getByText("Cron created.").waitFor();
    expect(await storedCrons(url)).toEqual([
      expect.objectContaining({
        schedule: "@yearly",
        timezone: "America/New_York",
        thread_id,
        end_time: "2999-01-01T01:00:00.000+00:00",
        enabled: false,
        next_run_date: null,
        payload: {
          input: { messages: [{ role: "user", content: "What is\nnew?" }] },
          multitask_strategy: "rollback",
          interrupt_before: ["tools"],
        },
      }),
    ]);
    expect(wrong).toEqual([]);
  });

  test("says that no run comes before the end, and reads the times again when one has passed", async () => {
    let now = Date.parse("2030-05-05T10:20:30Z");
    const clock = { now: () => now, mono: () => performance.now() };
    const { url } = await serve({ graphs: { named }, clock });
    const context = await browser({ timezoneId: "UTC", locale: "en-GB" });
    const { page, wrong } = await opened(context, `${url}/#/crons`);
    await openForm(page);
    await typeInto(page, "Schedule", "* * * * *");
    const first = () => nextRuns(page).first().innerText();
    await expect.poll(first).toContain("10:21");
    now += 60_000;
    await expect.poll(first).toContain("10:22");
    await page.getByLabel(/^End time/).fill("2030-05-05T10:21");
    await page.getByText("There is no run before the end time.").waitFor();
    expect(wrong).toEqual([]);
  });

  test("asks before what was entered is lost, and only then", async () => {
    const { url } = await serve({ graphs: { named } });
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    await page.getByRole("link", { name: "Crons", exact: true }).click();
    await openForm(page);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    await openForm(page);
    await typeInto(page, "Schedule", "0 9 * * *");
    await page.keyboard.press("Escape");
    await dialog(page, "Close without saving?").getByRole("button", { name: "Keep editing" }).click();
    await page.goBack();
    const leave = dialog(page, "Leave without saving?");
    await leave.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByLabel("Schedule").inputValue()).toBe("0 9 * * *");
    expect(page.url()).toContain("#/crons");
    await page.goBack();
    await leave.getByRole("button", { name: "Leave", exact: true }).click();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("has no serious fault for axe, light and dark; in a narrow window nothing sticks out", async () => {
    const { url } = await serve({ graphs: { named } });
    const { page } = await opened(await browser(), `${url}/#/crons`);
    await page.setViewportSize({ width: 360, height: 740 });
    await openForm(page);
    await page.getByLabel("Assistant").selectOption({ label: "named" });
    await page.getByLabel("size").waitFor();
    await page.getByLabel("An existing thread").check();
    await typeInto(page, "Schedule", "0 9 * * *");
    await typeInto(page, "Time zone", "America/Argentina/ComodRivadavia");
    await expect.poll(() => nextRuns(page).count()).toBe(3);
    const found: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      found.push(...(await seriousFaults(page, colorScheme, { colours: true })));
    }
    await typeInto(page, "Schedule", "0 9");
    await page.keyboard.press("Enter");
    await expect.poll(() => describedBy(page, "ID of the thread")).toContain("must be");
    found.push(...(await seriousFaults(page, "with faults", { colours: true })));
    expect(found).toEqual([]);
    const outer = await page.$eval("dialog", ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    expect(outer).toBe(0);
  });

  test("creates one cron on a double click", async () => {
    const { url } = await serve({ graphs: { named } });
    const context = await browser();
    const { page } = await opened(context, `${url}/#/crons`);
    await openForm(page);
    await page.getByLabel("Assistant").selectOption({ label: "named" });
    await typeInto(page, "Schedule", "@daily");
    await typeInto(page, "name", "x");
    const create = await heldBack(context, /\/runs\/crons$/);
    await page.getByRole("button", { name: "Create cron" }).dblclick();
    create.pass();
    await page.getByText("Cron created.").waitFor();
    await context.unrouteAll({ behavior: "wait" });
    expect(await storedCrons(url)).toHaveLength(1);
  });

  test("edits a cron: only what was changed is sent", async () => {
    const { url } = await serve({ graphs: { named } });
    const messages = [{ role: "user", content: "hello" }];
    const { cron_id } = await postJson<StoredCron>(`${url}/runs/crons`, {
      assistant_id: "agent",
      schedule: "0 9 * * *",
      timezone: "Asia/Tokyo",
      end_time: "2999-01-01T00:00:30Z",
      input: { messages },
      config: { configurable: { a: 1 } },
      interrupt_after: ["agent"],
      webhook: "https://example.com/hook",
      metadata: { team: "support" },
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/crons`);
    const sent: unknown[] = [];
    page.on("request", (request) => {
      if (request.method() === "PATCH") sent.push(request.postDataJSON());
    });
    const edit = async () => {
      await page.getByRole("button", { name: "Edit" }).click();
      await dialog(page, "Edit cron").getByLabel("Schedule").waitFor();
    };
    const save = async () => {
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await dialog(page, "Edit cron").waitFor({ state: "detached" });
    };
    await edit();
    await expect.poll(() => nextRuns(page).count()).toBe(3);
    expect(await page.getByRole("button", { name: "Save", exact: true }).isDisabled()).toBe(true);
    await typeInto(page, "Schedule", "30 4 * * *");
    await page.getByLabel("Enabled").press("Space");
    await save();
    await edit();
    const message = page.getByRole("textbox", { name: "Message" });
    expect(await message.inputValue()).toBe("hello");
    await message.press("End");
    await page.keyboard.type(" again");
    await page.getByLabel("When a run ends").selectOption("keep");
    await typeInto(page, "Time zone", "");
    await page.getByRole("button", { name: /^Options/ }).click();
    await typeInto(page, "Pause after these nodes", "");
    await page.keyboard.press("Escape");
    await save();
    await edit();
    await page.getByLabel(/^End time/).fill("");
    await typeInto(page, "Metadata", '{"urgent": true, "team": "sales"}');
    await save();
    expect(sent).toEqual([
      { schedule: "30 4 * * *", enabled: false },
      {
        timezone: null,
        on_run_completed: "keep",
        interrupt_after: [],
        input: { messages: [{ role: "user", content: "hello again" }] },
      },
      { end_time: null, metadata: { urgent: true, team: "sales" } },
    ]);
    expect(await (await get(`${url}/runs/crons/${cron_id}`)).json()).toMatchObject({
      schedule: "30 4 * * *",
      timezone: null,
      enabled: false,
      end_time: null,
      metadata: { urgent: true, team: "sales" },
      payload: { webhook: "https://example.com/hook", config: { configurable: { a: 1 } } },
    });
    expect(wrong).toEqual([]);
  });

  test.each([
    ["an input with members that the schema has not", { name: "x", other: [1] }],
    ["no input", undefined],
    ["an input that is no object", ["x"]],
  ])("edits the schedule of a cron with %s, which stays", async (_, input) => {
    const flow = entrypoint("flow", async (texts: readonly string[]) => texts);
    const { url } = await serve({ graphs: { work }, langGraphs: await served({ flow }) });
    const assistant_id = Array.isArray(input) ? "flow" : "work";
    const body = { assistant_id, schedule: "0 9 * * *", input };
    const { payload } = await postJson<StoredCron>(`${url}/runs/crons`, body);
    const { page } = await opened(await browser(), `${url}/#/crons`);
    await page.getByRole("button", { name: "Edit" }).click();
    await dialog(page, "Edit cron").getByLabel("Schedule").waitFor();
    if (input !== undefined)
      expect(JSON.parse(await page.getByLabel("Input, as JSON").inputValue())).toEqual(input);
    await typeInto(page, "Schedule", "30 4 * * *");
    await page.keyboard.press("Enter");
    await page.getByText("Cron saved.").waitFor();
    expect(await storedCrons(url)).toMatchObject([{ schedule: "30 4 * * *", payload }]);
  });

  test("keeps what was entered where the rules refuse the cron; a cron of a user is that user's", async () => {
    let isAllowed = false;
    const auth = new Auth()
      .authenticate(authenticate)
      .on("crons", ({ user }) => ({ owner: user.identity }))
      .on("crons:create", ({ value, user }) => {
        if (!isAllowed) throw new HTTPException(403, { message: "Ask an administrator for a cron." });
        Object.assign(value, { metadata: { owner: user.identity } });
      });
    const { url } = await serve({
      graphs: { named },
      auth: auth as unknown as NonNullable<AppOptions["auth"]>,
    });
    const pageAs = async (token: string) => {
      const context = await browser();
      await context.addInitScript(`sessionStorage.setItem("heddle.key", "${token}")`);
      const page = await context.newPage();
      await page.goto(`${url}/#/crons`);
      return page;
    };
    const page = await pageAs(tokens.alice);
    await openForm(page);
    await page.getByLabel("Assistant").selectOption({ label: "named" });
    await typeInto(page, "Schedule", "0 9 * * *");
    await expect.poll(() => nextRuns(page).count()).toBe(3);
    await typeInto(page, "name", "a letter");
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Create cron" }).click();
    await dialog(page).getByText("Ask an administrator for a cron.").waitFor();
    expect(await page.getByLabel("name").inputValue()).toBe("a letter");
    isAllowed = true;
    await page.getByRole("button", { name: "Create cron" }).click();
    await page.getByText("Cron created.").waitFor();
    expect(await connectAs(url, "alice").crons.search({})).toMatchObject([
      { user_id: "alice", metadata: { owner: "alice" }, payload: { input: { name: "a letter" } } },
    ]);
    const other = await pageAs(tokens.bob);
    await expect.poll(() => other.locator(".empty").innerText()).toContain("No crons yet");
  });
});

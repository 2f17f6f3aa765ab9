import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import { z } from "zod";
import { heldCalls } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { ShiftedTime } from "../e2e/support/shifted-time.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

const order = setup({
  types: {
    context: {} as { by: string | null },
    events: {} as { type: "APPROVE"; by?: string } | { type: "REJECT" } | { type: "order.lost" },
  },
}).createMachine({
  id: "order",
  context: { by: null },
  initial: "reviewing",
  states: {
    reviewing: {
      meta: { question: "Approve the *order*?" },
      on: {
        APPROVE: { target: "approved", actions: assign({ by: ({ event }) => event.by ?? null }) },
        REJECT: "rejected",
        "order.*": "lost",
      },
      after: { [2 * 60 * 60 * 1_000]: "rejected", [24 * 60 * 60 * 1_000]: "lost" },
    },
    approved: { on: { REJECT: "rejected" } },
    rejected: { type: "final" },
    lost: { after: { [60 * 60 * 1_000]: "rejected" } },
  },
});

/** The page of a thread whose machine waits. */
async function waiting() {
  const { url } = await serve({ graphs: { order } });
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "order", input: {} });
  const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
  await page.waitForSelector(".question");
  const values = async () => {
    const state = (await (await get(`${url}/threads/${thread}/state`)).json()) as { values: object };
    return state.values;
  };
  // Those of the question: for a moment, a machine that runs takes the same events.
  const buttons = page
    .locator(".question")
    .getByRole("group", { name: "Event", exact: true })
    .getByRole("button");
  return { page, wrong, values, buttons };
}

describe.skipIf(isMissing)("a machine that waits, in a real browser", { timeout: 60_000 }, () => {
  test("says what it waits for, and has a button for each event, which sends it", async () => {
    const { page, wrong, values, buttons } = await waiting();
    expect(await buttons.allInnerTexts()).toEqual(["APPROVE", "REJECT"]);
    expect((await page.innerText(".question legend")).trim()).toBe("order waits for an event in reviewing");
    expect(await page.innerText(".question .asked em")).toBe("order");
    expect(await page.getByRole("button", { name: "Send answer" }).count()).toBe(0);
    await buttons.getByText("APPROVE").click();
    await expect.poll(values).toMatchObject({ __state__: "approved", by: null });
    // The next question has the next events.
    await expect.poll(() => buttons.allInnerTexts()).toEqual(["REJECT"]);
    expect((await page.innerText(".question legend")).trim()).toBe("order waits for an event in approved");
    // The second click of a double click on APPROVE, which lands on what took its place.
    await buttons.getByText("REJECT").click({ trial: true });
    const { x, y } = (await buttons.getByText("REJECT").boundingBox()) as { x: number; y: number };
    await page.mouse.move(x + 5, y + 5);
    await page.mouse.down({ clickCount: 2 });
    await page.mouse.up({ clickCount: 2 });
    await page.locator(".question").getByRole("button", { name: "JSON" }).click();
    expect(await values()).toMatchObject({ __state__: "approved" });
    await page.getByLabel("Answer, as JSON").fill('{"type": "REJECT"}');
    await page.getByRole("button", { name: "Send answer" }).click();
    await expect.poll(values).toMatchObject({ __state__: "rejected" });
    expect(wrong).toEqual([]);
  });

  test("shows that an event is being sent, until it has been", async () => {
    const { page, wrong, values, buttons } = await waiting();
    const sending = page.locator(".question + [role=status]", { hasText: "Sending…" });
    const request = await heldBack(page.context(), /\/runs$/);
    expect(await sending.count()).toBe(0);
    await buttons.getByText("APPROVE").click();
    await sending.waitFor();
    request.pass();
    await expect.poll(values).toMatchObject({ __state__: "approved" });
    await expect.poll(() => sending.count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("is drawn with all its states, and those that are active are marked: while it waits, and at its end", async () => {
    const { page, wrong, values, buttons } = await waiting();
    const marked = () =>
      page
        .locator("figure[class], figure")
        .first()
        .locator("svg [data-state].lit, svg [data-state].done")
        .evaluateAll((groups) => groups.map((group) => [group.dataset["node"], group.getAttribute("class")]));
    await page.click('.tabs a:has-text("Graph")');
    await expect.poll(marked).toEqual([["reviewing", expect.stringContaining("interrupted")]]);
    await page.click('.tabs a:has-text("Current")');
    await buttons.getByText("REJECT").click();
    await expect.poll(values).toMatchObject({ __state__: "rejected" });
    await page.click('.tabs a:has-text("Graph")');
    await expect.poll(marked).toEqual([["rejected", expect.stringContaining("done")]]);
    expect(wrong).toEqual([]);
  });

  test("is drawn with its child machines, with what stays in a state, and with plain words for XState's own events", async () => {
    const inner = setup({}).createMachine({
      initial: "even",
      states: { even: { on: { TICK: "odd" } }, odd: { on: { TICK: "even" } } },
    });
    const counter = setup({ actors: { inner } }).createMachine({
      id: "order",
      initial: "counting",
      states: { counting: { invoke: { src: "inner" } } },
    });
    const parent = setup({
      types: { context: {} as { notes: number } },
      actors: { counter, charge: fromPromise(async () => "charged") },
    }).createMachine({
      id: "order",
      context: { notes: 0 },
      initial: "charging",
      on: { NOTE: { actions: assign({ notes: ({ context }) => context.notes + 1 }) }, RESET: ".charging" },
      states: {
        charging: { invoke: { src: "charge", onDone: "waitingForTheCustomer", onError: "failed" } },
        waitingForTheCustomer: {
          invoke: { src: "counter", onDone: "failed" },
          on: { PING: { actions: assign({ notes: 0 }) }, NEVER: {} },
          after: { 86_400_000: "failed" },
        },
        failed: { type: "final" },
      },
    });
    const { url } = await serve({ graphs: { parent } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "parent", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.click('.tabs a:has-text("Graph")');
    // The charts of the thread's actors are on the page too.
    const chart = page.locator("figure").first().locator("svg");
    const drawn = (what: string) => () =>
      chart.locator(what).evaluateAll((all) => all.map((one) => one.textContent));
    const lit = () =>
      chart.locator("[data-state].lit").evaluateAll((all) => all.map((one) => one.getAttribute("data-path")));
    await expect
      .poll(lit)
      .toEqual([
        "waitingForTheCustomer",
        "waitingForTheCustomer/counter",
        "waitingForTheCustomer/counter/counting",
        "waitingForTheCustomer/counter/counting/inner",
        "waitingForTheCustomer/counter/counting/inner/even",
      ]);
    expect((await drawn(".label")()).toSorted()).toEqual(
      ["NOTE", "PING", "RESET", "TICK", "TICK", "after 24 h 0 m", "charge failed", "charge is done"].concat(
        "counter is done",
      ),
    );
    expect(await drawn("g > title")()).toContain("charge is done (xstate.done.actor.0.order.charging)");
    expect(await drawn(".edge title")()).toContain(
      "counter is done (xstate.done.actor.0.order.waitingForTheCustomer)\nafter 24 h 0 m (xstate.after.86400000.order.waitingForTheCustomer)",
    );
    expect(wrong).toEqual([]);
  });

  test("sends an event with the data that were entered for it", async () => {
    const { page, wrong, values, buttons } = await waiting();
    await page.getByText("Event data").click();
    await page.getByLabel("Name of field 1").fill("by");
    await page.getByLabel("Value of field 1").fill("Ada");
    await buttons.getByText("APPROVE").click();
    await expect.poll(values).toMatchObject({ __state__: "approved", by: "Ada" });
    expect(wrong).toEqual([]);
  });

  test("takes no data with the name type, which is that of the event", async () => {
    const { page, wrong, values, buttons } = await waiting();
    await page.getByText("Event data").click();
    await page.getByLabel("Name of field 1").fill("type");
    await page.getByLabel("Value of field 1").fill("express");
    await page.getByText("The name type is taken: the button gives its value.").waitFor();
    expect(await buttons.getByText("APPROVE").isDisabled()).toBe(true);
    await page.getByLabel("Name of field 1").fill("by");
    await buttons.getByText("APPROVE").click();
    await expect.poll(values).toMatchObject({ __state__: "approved", by: "express" });
    expect(wrong).toEqual([]);
  });

  test("offers no states as nodes where its state is edited, and sends no event whose data are wrong", async () => {
    const { page, wrong, values, buttons } = await waiting();
    await page.getByText("Event data").click();
    await page.getByLabel("Name of field 1").fill("by");
    await page.getByLabel("Value of field 1").fill("9007199254740993");
    await page.getByText("9007199254740993 cannot be represented exactly").waitFor();
    expect(await buttons.getByText("APPROVE").isDisabled()).toBe(true);
    await page.getByLabel("Value of field 1").fill('"9007199254740993"');
    await expect.poll(() => buttons.getByText("APPROVE").isDisabled()).toBe(false);
    await page.click('.tabs a:has-text("History")');
    // What was entered for the event is lost.
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    const drawn = page.waitForResponse("**/graph");
    await page.getByRole("button", { name: "Edit state" }).click();
    await drawn;
    await page.locator("#edit-node").waitFor();
    expect(await page.locator("#edit-nodes option").count()).toBe(0);
    expect(await values()).toMatchObject({ __state__: "reviewing" });
    expect(wrong).toEqual([]);
  });

  test("says where its state is edited that each field replaces the stored one", async () => {
    const { page, wrong } = await waiting();
    await page.click('.tabs a:has-text("History")');
    await page.getByRole("button", { name: "Edit state" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Each field replaces the stored one, lists too.").waitFor();
    expect(await dialog.innerText()).not.toContain("appended");
    expect(wrong).toEqual([]);
  });

  test("says once why an event was refused, and says so again on a new page", async () => {
    const guarded = setup({ guards: { never: () => false } }).createMachine({
      initial: "waiting",
      states: { waiting: { on: { GO: { guard: "never", target: "gone" } } }, gone: {} },
    });
    const { url } = await serve({ graphs: { guarded } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "guarded", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const reasons = page.getByText("its guard does not hold");
    for (const again of [false, true]) {
      // oxlint-disable-next-line no-await-in-loop -- the page is read again
      if (again) await page.reload();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      else await page.getByRole("button", { name: "GO" }).click();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await page.getByText("The last answer was refused.").waitFor();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect.poll(() => reasons.count()).toBe(1);
    }
    expect(wrong).toEqual([]);
  });

  test("has the steps of its child machines in the timeline where they belong, with their names", async () => {
    const counter = setup({}).createMachine({ initial: "even", states: { even: {}, odd: {} } });
    const parent = setup({
      actors: { counter, load: fromPromise(async () => "loaded") },
    }).createMachine({
      initial: "loading",
      states: {
        loading: { invoke: { src: "load", onDone: "counting" } },
        counting: { invoke: { src: "counter" }, on: { STOP: "loading" } },
      },
    });
    const { url } = await serve({ graphs: { parent } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "parent", input: {} });
    const runs = (await (await get(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(
      await browser(),
      `${url}/#/threads/${thread}/runs/${String(runs[0]?.run_id)}`,
    );
    const steps = page.locator(".superstep");
    const names = () =>
      steps.evaluateAll((all) =>
        all.map((one) => [...one.querySelectorAll(".name")].map((name) => name.textContent)),
      );
    await expect
      .poll(names)
      .toEqual([
        ["xstate.transition"],
        ["load"],
        ["xstate.transition", "counter › xstate.transition"],
        ["xstate.wait"],
      ]);
    expect(wrong).toEqual([]);
  });

  test("is in the inbox with its question, or with what it waits for, and takes an event there", async () => {
    const { page, wrong, values, buttons } = await waiting();
    await page.goto(page.url().replace(/#.*/, "#/inbox"));
    const summary = page.locator(".questions .summary");
    await expect.poll(() => summary.locator(".text").innerText()).toBe("Approve the *order*?");
    await expect
      .poll(async () => (await page.innerText(".question legend")).trim())
      .toBe("order waits for an event in reviewing");
    await buttons.getByText("APPROVE").click();
    await expect.poll(values).toMatchObject({ __state__: "approved" });
    await expect.poll(() => summary.locator(".text").innerText()).toBe("Waiting in approved for REJECT");
    expect(wrong).toEqual([]);
  });

  test("is told apart in the inbox from another of the same graph, and says there what its next timer does", async () => {
    const expense = setup({
      types: {
        context: {} as { item: string; amount: number },
        input: {} as { item: string; amount: number },
      },
      schemas: { input: z.object({ item: z.string(), amount: z.number() }) },
    }).createMachine({
      id: "expense",
      context: ({ input }) => input,
      initial: "reviewing",
      states: {
        reviewing: {
          on: { APPROVE: "paid" },
          after: { [2 * 60 * 60 * 1_000]: "expired", [9_000_000]: "paid" },
        },
        paid: { type: "final" },
        expired: { type: "final" },
      },
    });
    const { url } = await serve({ graphs: { expense } });
    const wanted = [
      { title: "Desk", item: "Laptop", amount: 300 },
      { title: "Trip", item: "Train", amount: 45 },
    ];
    for (const { title, ...input } of wanted) {
      const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata: { title } });
      await post(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "expense", input });
    }
    const { page, wrong } = await opened(await browser(), `${url}/#/inbox`);
    const cards = page.locator(".questions li .from");
    const left = "reviewing times out in (1 h 59|2 h 0) m";
    await expect
      .poll(() => cards.allInnerTexts())
      .toEqual([
        expect.stringMatching(
          new RegExp(`^Desk · Laptop · amount 300 · expense · thread …\\w{8} · ${left}$`),
        ),
        expect.stringMatching(new RegExp(`^Trip · Train · amount 45 · expense · thread …\\w{8} · ${left}$`)),
      ]);
    await page.waitForSelector(".question");
    // It has neither tags nor meta.
    expect(await page.innerText(".question")).toContain("state: reviewing");
    expect(await page.innerText(".question")).not.toMatch(/tags|meta/);
    expect(wrong).toEqual([]);
  });

  test("takes an event of a kind by its type, and says where it takes none", async () => {
    const { page, wrong, values } = await waiting();
    const other = page.getByLabel("Event type");
    const send = page.getByRole("button", { name: "Send", exact: true });
    expect(await other.getAttribute("placeholder")).toBe("order.*");
    expect(await send.isDisabled()).toBe(true);
    await other.fill("order.lost");
    await send.click();
    await expect.poll(values).toMatchObject({ __state__: "lost" });
    await page.getByText("Waiting for a timer; no event is accepted.").waitFor();
    expect((await page.innerText(".question legend")).trim()).toBe("order waits for a timer in lost");
    expect(wrong).toEqual([]);
  });

  test("has what it keeps for itself folded, under its state", async () => {
    const { page, wrong } = await waiting();
    const state = page.getByRole("region", { name: "State", exact: true });
    await expect.poll(() => state.innerText()).toContain("__state__: reviewing");
    expect(await state.innerText()).not.toContain("__snapshot__");
    await state.getByText("Internal channels").click();
    expect(await state.innerText()).toContain("__snapshot__");
    expect(wrong).toEqual([]);
  });

  test("shows its timers with the time that is left, the next one first", async () => {
    const { page, wrong } = await waiting();
    const timers = page.getByRole("region", { name: "Timers" }).getByRole("listitem");
    expect(await timers.allInnerTexts()).toEqual([
      expect.stringMatching(/^reviewing times out after 2 h 0 m; due in (1 h 59|2 h 0) m$/),
      expect.stringMatching(/^reviewing times out after 24 h 0 m; due in (23 h 59|24 h 0) m$/),
    ]);
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(isMissing)("a machine whose actor works, in a real browser", { timeout: 60_000 }, () => {
  test("has a button for each event that its state takes, and shows what became of those that were sent", async () => {
    const { work, calls } = heldCalls<string>();
    const busy = setup({
      types: { context: {} as { notes: number } },
      actors: { work: fromPromise<string>(work) },
    }).createMachine({
      id: "busy",
      context: { notes: 0 },
      initial: "working",
      states: {
        working: {
          invoke: { src: "work", onDone: "done" },
          on: {
            NOTE: { actions: assign({ notes: ({ context }) => context.notes + 1 }) },
            LEAVE: { guard: ({ context }) => context.notes > 0, target: "left" },
          },
        },
        left: { on: { BACK: "working" } },
        done: { type: "final" },
      },
    });
    const { url } = await serve({ graphs: { busy } });
    const thread = await newThread(url);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await post(`${url}/threads/${thread}/runs`, { assistant_id: "busy", input: {} });
    const [held] = await calls(1);
    const region = page.getByRole("region", { name: "Events" });
    const buttons = region.getByRole("group", { name: "Event", exact: true }).getByRole("button");
    await expect.poll(() => buttons.allInnerTexts()).toEqual(["NOTE", "LEAVE"]);
    const sent = () =>
      region.getByRole("list", { name: "Sent events" }).getByRole("listitem").allInnerTexts();
    await buttons.getByText("LEAVE").click();
    // Its guard does not hold yet.
    await expect.poll(sent).toEqual(["LEAVE queued"]);
    await buttons.getByText("NOTE").click();
    await expect.poll(sent).toEqual(["LEAVE accepted", "NOTE accepted"]);
    const runs = (await (await get(`${url}/threads/${thread}/runs`)).json()) as { metadata: object }[];
    expect(runs.map(({ metadata }) => metadata)).toEqual([
      expect.objectContaining({ started_from: "dashboard" }),
      expect.objectContaining({ started_from: "dashboard" }),
      expect.not.objectContaining({ started_from: "dashboard" }),
    ]);
    expect(held?.signal.aborted).toBe(true);
    // The machine waits now, and asks as usual.
    await page.waitForSelector(".question");
    expect(await buttons.count()).toBe(0);
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(isMissing)("a machine with schemas, in a real browser", { timeout: 60_000 }, () => {
  type Work = Parameters<typeof fromPromise<string>>[0];

  const address = z.object({ street: z.string().min(1), floor: z.number().int().optional() });
  const shop = (work: Work = () => Promise.resolve("done")) =>
    setup({
      types: {} as {
        context: { [name: string]: unknown };
        input: { [name: string]: unknown } | undefined;
        events: { type: string };
      },
      schemas: {
        input: z.object({ article: z.string().min(1), count: z.number().int().min(1).default(1) }),
        events: {
          PAY: z.object({
            amount: z.number().min(1),
            method: z.enum(["card", "cash"]),
            note: z.string().optional(),
          }),
          // Its schemas are in `$defs`, to which references lead.
          SHIP: {
            type: "object",
            properties: { to: { $ref: "#/$defs/Address" } },
            required: ["to"],
            $defs: { Address: z.toJSONSchema(address) },
          },
        },
      },
      actors: { pack: fromPromise<string>(work) },
    }).createMachine({
      id: "shop",
      context: ({ input }) => ({ input, event: null }),
      initial: "open",
      states: {
        open: {
          on: { CANCEL: "gone", PAY: { target: "paid", actions: assign({ event: ({ event }) => event }) } },
        },
        paid: { on: { SHIP: { target: "packing", actions: assign({ event: ({ event }) => event }) } } },
        packing: {
          invoke: { src: "pack", onDone: "gone" },
          on: { PAY: { actions: assign({ event: ({ event }) => event }) } },
        },
        gone: { type: "final" },
      },
    });

  async function shopping(work?: Work) {
    const { url } = await serve({ graphs: { shop: shop(work) } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "shop", input: { article: "tea" } });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await page.waitForSelector(".question");
    const values = async () =>
      ((await (await get(`${url}/threads/${thread}/state`)).json()) as { values: object }).values;
    const buttons = page.getByRole("group", { name: "Event", exact: true }).getByRole("button");
    return { url, thread, page, wrong, values, buttons };
  }

  test("has a form for the data of an event, and sends what was entered", async () => {
    const { page, wrong, values, buttons } = await shopping();
    expect(await buttons.allInnerTexts()).toEqual(["CANCEL", "PAY"]);
    const form = page.getByRole("form", { name: "Data of PAY" });
    expect(await form.count()).toBe(0);
    await buttons.getByText("PAY").click();
    await form.waitFor();
    expect(await buttons.getByText("PAY").getAttribute("aria-expanded")).toBe("true");
    await expect
      .poll(() => form.getByLabel("amount").evaluate((field) => field.matches(":focus")))
      .toBe(true);
    expect(await form.locator("label").allInnerTexts()).toEqual([
      "amount (required)",
      "method (required)",
      "note",
    ]);
    await form.getByRole("button", { name: "Send PAY" }).click();
    // Nothing was sent, and the first field that is missing has the focus.
    await expect.poll(() => form.locator('[aria-invalid="true"]').count()).toBe(2);
    await expect
      .poll(() => page.evaluate('document.activeElement?.getAttribute("inputmode")'))
      .toBe("decimal");
    await form.getByLabel("amount").fill("0");
    await form.getByText("must be at least 1").waitFor();
    await form.getByLabel("amount").fill("12.5");
    await form.getByLabel("method").selectOption("cash");
    expect(await values()).toMatchObject({ __state__: "open" });
    await form.getByRole("button", { name: "Send PAY" }).click();
    await expect
      .poll(values)
      .toMatchObject({ __state__: "paid", event: { type: "PAY", amount: 12.5, method: "cash" } });
    // The next state takes one event alone, so its form is open at once.
    const next = page.getByRole("form", { name: "Data of SHIP" });
    await next.getByLabel("street").fill("Main Street");
    await next.getByLabel("floor").fill("3");
    await next.getByRole("button", { name: "Send SHIP" }).click();
    await expect
      .poll(values)
      .toMatchObject({ event: { type: "SHIP", to: { street: "Main Street", floor: 3 } } });
    expect(wrong).toEqual([]);
  });

  test("sends an event without a schema by its button", async () => {
    const { page, wrong, values, buttons } = await shopping();
    expect(await page.getByText("Event data").count()).toBe(1);
    await buttons.getByText("CANCEL").click();
    await expect.poll(values).toMatchObject({ __state__: "gone" });
    expect(wrong).toEqual([]);
  });

  test("says that a text as JSON that is none is kept and not sent while an event is chosen", async () => {
    const { page } = await shopping();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    const json = page.getByLabel("Answer, as JSON");
    await json.fill('{"type": "CANC');
    await page.getByRole("button", { name: "Event", exact: true }).click();
    const note = page.getByText("The text that you typed as JSON is not valid. It is kept, but not sent");
    await note.waitFor();
    await page.getByRole("button", { name: "Back to the JSON text" }).click();
    expect(await json.inputValue()).toBe('{"type": "CANC');
    await page.getByRole("button", { name: "Event", exact: true }).click();
    await page.getByRole("button", { name: "Discard the JSON text" }).click();
    await expect.poll(() => note.count()).toBe(0);
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    expect(await json.inputValue()).toBe("");
  });

  test("has the form in the inbox too", async () => {
    const { page, wrong, values, buttons } = await shopping();
    await page.goto(page.url().replace(/#.*/, "#/inbox"));
    await buttons.getByText("PAY").click();
    const form = page.getByRole("form", { name: "Data of PAY" });
    await form.getByLabel("amount").fill("3");
    await form.getByLabel("method").selectOption("card");
    await form.getByLabel("note").fill("thanks");
    await form.getByLabel("note").press("Control+Enter");
    await expect.poll(values).toMatchObject({
      __state__: "paid",
      event: { type: "PAY", amount: 3, method: "card", note: "thanks" },
    });
    expect(wrong).toEqual([]);
  });

  test("says in the terms of the event which part of an answer as JSON is refused, beside the field, until it is changed", async () => {
    const { page, wrong, values } = await shopping();
    const field = page.getByLabel("Answer, as JSON");
    const send = page.getByRole("button", { name: "Send answer" });
    const faults = page.locator(".question").getByRole("alert");
    for (const isInInbox of [false, true]) {
      if (isInInbox) {
        await page.goto(page.url().replace(/#.*/, "#/inbox"));
        await page.getByRole("button", { name: "Leave", exact: true }).click();
      }
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await field.fill('{"type": "PAY", "amount": 0, "method": "card"}');
      await send.click();
      await expect
        .poll(() => faults.allInnerTexts())
        .toEqual([expect.stringMatching(/^amount: Too small: expected number to be >=1$/)]);
      expect(await field.getAttribute("aria-invalid")).toBe("true");
      expect(await page.locator(".notices").innerText()).not.toContain("command.resume");
      expect(await page.locator("#main").innerText()).not.toContain("command.resume");
      await field.fill('{"type": "PAID"}');
      expect(await faults.count()).toBe(0);
      await send.click();
      await expect.poll(() => faults.allInnerTexts()).toEqual([expect.stringMatching(/CANCEL, PAY/)]);
      expect(await faults.innerText()).not.toContain("command.resume");
    }
    await field.fill('{"type": "PAY", "amount": 2, "method": "card"}');
    await send.click();
    await expect.poll(values).toMatchObject({ __state__: "paid", event: { amount: 2 } });
    expect(wrong.filter((text) => !text.includes("the server responded with a status of 422"))).toEqual([]);
  });

  test("what only the server can find wrong with an event stands beside the field of its form", async () => {
    const even = setup({
      types: {} as { events: { type: "SET" } },
      schemas: {
        events: {
          SET: z.object({
            place: z.object({ size: z.number().refine((n) => n % 2 === 0, "must be even") }),
            note: z.string(),
          }),
        },
      },
    }).createMachine({ initial: "open", states: { open: { on: { SET: "set" } }, set: { type: "final" } } });
    const { url } = await serve({ graphs: { even } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "even", input: {} });
    const { page } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const form = page.getByRole("form", { name: "Data of SET" });
    await form.getByLabel("size").fill("3");
    await form.getByLabel("note").fill("odd");
    await form.getByRole("button", { name: "Send SET" }).click();
    const fault = page.locator('.field .field:has(> label:has-text("size")) > [role="alert"]');
    await expect.poll(() => fault.allInnerTexts()).toEqual(["must be even"]);
    expect(await page.locator(".question, .composer").first().getByRole("alert").count()).toBe(1);
    await form.getByLabel("size").fill("4");
    expect(await fault.count()).toBe(0);
    await form.getByRole("button", { name: "Send SET" }).click();
    await expect
      .poll(
        async () =>
          ((await (await get(`${url}/threads/${thread}/state`)).json()) as { values: object }).values,
      )
      .toMatchObject({ __state__: "set" });
  });

  test("has the form while an actor works", async () => {
    const { work, calls, waiting } = heldCalls<string>();
    const { url, thread, page, wrong, values } = await shopping(work);
    for (const event of [
      { type: "PAY", amount: 1, method: "card" },
      { type: "SHIP", to: { street: "Main Street" } },
    ])
      await post(`${url}/threads/${thread}/events`, event);
    await calls(1);
    const form = page.getByRole("region", { name: "Events" }).getByRole("form", { name: "Data of PAY" });
    await form.getByLabel("amount").fill("7");
    await form.getByLabel("method").selectOption("cash");
    await form.getByRole("button", { name: "Send PAY" }).click();
    await expect.poll(values).toMatchObject({ event: { type: "PAY", amount: 7, method: "cash" } });
    waiting[0]?.open("done");
    await expect.poll(values).toMatchObject({ __state__: "gone" });
    expect(wrong).toEqual([]);
  });

  test("without a schema for its input, says where a thread is begun that an input is entered as JSON", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    await page.getByText("If it needs an input, enter it as JSON.").waitFor();
    expect(wrong).toEqual([]);
  });

  test("has the fields of its input where a thread is begun", async () => {
    const { url } = await serve({ graphs: { shop: shop() } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=shop`);
    const form = page.locator("form.run-form");
    await form.getByLabel("article").fill("tea");
    expect(await form.locator(".field label").allInnerTexts()).toEqual(["article (required)", "count"]);
    await form.getByRole("button", { name: "Start" }).click();
    await page.waitForSelector(".question");
    const state = page.getByRole("region", { name: "State", exact: true });
    await expect.poll(() => state.innerText()).toMatch(/article: tea[\s\S]*count: 1/);
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(isMissing)("a question that a timer ends", { timeout: 60_000 }, () => {
  const HOUR = 60 * 60 * 1_000;
  const expense = setup({
    types: { events: {} as { type: "APPROVE"; limit: number } },
  }).createMachine({
    id: "expense",
    initial: "asked",
    states: {
      asked: {
        on: { APPROVE: { target: "approved", guard: ({ event }) => event.limit <= 1_000 } },
        after: { [HOUR]: "expired" },
      },
      approved: {},
      expired: { type: "final" },
    },
  });

  test("is answered by nobody, also where an answer was refused before", async () => {
    const time = new ShiftedTime();
    const { url } = await serve({ graphs: { expense }, ...time });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "expense", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    // The form does not learn of the refusal in the short time in which it waits for it.
    await page.route(/\/threads\/[^/]+\/runs\/[^/]+$/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), status: "running" } });
    });
    await page.getByText("Event data").click();
    await page.getByLabel("Name of field 1").fill("limit");
    await page.getByLabel("Value of field 1").fill("5000");
    await page.getByRole("button", { name: "APPROVE" }).click();
    expect(await page.locator(".composer").getByRole("alert").innerText()).toBe(
      'The answer was refused: no transition for "APPROVE" is enabled now: its guard does not hold',
    );
    expect(await page.getByLabel("Value of field 1").inputValue()).toBe("5000");
    await page.unrouteAll({ behavior: "wait" });
    time.advance(2 * HOUR);
    const note = page.locator(".composer > .note");
    await expect.poll(() => note.innerText()).toContain("The question is no longer pending");
    expect(await note.innerText()).not.toContain("answered");
    // The page of the run that asked says what ended its question.
    const runs = (await (await get(`${url}/threads/${thread}/runs`)).json()) as readonly { run_id: string }[];
    await page.getByRole("button", { name: "Discard my answer" }).click();
    await page.goto(`${url}/#/threads/${thread}/runs/${runs.at(-1)?.run_id}`);
    await expect
      .poll(() => page.locator(".note").innerText())
      .toMatch(/Not answered: a timer moved the machine on .+ in run …/);
    await page.getByText("asked a question").first().waitFor();
    expect(wrong).toEqual([]);
  });
});

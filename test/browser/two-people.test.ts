import { Auth } from "@langchain/langgraph-sdk/auth";
import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { AppOptions } from "../../src/app.ts";
import { graph, value } from "../../src/index.ts";
import { authenticate, connectAs, tokens } from "../e2e/support/auth.ts";
import { serve } from "../e2e/support/server.ts";
import { browser, isMissing } from "./chromium.ts";

const order = graph({
  state: { region: value("EU"), amount: value(10), note: value("") },
  nodes: { price: async () => ({ note: "priced" }), ship: async () => ({ note: "shipped" }) },
  edges: { start: "price", price: "ship" },
});

const asks = graph({
  state: { drink: value(""), food: value("") },
  nodes: {
    first: async (_, ctx) => ({ drink: String(await ctx.interrupt("What is it?")) }),
    second: async (_, ctx) => ({ food: String(await ctx.interrupt("And then?")) }),
  },
  edges: { start: "first", first: "second" },
});

/** A thread that waits, Alice's page of it, and Bob's client. Both may do everything. */
async function shared(graphName: "order" | "asks", query = "") {
  const auth = new Auth().authenticate(authenticate) as unknown as NonNullable<AppOptions["auth"]>;
  const { url } = await serve({ graphs: { order, asks }, auth });
  const bob = connectAs(url, "bob");
  const { thread_id } = await bob.threads.create();
  await bob.runs.wait(thread_id, graphName, {
    input: {},
    ...(graphName === "order" && { interruptBefore: ["ship"] }),
  });
  const context = await browser();
  await context.addInitScript(`sessionStorage.setItem("heddle.key", "${tokens.alice}")`);
  const page = await context.newPage();
  await page.goto(`${url}/#/threads/${thread_id}${query}`);
  const state = () => bob.threads.getState<Record<string, unknown>>(thread_id);
  const values = async () => (await state()).values;
  return { page, bob, thread_id, state, values };
}

/** A thread that pauses before `ship`. */
const paused = (query?: string) => shared("order", query);

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const note = (page: Page) => page.getByRole("dialog").getByRole("alert");
const amount = (page: Page) => page.getByRole("dialog").getByRole("textbox", { name: "amount" });

async function edit(page: Page): Promise<void> {
  await button(page, "Edit state").click();
  await amount(page).fill("11");
}

describe.skipIf(isMissing)("two people on one thread, in a real browser", { timeout: 60_000 }, () => {
  test("what another person stores while one edits the state is told, and stays; one's own change is made on it", async () => {
    const { page, bob, thread_id, values } = await paused();
    await edit(page);
    await page.getByLabel("Other changes, as JSON").fill('{"note": "mine"}');
    await bob.threads.updateState(thread_id, { values: { region: "US" } });
    await expect
      .poll(() => note(page).innerText())
      .toMatch(/^bob has changed the state while you were editing\./);
    await button(page, "Apply my changes to the newer state").click();
    await expect.poll(() => note(page).count()).toBe(0);
    expect(await page.getByRole("dialog").getByLabel("region").inputValue()).toBe("US");
    expect(await amount(page).inputValue()).toBe("11");
    await page.getByText("Changes amount, note").waitFor();
    await button(page, "Save").click();
    await expect.poll(values).toEqual({ region: "US", amount: 11, note: "mine" });
    await page.goto(`${page.url()}?tab=history`);
    await expect.poll(() => page.locator(".moment > p").innerText()).toContain(" · by alice · ");
    await button(page, "Earlier").click();
    await expect.poll(() => page.locator(".moment > p").innerText()).toContain(" · by bob · ");
    await button(page, "Earlier").click();
    await expect.poll(() => page.locator(".moment > p").innerText()).toMatch(/run ….{8}, started by bob/);
  });

  test("the server refuses what would undo the change of another person; on the wish of the user it is a branch", async () => {
    const { page, bob, thread_id, state } = await paused();
    const { checkpoint } = await state();
    await edit(page);
    // Bob is faster by the time that the request needs.
    const meanwhile = async (route: Route) => {
      await bob.threads.updateState(thread_id, { values: { region: "US" } });
      await route.continue();
    };
    await page.route("**/state", meanwhile, { times: 1 });
    await button(page, "Save").click();
    await expect
      .poll(() => note(page).innerText())
      .toMatch(/^bob has changed the state while you were editing\./);
    expect(await state()).toMatchObject({ values: { region: "US", amount: 10 } });
    await button(page, "Save as a branch").click();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect(await state()).toMatchObject({
      values: { region: "EU", amount: 11 },
      parent_checkpoint: { checkpoint_id: checkpoint.checkpoint_id },
    });
  });

  test("the dialog stays with what was typed when another person resumes the thread, and says so", async () => {
    const { page, bob, thread_id } = await paused();
    await edit(page);
    await bob.runs.wait(thread_id, "order", { input: null });
    await expect.poll(() => note(page).innerText()).toMatch(/^A run that bob started has changed the state/);
    expect(await amount(page).inputValue()).toBe("11");
  });

  test("in the history too; to edit a past state is to begin a branch, without a question", async () => {
    const { page, bob, thread_id, values } = await paused("?tab=history");
    await edit(page);
    await bob.runs.wait(thread_id, "order", { input: null });
    await expect.poll(() => note(page).innerText()).toMatch(/^A run that bob started has changed the state/);
    expect(await amount(page).inputValue()).toBe("11");
    await button(page, "Cancel").click();
    await button(page, "Earlier").click();
    await edit(page);
    await button(page, "Save as a branch").click();
    await expect.poll(values).toMatchObject({ amount: 11, note: "priced" });
  });

  test("a half-typed answer stays when another person answers, and who it was is said", async () => {
    const { page, bob, thread_id, values } = await shared("asks");
    const field = page.getByLabel("Answer", { exact: true });
    await field.fill("tea, with");
    const [question] = (await bob.threads.getState(thread_id)).tasks.flatMap(({ interrupts }) => interrupts);
    await bob.runs.wait(thread_id, "asks", { command: { resume: { [question?.id ?? ""]: "coffee" } } });
    await expect
      .poll(() => page.locator(".composer").getByRole("alert").innerText())
      .toContain("bob has already answered this question");
    expect(await field.inputValue()).toBe("tea, with");
    expect(await button(page, "Send answer").isDisabled()).toBe(true);
    await button(page, "Discard my answer").click();
    // The next question, with an empty field.
    await expect.poll(() => page.innerText(".question")).toContain("And then?");
    expect(await field.inputValue()).toBe("");
    // One's own answer leaves nothing behind.
    await field.fill("cake");
    await button(page, "Send answer").click();
    await expect.poll(values).toEqual({ drink: "coffee", food: "cake" });
    await page.getByRole("region", { name: "Start a run" }).waitFor();
  });

  test("the page of the run that asked says who answered, when, and in which run", async () => {
    const { page, bob, thread_id } = await shared("asks", "?tab=runs");
    const [asking] = await bob.runs.list(thread_id);
    await page.locator(`a[href$="${asking?.run_id}"]`).click();
    const question = page.locator(".note");
    await question.getByRole("link", { name: "Answer", exact: true }).waitFor();
    await bob.runs.wait(thread_id, "asks", { command: { resume: "coffee" } });
    const told = /^Question: What is it\?\s+Answered by bob .+ ago in run ….{8}$/;
    await expect.poll(() => question.innerText()).toMatch(told);
    const [answering] = await bob.runs.list(thread_id);
    // A later answer to another question of the thread changes nothing.
    await bob.runs.wait(thread_id, "asks", { command: { resume: "cake" } });
    await page.reload();
    await expect.poll(() => question.innerText()).toMatch(told);
    await question.getByRole("link").click();
    await expect.poll(() => page.url()).toContain(`/runs/${answering?.run_id}`);
    await expect.poll(() => question.innerText()).toMatch(/^Question: And then\?\s+Answered by bob/);
  });

  test("a question that a run with a new input dropped was not answered, which its run says", async () => {
    const { page, bob, thread_id } = await shared("asks", "?tab=runs");
    const [asking] = await bob.runs.list(thread_id);
    await bob.runs.wait(thread_id, "asks", { input: { food: "cake" } });
    const [dropping] = await bob.runs.list(thread_id);
    await page.locator(`a[href$="${asking?.run_id}"]`).click();
    const question = page.locator(".note");
    await expect
      .poll(() => question.innerText())
      .toMatch(/^Question: What is it\?\s+Not answered: run ….{8} began with a new input .+ ago, by bob$/);
    expect(await question.getByRole("link").getAttribute("href")).toContain(dropping?.run_id);
  });
});

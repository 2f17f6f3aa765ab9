import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, messages } from "../../src/index.ts";
import { latch, unlessAborted } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post } from "../e2e/support/wire.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const verdict = z.object({
  ok: z.boolean(),
  mood: z.enum(["glad", "sad"]).optional(),
  count: z.number().int().default(1),
  note: z.string(),
});

/** A node that asks `value` and stores the answer. */
const asking = (value: unknown, schema?: z.ZodType) =>
  graph({
    state: { answers: list<unknown>() },
    nodes: {
      ask: async (_, ctx) => ({
        answers: [await ctx.interrupt(value, schema === undefined ? {} : { schema })],
      }),
    },
    edges: { start: "ask" },
  });

const human = {
  action_request: { action: "send_mail", args: { to: "a@example.com", urgent: true } },
  config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
  description: "Look at the **recipient**.",
};

const review = {
  action_requests: [
    { name: "delete_row", args: { id: 7 }, description: "Deletes it" },
    { name: "send_mail", args: { to: "b@example.com" } },
  ],
  review_configs: [
    { action_name: "delete_row", allowed_decisions: ["approve", "reject"] },
    { action_name: "send_mail", allowed_decisions: ["approve", "edit", "reject"] },
  ],
};

const graphs = {
  form: asking("Is it good?", verdict),
  number: asking("How many?", z.number()),
  size: asking("Which size?", z.enum(["small", "large"])),
  sure: asking("Are you sure?", z.boolean()),
  human: asking(human),
  review: asking(review),
  plain: asking({ question: "What now?" }),
  text: asking("What is its name?"),
};

/** The page of a thread that waits at a question of that graph. */
async function asked(name: keyof typeof graphs) {
  const app = await serve({ graphs });
  const thread = await newThread(app.url);
  await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: name, input: {} });
  const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
  await page.waitForSelector(".question");
  const answers = async (): Promise<unknown> => {
    const state = (await (await get(`${app.url}/threads/${thread}/state`)).json()) as {
      values: { answers?: unknown };
    };
    return state.values.answers;
  };
  return { page, wrong, answers };
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

describe.skipIf(isMissing)("answers in a real browser", { timeout: 60_000 }, () => {
  test("a question with a schema is answered by a form made of it, that is sent once it is whole", async () => {
    const { page, wrong, answers } = await asked("form");
    await expect.poll(() => page.innerText(".question .hint")).toBe("Missing: ok, note.");
    expect(await button(page, "Send answer").isDisabled()).toBe(true);
    await page.getByRole("radio", { name: "no" }).check();
    await page.getByLabel("mood").selectOption("sad");
    await page.getByLabel("note").fill("try again");
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([{ ok: false, mood: "sad", count: 1, note: "try again" }]);
    expect(wrong).toEqual([]);
  });

  test("a text as JSON that is none is said to be kept and not sent while another way to answer is chosen, until it is discarded", async () => {
    const { page, answers } = await asked("form");
    await button(page, "JSON").click();
    const json = page.getByLabel("Answer, as JSON");
    await json.fill('{"ok": tru');
    await button(page, "Form").click();
    const note = page.getByText("The text that you typed as JSON is not valid. It is kept, but not sent");
    await note.waitFor();
    await button(page, "Back to the JSON text").click();
    expect(await json.inputValue()).toBe('{"ok": tru');
    await expect.poll(() => json.evaluate((field) => field.matches(":focus"))).toBe(true);
    expect(await note.count()).toBe(0);
    await button(page, "Form").click();
    await button(page, "Discard the JSON text").click();
    await expect.poll(() => note.count()).toBe(0);
    await button(page, "JSON").click();
    expect(await json.inputValue()).toBe("");
    await button(page, "Form").click();
    expect(await note.count()).toBe(0);
    await page.getByRole("radio", { name: "yes" }).check();
    await page.getByLabel("note").fill("done");
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([{ ok: true, count: 1, note: "done" }]);
  });

  test("an answer stays in its form while the run that it was sent with is at work, and is refused", async () => {
    let go = () => {};
    const gone = new Promise<void>((resolve) => (go = resolve));
    let tries = 0;
    const slow = graph({
      state: { answers: list<unknown>() },
      nodes: {
        ask: async (_, ctx) => {
          tries += 1;
          if (tries > 1) await gone;
          return { answers: [await ctx.interrupt("How many?", { schema: z.number() })] };
        },
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { slow } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "slow", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await button(page, "JSON").click();
    const field = page.getByLabel("Answer, as JSON");
    await field.fill('"Tom"');
    await button(page, "Send answer").click();
    await page.locator(".head").getByText("busy", { exact: true }).waitFor();
    expect(await field.inputValue()).toBe('"Tom"');
    // After a while the run is taken to have accepted the answer.
    await field.waitFor({ state: "hidden" });
    go();
    await page.locator(".composer").getByRole("alert").getByText("expected number").waitFor();
    expect(await field.inputValue()).toBe('"Tom"');
    expect(wrong).toEqual([]);
  });

  test("an answer whose response was lost is not said to be somebody else's; another person's other answer is", async () => {
    for (const stored of ["Loom", "Weft"]) {
      const { page, answers } = await asked("text");
      // The server gets the answer `stored`; the page's own request with "Loom" gets no response.
      const loseResponse = async (route: Route) => {
        await route.fetch({ postData: (route.request().postData() ?? "").replace("Loom", stored) });
        await route.abort();
      };
      await page.route("**/runs", loseResponse, { times: 1 });
      await page.getByLabel("Answer", { exact: true }).fill("Loom");
      await button(page, "Send answer").click();
      await expect.poll(answers).toEqual([stored]);
      const note = page.locator(".composer").getByRole("alert");
      const [text, next] =
        stored === "Loom"
          ? ["The thread has continued with this answer. Only the server's response was lost.", "Continue"]
          : ["Somebody else has already answered this question", "Discard my answer"];
      await expect.poll(() => note.innerText()).toContain(text);
      await note.getByRole("button", { name: next }).click();
      await page.getByRole("region", { name: "Start a run" }).waitFor();
    }
  });

  test("a node that asks the same again, with the same id, gets an empty form", async () => {
    const words = new StateGraph(Annotation.Root({ words: Annotation<unknown> }))
      .addNode("ask", () => ({ words: [interrupt("Which word?"), interrupt("Which word?")] }))
      .addEdge(START, "ask")
      .compile();
    const { url } = await serve({ langGraphs: await served({ words }) });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "words", input: {} });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const field = page.getByLabel("Answer", { exact: true });
    await field.fill("warp");
    await button(page, "Send answer").click();
    await expect.poll(() => field.inputValue()).toBe("");
    await field.fill("weft");
    await button(page, "Send answer").click();
    await page.getByRole("region", { name: "Start a run" }).waitFor();
    const state = await (await get(`${url}/threads/${thread}/state`)).json();
    expect(state).toMatchObject({ values: { words: ["warp", "weft"] } });
    expect(wrong).toEqual([]);
  });

  test("one of a single value has a single field; another than the schema allows can be sent as JSON, and is refused", async () => {
    const { page, wrong, answers } = await asked("number");
    await button(page, "JSON").click();
    await page.getByLabel("Answer, as JSON").fill('"many"');
    await button(page, "Send answer").click();
    await page
      .locator(".composer")
      .getByRole("alert")
      .getByText("expected number, received string")
      .waitFor();
    expect(await page.getByLabel("Answer, as JSON").inputValue()).toBe('"many"');
    await page.reload();
    await page
      .locator(".composer")
      .getByRole("alert")
      .getByText("expected number, received string")
      .waitFor();
    await page.getByLabel("Answer (required)").fill("3");
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([3]);
    expect(wrong).toEqual([]);
  });

  test.each([
    ["size", "large", "large"],
    ["sure", "No", false],
  ] as const)("one that is a choice (%s) has a button for each", async (name, choice, answer) => {
    const { page, wrong, answers } = await asked(name);
    await button(page, choice).click();
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([answer]);
    expect(wrong).toEqual([]);
  });

  test.each([
    ["Accept", { type: "accept", args: null }, async () => undefined],
    ["Ignore", { type: "ignore", args: null }, async () => undefined],
    [
      "Respond",
      { type: "response", args: "not today" },
      (page: Page) => page.getByLabel("Response to send_mail").fill("not today"),
    ],
    [
      "Edit",
      { type: "edit", args: { action: "send_mail", args: { to: "c@example.com", urgent: true } } },
      (page: Page) => page.getByLabel("to", { exact: true }).fill("c@example.com"),
    ],
  ] as const)("what an agent asks leave for has the button %s", async (name, answer, fill) => {
    const { page, wrong, answers } = await asked("human");
    expect(await page.innerText(".action strong")).toBe("recipient");
    await button(page, name).click();
    await fill(page);
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([[answer]]);
    expect(wrong).toEqual([]);
  });

  test.each([
    [
      "form",
      async (page: Page) => page.getByLabel("note").fill("fine"),
      async (page: Page) => page.getByRole("radio", { name: "yes" }).check(),
      { ok: true, count: 1, note: "fine" },
    ],
    [
      "human",
      async (page: Page) => button(page, "Edit").click(),
      async (page: Page) => page.getByLabel("to", { exact: true }).fill("c@example.com"),
      [{ type: "edit", args: { action: "send_mail", args: { to: "c@example.com", urgent: true } } }],
    ],
  ] as const)(
    "the answer sent has the last input (%s), even before the browser draws the next frame",
    async (name, begin, end, answer) => {
      const { page, wrong, answers } = await asked(name);
      await begin(page);
      await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))");
      // From now on no frame is drawn, and no timer fires.
      await page.clock.install();
      await page.clock.pauseAt(Date.now() + 60_000);
      await end(page);
      expect(await button(page, "Send answer").isEnabled()).toBe(true);
      await button(page, "Send answer").press("Enter");
      await expect.poll(answers).toEqual([answer]);
      expect(wrong).toEqual([]);
    },
  );

  test("several things that an agent asks leave for are decided each, as each allows", async () => {
    const { page, wrong, answers } = await asked("review");
    const [first, second] = [page.locator(".action").first(), page.locator(".action").nth(1)];
    expect(await first.getByRole("button").allInnerTexts()).toEqual(["Accept", "Respond"]);
    await first.getByRole("button", { name: "Respond" }).click();
    await first.getByLabel("Response to delete_row").fill("keep it");
    expect(await button(page, "Send answer").isDisabled()).toBe(true);
    await second.getByRole("button", { name: "Edit" }).click();
    await second.getByLabel("to", { exact: true }).fill("d@example.com");
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([
      {
        decisions: [
          { type: "reject", message: "keep it" },
          { type: "edit", edited_action: { name: "send_mail", args: { to: "d@example.com" } } },
        ],
      },
    ]);
    expect(wrong).toEqual([]);
  });

  test("one without a schema is answered field by field, by a text, by yes or no, or as JSON", async () => {
    const { page, wrong, answers } = await asked("plain");
    await button(page, "Key-value").click();
    await page.getByLabel("Name of field 1").fill("ok");
    await page.getByLabel("Value of field 1").fill("true");
    await button(page, "Send answer").click();
    await expect.poll(answers).toEqual([{ ok: true }]);
    expect(wrong).toEqual([]);
  });

  test("another run in place of an answer: the form says that the question is dropped, and asks first", async () => {
    const { url } = await serve({ graphs });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "text", input: {} });
    const runs = async () => (await (await get(`${url}/threads/${thread}/runs`)).json()) as unknown[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}`);
    await button(page, "Start another run instead").click();
    await page.getByText("A run with a new input drops the open question").waitFor();
    const dialog = page.getByRole("dialog", { name: "Start a run without an answer?" });
    await button(page, "Run").click();
    await dialog.getByText("waits for an answer to “What is its name?”. The new run drops").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await runs()).toHaveLength(1);
    await button(page, "Run").click();
    await dialog.getByRole("button", { name: "Start run" }).click();
    await expect.poll(async () => (await runs()).length).toBe(2);
    expect(wrong).toEqual([]);
  });
});

const BACKTICKS = "```";
const REPLY = `# A plan

Do **this**, *then* \`that\`:

1. first
2. second

| name | size |
| --- | --- |
| tea | 3 |

${BACKTICKS}js
let a = 1 < 2;
${BACKTICKS}

[a site](https://example.com/x) [a trap](javascript:alert(1)) ![a picture](https://example.com/p.png)
<img src="https://example.com/q.png" onerror="alert(1)"> <script>alert(2)</script>`;

describe.skipIf(isMissing)("Markdown in a real browser", { timeout: 60_000 }, () => {
  test("of messages is shown as such; HTML in it is text, and nothing in it asks another host for anything", async () => {
    const talks = graph({
      state: { messages: messages() },
      nodes: { talk: async () => ({ messages: [{ type: "ai" as const, content: REPLY }] }) },
      edges: { start: "talk" },
    });
    const app = await serve({ graphs: { talks } });
    const thread = await newThread(app.url);
    const input = { messages: [{ role: "user", content: "**as typed**" }] };
    await post(`${app.url}/threads/${thread}/runs/wait`, { assistant_id: "talks", input });
    const { page, wrong } = await opened(await browser(), `${app.url}/#/threads/${thread}`);
    const reply = page.locator(".bubble.ai .markdown");
    await reply.waitFor();
    expect(await page.innerText(".bubble.human .text")).toBe("**as typed**");
    expect(await reply.locator("strong").allInnerTexts()).toEqual(["A plan", "this"]);
    expect(await reply.locator("ol li").allInnerTexts()).toEqual(["first", "second"]);
    expect(await reply.locator("td").allInnerTexts()).toEqual(["tea", "3"]);
    expect(await reply.locator("pre code").innerText()).toBe("let a = 1 < 2;");
    const links = await reply.locator("a").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    expect(links).toEqual(["https://example.com/x", "https://example.com/p.png"]);
    expect(await reply.locator("img, script").count()).toBe(0);
    expect(await reply.innerText()).toContain("<script>alert(2)</script>");
    expect(wrong).toEqual([]);
  });

  test("a question that is a text alone is answered with one", async () => {
    const { page, wrong, answers } = await asked("text");
    await page.getByRole("textbox", { name: "Answer" }).fill("Tom");
    await page.getByRole("button", { name: "Send answer" }).click();
    await expect.poll(answers).toEqual(["Tom"]);
    expect(wrong).toEqual([]);
  });

  test("an answer stays in its form when another person's answer brings the next question before the refusal arrives", async () => {
    const steps = graph({
      state: { answers: list<unknown>() },
      nodes: {
        first: async (_, ctx) => ({ answers: [await ctx.interrupt("What is its name?")] }),
        second: async (_, ctx) => ({ answers: [await ctx.interrupt("Which colour?")] }),
      },
      edges: { start: "first", first: "second" },
    });
    const { url } = await serve({ graphs: { steps } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "steps", input: {} });
    const { page } = await opened(await browser(), `${url}/#/threads/${thread}`);
    const field = page.locator(".question").getByRole("textbox", { name: "Answer" });
    await field.fill("Tom");
    await page.route(
      "**/runs",
      async (route) => {
        const isNextRead = page.waitForResponse(
          async (response) =>
            response.url().includes(`${thread}/state`) && (await response.text()).includes("Which colour?"),
        );
        const command = { resume: "Ann" };
        await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "steps", command });
        const response = await route.fetch();
        await isNextRead;
        await page.evaluate(
          "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        );
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await button(page, "Send answer").click();
    const note = page.locator(".composer").getByRole("alert");
    await expect.poll(() => note.innerText()).toContain("Somebody else has already answered this question");
    expect(await field.inputValue()).toBe("Tom");
    await note.getByRole("button", { name: "Discard my answer" }).click();
    await page.locator(".question").getByText("Which colour?").waitFor();
    expect(await field.inputValue()).toBe("");
  });

  test("the next question keeps what was entered before the page knows that the answer was accepted", async () => {
    const resumed = latch();
    const steps = graph({
      state: { answers: list<unknown>() },
      nodes: {
        first: async (_, ctx) => ({ answers: [await ctx.interrupt("What is its name?")] }),
        between: async (_, ctx) => {
          await unlessAborted(resumed.passed, ctx.signal);
          return {};
        },
        second: async (_, ctx) => ({ answers: [await ctx.interrupt("Which colour?")] }),
      },
      edges: { start: "first", first: "between", between: "second" },
    });
    const { url } = await serve({ graphs: { steps } });
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "steps", input: {} });
    const context = await browser();
    const { page, wrong } = await opened(context, `${url}/#/threads/${thread}`);
    const field = page.locator(".question").getByRole("textbox", { name: "Answer" });
    await field.fill("Tom");
    // The page reads the runs while the run with the answer is in progress, and everything else after its end.
    const [read, shown, known] = [latch(), latch(), latch()];
    let reads = 0;
    let isSent = false;
    await context.route(/\/threads\/[^/]+\/runs\?.*limit=100\b/, async (route) => {
      let response = await route.fetch();
      // The page also reads when its feed begins, which may be before the answer.
      if (!isSent) return route.fulfill({ response });
      // A read that begins before the run with the answer is in progress waits for that: the rest of this read is held back, too.
      const hasBegun = (runs: unknown) =>
        (runs as readonly { readonly status: string }[]).some(({ status }) => status === "running");
      // oxlint-disable-next-line no-await-in-loop -- until the run is in progress
      while (!reads && !hasBegun(await response.json())) response = await route.fetch();
      reads++;
      if (reads > 1) {
        await known.passed;
        response = await route.fetch();
      }
      read.pass();
      await shown.passed;
      return route.fulfill({ response });
    });
    for (const [pattern, gate] of [
      [/\/threads\/[^/]+\/state\?/, shown],
      [/\/threads\/[^/?]+$/, shown],
      [/\/threads\/[^/]+\/runs\/[^/?]+$/, known],
    ] as const)
      // oxlint-disable-next-line no-await-in-loop -- each adds a route to the same context
      await context.route(pattern, async (route) => {
        if (isSent) await gate.passed;
        await route.continue();
      });
    isSent = true;
    await button(page, "Send answer").click();
    await read.passed;
    resumed.pass();
    await expect
      .poll(async () => (await get(`${url}/threads/${thread}`)).json())
      .toMatchObject({ status: "interrupted" });
    shown.pass();
    await page.locator(".question", { hasText: "Which colour?" }).waitFor();
    await page.locator(".working").waitFor();
    await field.fill("green");
    known.pass();
    await page.locator(".working").waitFor({ state: "detached" });
    expect(await field.inputValue()).toBe("green");
    await button(page, "Send answer").click();
    await expect
      .poll(async () => (await get(`${url}/threads/${thread}/state`)).json())
      .toMatchObject({ values: { answers: ["Tom", "green"] } });
    expect(wrong).toEqual([]);
  });
});

import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, value } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

describe.skipIf(isMissing)("the assistants' page in a real browser", { timeout: 60_000 }, () => {
  test("an assistant is made, edited, compared by version, set to a version and deleted", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/assistants`);
    await expect.poll(() => page.locator(".sided aside li").allInnerTexts()).toEqual(["agent", "approval"]);
    expect(await page.locator(".empty").innerText()).toContain("Choose an assistant, or create one");
    await page.getByRole("link", { name: "Create", exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill("Helper");
    await page.getByRole("combobox").selectOption("approval");
    await page.getByLabel("Config", { exact: true }).fill('{"tone": "formal"}');
    const hint = page.getByText("is ignored");
    await expect.poll(() => hint.innerText()).toContain("“tone” is ignored");
    await page.getByLabel("Config", { exact: true }).fill('{"configurable": {"tone": "formal"}, "tags": []}');
    await hint.waitFor({ state: "detached" });
    await page.getByLabel("Config", { exact: true }).fill("");
    await page.getByLabel("Context", { exact: true }).fill("{wrong");
    await page.getByRole("button", { name: "Create assistant" }).click();
    await expect.poll(() => page.locator(".failure").innerText()).toBe("Context must be an object, as JSON.");
    await page.getByLabel("Context", { exact: true }).fill('{"tone": "dry"}');
    await page.getByRole("button", { name: "Create assistant" }).click();
    await expect.poll(() => page.locator("h2").innerText()).toMatch(/^Helper \(approval, .*version 1/);
    const id = /assistants\/([0-9a-f-]{36})/.exec(page.url())?.[1];
    const stored = async () => (await get(`${url}/assistants/${id}`)).json();
    expect(await stored()).toMatchObject({ name: "Helper", graph_id: "approval", context: { tone: "dry" } });

    const save = page.getByRole("button", { name: "Save as new version" });
    expect(await save.isDisabled()).toBe(true);
    await page.getByLabel("Context", { exact: true }).fill('{"tone": "warm"}');
    await save.click();
    await expect.poll(() => page.locator("h2").innerText()).toContain("version 2");
    await expect.poll(() => page.locator(".versions li").allInnerTexts()).toHaveLength(2);
    expect((await page.locator(".versions li").allInnerTexts())[0]).toContain("changed context");
    expect(await stored()).toMatchObject({ description: null });
    await page.getByRole("link", { name: "Compare with 1" }).click();
    await expect.poll(() => page.locator(".diff del").innerText()).toContain('"tone": "dry"');
    expect(await page.locator(".diff ins").innerText()).toContain('"tone": "warm"');
    expect(page.url()).toContain("with=1");

    await page.getByLabel("Description").fill("of tea");
    await page.getByRole("button", { name: "Make version 1 current" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByLabel("Description").inputValue()).toBe("of tea");
    expect(await stored()).toMatchObject({ version: 2 });
    await page.getByRole("button", { name: "Make version 1 current" }).click();
    await page.getByRole("button", { name: "Discard" }).click();
    await expect.poll(() => page.locator("h2").innerText()).toContain("version 1");
    expect(await stored()).toMatchObject({ version: 1, context: { tone: "dry" } });
    await expect
      .poll(() => page.getByLabel("Context", { exact: true }).inputValue())
      .toContain('"tone": "dry"');

    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => page.locator(".sided aside li").allInnerTexts()).toEqual(["agent", "approval"]);
    expect((await get(`${url}/assistants/${id}`)).status).toBe(404);
    expect(wrong).toEqual([]);
  });

  test("a context that the graph describes has a form, and one that its schema refuses is not saved", async () => {
    const priced = graph({
      context: z.object({ currency: z.string().default("EUR"), limit: z.number().max(10) }),
      state: { size: value(0) },
      nodes: { keep: async () => ({}) },
      edges: { start: "keep" },
    });
    const { url } = await serve({ graphs: { priced } });
    const make = async (context: object) => {
      const fields = { graph_id: "priced", name: "Helper", context };
      return (await postJson(`${url}/assistants`, fields)) as { assistant_id: string };
    };
    const { assistant_id: id } = await make({ currency: "EUR" });
    const stored = async () => (await get(`${url}/assistants/${id}`)).json();
    const { page, wrong } = await opened(await browser(), `${url}/#/assistants/${id}`);
    const currency = page.getByLabel("currency", { exact: true });
    await expect.poll(() => currency.inputValue()).toBe("EUR");
    const save = page.getByRole("button", { name: "Save as new version" });
    await page.getByLabel("limit", { exact: true }).fill("11");
    await save.click();
    await expect
      .poll(() => page.locator(".failure").innerText())
      .toContain("Context: limit must be at most 10.");
    expect(await stored()).toMatchObject({ version: 1 });
    // What the schema requires, the assistant's runs may give.
    await page.getByLabel("limit", { exact: true }).fill("");
    await currency.fill("USD");
    await save.click();
    await expect.poll(stored).toMatchObject({ version: 2, context: { currency: "USD" } });
    // The page knows that nothing is unsaved any more.
    await expect.poll(() => save.isDisabled()).toBe(true);

    // Members that the form would not show are edited as JSON.
    const other = await make({ curency: "USD" });
    await page.goto(`${url}/#/assistants/${other.assistant_id}`);
    const json = page.getByLabel("Context", { exact: true });
    await page.getByText("priced does not describe “curency” in its context").waitFor();
    await json.fill('{"currency": 5}');
    await save.click();
    await expect
      .poll(() => page.locator(".failure").innerText())
      .toContain("Context: currency must be a string.");
    expect(wrong).toEqual([]);
  });

  test("of a graph of LangGraph.js, it is said which of its nodes read the context", async () => {
    const State = Annotation.Root({ paid: Annotation<string> });
    const pay = new StateGraph(State, z.object({ currency: z.string().optional() }))
      .addNode("pay", (_, { configurable, context }) => ({
        paid: `${configurable?.["currency"]} ${context?.currency}`,
      }))
      .addEdge(START, "pay")
      .compile();
    const { url } = await serve({ langGraphs: await served({ pay }) });
    const fields = { graph_id: "pay", name: "Helper", context: { currency: "USD" } };
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, fields);
    const { page, wrong } = await opened(await browser(), `${url}/#/assistants/${assistant_id}`);
    await page.getByText("Nodes read these values as runtime.context").waitFor();
    await page.getByLabel("Config", { exact: true }).fill('{"configurable": {"currency": "EUR"}}');
    await page.getByRole("button", { name: "Save as new version" }).click();
    await page.getByText("version 2").first().waitFor();
    const run = { assistant_id, input: {} };
    expect(await postJson(`${url}/runs/wait`, run)).toMatchObject({ paid: "EUR USD" });
    expect(wrong).toEqual([]);
  });

  test("a member of the metadata that is deleted is refused, because the API cannot delete it", async () => {
    const { url } = await serve();
    const fields = { graph_id: "agent", name: "Helper", metadata: { team: "a", tier: 1 } };
    const { assistant_id: id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, fields);
    const { page, wrong } = await opened(await browser(), `${url}/#/assistants/${id}`);
    await page.getByLabel("Metadata", { exact: true }).fill('{"tier": 2}');
    await page.getByRole("button", { name: "Save as new version" }).click();
    await expect.poll(() => page.locator(".failure").innerText()).toContain("“team” cannot be deleted");
    expect(await (await get(`${url}/assistants/${id}`)).json()).toMatchObject({ version: 1 });
    expect(wrong).toEqual([]);
  });

  test("a comparison shows what is different, and no line that only got a comma", async () => {
    const { url } = await serve();
    const fields = { graph_id: "agent", name: "Helper", context: { tone: "dry" } };
    const { assistant_id: id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, fields);
    const { page, wrong } = await opened(await browser(), `${url}/#/assistants/${id}`);
    await page.getByLabel("Context", { exact: true }).fill('{"tone": "dry", "voice": "low"}');
    await page.getByRole("button", { name: "Save as new version" }).click();
    await page.getByRole("link", { name: "Compare with 1" }).click();
    await expect.poll(() => page.locator(".diff ins").allInnerTexts()).toEqual(['+     "voice": "low"\n']);
    expect(await page.locator(".diff del").count()).toBe(0);
    expect(wrong).toEqual([]);
  });

  test("a graph's own assistant keeps its graph, which requests name", async () => {
    const { url } = await serve();
    const { page } = await opened(await browser(), `${url}/#/assistants`);
    await page.getByRole("complementary").getByRole("link", { name: "agent" }).click();
    await page.getByText("requests that name the graph use it").waitFor();
    expect(await page.getByRole("combobox", { name: "Graph" }).isDisabled()).toBe(true);
  });

  test("changes that are not saved are not dropped by a link, nor is another person's version overwritten, unasked", async () => {
    const { url } = await serve();
    const made = { graph_id: "approval", name: "Helper", description: "one" };
    const { assistant_id: id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, made);
    const { page } = await opened(await browser(), `${url}/#/assistants/${id}`);
    const description = page.getByLabel("Description");
    const stored = async () => (await get(`${url}/assistants/${id}`)).json();
    await description.fill("mine");
    await page.getByRole("complementary").getByRole("link", { name: "agent" }).click();
    await page.getByText("Leave without saving?").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await description.inputValue()).toBe("mine");

    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ description: "theirs", context: { tone: "dry" } });
    await fetch(`${url}/assistants/${id}`, { method: "PATCH", headers, body });
    await page.getByRole("button", { name: "Save as new version" }).click();
    await page.getByText("Version 2 became current while you were editing.").waitFor();
    const told = await page.getByRole("dialog").innerText();
    expect(told).toContain("It differs from version 1 in: description, context.");
    expect(told).toContain("Your version would replace: description.");
    expect(await stored()).toMatchObject({ version: 2, description: "theirs" });
    await page.getByRole("button", { name: "Overwrite with my version" }).click();
    await expect.poll(stored).toMatchObject({ version: 3, description: "mine", context: { tone: "dry" } });

    await expect.poll(() => page.locator("h2").innerText()).toContain("version 3");
    await page.getByRole("complementary").getByRole("link", { name: "agent" }).click();
    await expect.poll(() => page.locator("h2").innerText()).toContain("agent");
    await description.fill("mine");
    await page.getByRole("complementary").getByRole("link", { name: "approval", exact: true }).click();
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await expect.poll(() => page.locator("h2").innerText()).toContain("approval");
  });

  test("is not deleted unseen when another version has become current since the page read it", async () => {
    const { url } = await serve();
    const made = { graph_id: "approval", name: "Helper" };
    const { assistant_id: id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, made);
    const { page } = await opened(await browser(), `${url}/#/assistants/${id}`);
    const remove = async () => {
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    };
    await page.getByLabel("Description").waitFor();
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ description: "theirs" });
    await fetch(`${url}/assistants/${id}`, { method: "PATCH", headers, body });
    await remove();
    await page
      .getByText("The assistant was not deleted: somebody else has made version 2 current.")
      .waitFor();
    await expect.poll(() => page.getByLabel("Description").inputValue()).toBe("theirs");
    await remove();
    await page.getByText("Assistant deleted.").waitFor();
    expect((await get(`${url}/assistants/${id}`)).status).toBe(404);
  });

  test("however many there are, the default ones of the graphs are listed", async () => {
    const { url } = await serve();
    const make = (n: number) => postJson(`${url}/assistants`, { graph_id: "agent", name: `Helper ${n}` });
    await Promise.all(Array.from({ length: 201 }, (_, n) => make(n)));
    const { page, wrong } = await opened(await browser(), `${url}/#/graphs/approval`);
    const chips = page.getByRole("navigation", { name: "Assistants" }).getByRole("link");
    await expect.poll(() => chips.count()).toBe(203);
    expect(await page.locator('.chips [aria-current="page"]').innerText()).toBe("approval");
    expect(wrong).toEqual([]);
  });

  test("the default one of the graph takes the place of a thread's assistant that is deleted", async () => {
    const { url } = await serve();
    const fields = { graph_id: "agent", name: "Helper" };
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, fields);
    const thread = await newThread(url);
    const input = { messages: [{ role: "user", content: "hi" }] };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id, input });
    await fetch(`${url}/assistants/${assistant_id}`, { method: "DELETE" });
    const context = await browser();
    const missing: string[] = [];
    context.on("response", (response) => {
      if (response.status() === 404) missing.push(new URL(response.url()).pathname);
    });
    const { page } = await opened(context, `${url}/#/threads/${thread}`);
    await expect
      .poll(() => page.locator(".composer select option:checked").allInnerTexts())
      .toEqual(["agent"]);
    const before = await page.locator(".messages li").count();
    await page.getByLabel("Message", { exact: true }).fill("again");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await expect.poll(() => page.locator(".messages li").count()).toBeGreaterThan(before);
    // The list of threads asks once, for the thread's description; the form does not.
    expect(missing).toEqual([`/assistants/${assistant_id}/schemas`]);
  });
});

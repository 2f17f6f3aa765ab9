import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { JsonRecord, JsonSchema } from "../../src/dashboard/api/records.ts";
import {
  isExpectedList,
  findMessageChanges,
  mergeConcurrentMessageChanges,
  messageFault,
  messageListsOf,
  messagesUpdate,
  newToolCall,
  withToolCalls,
  withRole,
} from "../../src/dashboard/threads/message-list-update.ts";
import { graph, list, messages } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, postJson } from "../e2e/support/wire.ts";
import { served } from "../langgraph/support.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const human = (id: string | undefined, content = "hi"): JsonRecord => ({
  ...(id !== undefined && { id }),
  type: "human",
  content,
});
const [a, b, c] = [human("a"), human("b"), human("c")];
const remove = (id: string) => ({ type: "remove", id });
const all = remove("__remove_all__");

const marked: JsonSchema = { type: "array", langgraph_type: "messages" };

describe("the lists of messages of a state", () => {
  const properties = (named: { readonly [name: string]: JsonSchema }): JsonSchema => ({ properties: named });
  test.each([
    ["marked in the schema", properties({ talk: marked }), { talk: [a] }, ["talk"]],
    ["marked, without a value yet", properties({ talk: marked }), {}, ["talk"]],
    [
      "marked behind a reference",
      { ...properties({ talk: { anyOf: [{ $ref: "#/$defs/m" }, { type: "null" }] } }), $defs: { m: marked } },
      { talk: null },
      ["talk"],
    ],
    ["named so, with no schema", null, { messages: [a] }, ["messages"]],
    ["named so, of an unknown type", properties({ messages: {} }), { messages: [a] }, ["messages"]],
    ["named so, without ids", null, { messages: [human(undefined)] }, []],
    [
      "named so, but described as another list",
      properties({ messages: { type: "array" } }),
      { messages: [a] },
      [],
    ],
    ["of another name", null, { talk: [a], messages: "none" }, []],
    ["with something else in it", properties({ talk: marked }), { talk: [a, { type: "x" }] }, []],
  ] as const)("%s", (_, schema, values, names) => {
    expect(Object.keys(messageListsOf(schema, values))).toEqual(names);
  });
});

describe("a changed list of messages", () => {
  test.each([
    ["nothing", [a, b], [a, { ...b }], []],
    ["a changed one", [a, b, c], [a, human("b", "ho"), c], [human("b", "ho")]],
    ["a removed one", [a, b, c], [a, c], [remove("b")]],
    ["one at the end", [a, b], [a, b, human(undefined)], [human(undefined)]],
    [
      "a changed, a removed, and a new one",
      [a, b, c],
      [a, human("c", "ho"), human(undefined)],
      [human("c", "ho"), remove("b"), human(undefined)],
    ],
    ["another order", [a, b], [b, a], [all, b, a]],
    ["one in between", [a, b], [a, human(undefined), b], [all, a, human(undefined), b]],
    ["two of one id", [a, a], [a], [all, a]],
    ["one without an id", [human(undefined), b], [human(undefined)], [all, human(undefined)]],
    ["all removed", [a, b], [], [remove("a"), remove("b")]],
    ["the first", [], [human(undefined)], [human(undefined)]],
  ] as const)("is sent as an update: %s", (_, before, after, update) => {
    expect(messagesUpdate(before, after)).toEqual(update);
  });

  test("is compared by the messages that differ; by what is between common ends if their order does", () => {
    const [edited, d] = [human("b", "ho"), human("d")];
    expect(findMessageChanges({ m: [a, b, c], n: [a] }, { m: [a, edited], n: [a] })).toEqual({
      update: { m: [edited, remove("c")] },
      lists: { m: [a, edited] },
      before: { m: [b, c] },
      after: { m: [edited] },
      isInvalid: false,
    });
    const parts = (before: readonly JsonRecord[], after: readonly JsonRecord[]) => {
      const changes = findMessageChanges({ m: before }, { m: after });
      return [changes.before["m"], changes.after["m"]];
    };
    expect(parts([a, b, c, d], [a, c, b, d])).toEqual([
      [b, c],
      [c, b],
    ]);
    expect(parts([a, a], [a])).toEqual([[a], []]);
  });

  test("keeps what others have changed in it meanwhile: the user's own changes win, others' new messages come first", () => {
    const edited = human("b", "mine");
    const mine = human(undefined, "new");
    const [changed, added] = [human("a", "theirs"), human("d")];
    expect(
      mergeConcurrentMessageChanges([a, b, c], [a, edited, mine], [changed, human("b", "theirs"), c, added]),
    ).toEqual([changed, edited, added, mine]);
    // Removed by others, rearranged by the user.
    expect(mergeConcurrentMessageChanges([a, b, c], [c, b, a], [a, c])).toEqual([c, a]);
    expect(mergeConcurrentMessageChanges([], [mine], [a])).toEqual([a, mine]);
  });

  test("cannot be stored with a changed message that is none; stored ones are left as they are", () => {
    const odd = { ...a, content: null };
    expect(findMessageChanges({ m: [odd, b] }, { m: [odd] }).isInvalid).toBe(false);
    expect(findMessageChanges({ m: [odd, b] }, { m: [{ ...odd, content: 1 }, b] }).isInvalid).toBe(true);
  });

  test.each([
    [[a, human(undefined)], [a, human("minted")], true],
    [[a], [a, human("b")], false],
    [[a, b], [a, c], false],
    [[a], undefined, false],
  ] as const)("%j made as %j: %j", (expected, made, is) => {
    expect(isExpectedList(expected, made)).toBe(is);
  });
});

const call = { name: "weather", args: { city: "Rome" }, id: "call_1", type: "tool_call" };
const calling = {
  id: "x",
  type: "ai",
  content: "I look",
  name: "clerk",
  tool_calls: [call],
  usage_metadata: { output_tokens: 1 },
  additional_kwargs: { tool_calls: [{}], refusal: null },
  response_metadata: { model: "m" },
};

describe("an edited message", () => {
  test("of another role has no fields of the old one; back in its own it has them again", () => {
    const made = withRole(calling, "human", calling);
    expect(made).toEqual({ id: "x", type: "human", content: "I look", name: "clerk" });
    expect(withRole({ ...made, content: "new" }, "ai", calling)).toEqual({ ...calling, content: "new" });
    const answer = {
      type: "tool",
      role: "x",
      name: "weather",
      content: "",
      tool_call_id: "c",
      status: "error",
    };
    expect(withRole(answer, "system", null)).toEqual({ type: "system", content: "" });
    expect(withRole({ role: "user", content: "" }, "ai", null)).toEqual({ type: "ai", content: "" });
  });

  test("with other calls has no copy of the old ones elsewhere", () => {
    expect(withToolCalls(calling, [])).toEqual({
      ...calling,
      tool_calls: [],
      additional_kwargs: { refusal: null },
    });
    expect(withToolCalls(a, [call])).toEqual({ ...a, tool_calls: [call] });
  });

  test("gets calls with ids of their own", () => {
    expect(newToolCall([calling])["id"]).toBe("call_2");
    expect(newToolCall([{ tool_calls: [{ id: "call_2" }] }])["id"]).toBe("call_3");
  });

  test.each([
    [a, null],
    [calling, null],
    [{ ...a, content: [{ type: "text" }, "text"] }, null],
    [{ ...a, content: undefined }, "The content must be a list of blocks, or a text."],
    [{ ...a, content: [1] }, "The content must be a list of blocks, or a text."],
    [{ type: "tool", content: "" }, "Enter a tool call ID."],
    [{ type: "tool", content: "", tool_call_id: "c" }, null],
    [withToolCalls(calling, [{ ...call, name: "" }]), "A tool call has no name."],
    [withToolCalls(calling, [{ ...call, args: [] }]), "The arguments of weather must be a JSON object."],
  ])("%j: %j", (message, fault) => {
    expect(messageFault(message)).toBe(fault);
  });
});

/** Looks the weather up, then says what was found. */
const asking = graph({
  state: { messages: messages(), notes: list<string>() },
  nodes: {
    look: async () => ({
      messages: [
        {
          type: "ai",
          content: "I look",
          id: "look",
          tool_calls: [{ ...call, args: { city: "Rome", days: 2 } }],
        },
        { type: "tool", content: "rain", id: "found", tool_call_id: "call_1" },
      ],
    }),
    say: async (state) => ({
      messages: [{ type: "ai", content: `It says ${String(state.messages.at(-1)?.content)}`, id: "said" }],
    }),
  },
  edges: { start: "look", look: "say" },
});

const hosted = (messagesOf: typeof MessagesAnnotation.spec.messages) =>
  new StateGraph(Annotation.Root({ messages: messagesOf }))
    .addNode("look", () => ({
      messages: [
        new AIMessage({ id: "look", content: "I look", tool_calls: [{ ...call, type: "tool_call" }] }),
        new ToolMessage({ id: "found", content: "rain", tool_call_id: "call_1", status: "error" }),
      ],
    }))
    .addNode("say", ({ messages: given }: { readonly messages: readonly BaseMessage[] }) => ({
      messages: [new AIMessage({ id: "said", content: `It says ${String(given.at(-1)?.content)}` })],
    }))
    .addEdge(START, "look")
    .addEdge("look", "say")
    .compile();

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const message = (page: Page, place: number) =>
  page.getByRole("group", { name: `Message ${place}`, exact: true });

async function ran(url: string, graphName: string) {
  const thread = await newThread(url);
  const input = { messages: [{ type: "human", content: "Will it rain?", id: "asked" }] };
  await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: graphName, input });
  const stored = async () =>
    ((await (await get(`${url}/threads/${thread}/state`)).json()) as { values: { messages: JsonRecord[] } })
      .values.messages;
  return { thread, stored };
}

describe.skipIf(isMissing)("messages that are edited in a real browser", { timeout: 60_000 }, () => {
  test("change in place, with their calls and their roles; the difference is shown before it is stored", async () => {
    const { url } = await serve({ graphs: { asking } });
    const { thread, stored } = await ran(url, "asking");
    const [asked, look, found, said] = await stored();
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    await button(page, "Edit state").click();
    await page.getByText("No changes").waitFor();
    const changes = page.getByRole("region", { name: "Changes" });
    expect(await changes.innerText()).toContain("No difference.");

    await page.getByRole("button", { name: "ai I look → weather" }).click();
    await message(page, 2).getByLabel("Text").fill("I look it up");
    await message(page, 2).getByLabel("city").fill("Oslo");
    await message(page, 2).getByLabel("days").fill("");
    await page.getByRole("button", { name: "tool rain" }).click();
    await message(page, 3).getByLabel("The tool failed").check();
    await button(page, "Remove message 4").click();
    await button(page, "Add message").click();
    await message(page, 4).getByLabel("Role").selectOption("tool");
    await message(page, 4).getByRole("alert").getByText("Enter a tool call ID.").waitFor();
    expect(await button(page, "Save").isDisabled()).toBe(true);
    await message(page, 4).getByLabel("Role").selectOption("system");
    await message(page, 4).getByLabel("Text").fill("Be brief");
    // The difference follows a moment after the last change.
    await expect
      .poll(() => changes.locator("del").allInnerTexts())
      .toContainEqual(expect.stringContaining(`"id": ${JSON.stringify(said?.["id"])}`));
    await expect
      .poll(() => changes.locator("ins").allInnerTexts())
      .toContainEqual(expect.stringContaining('"content": "I look it up"'));
    await page.getByLabel("Other changes, as JSON").fill('{"messages": []}');
    await page.getByText("messages is edited in the list above: it cannot be given here as well").waitFor();
    expect(await button(page, "Save").isDisabled()).toBe(true);
    await page.getByLabel("Other changes, as JSON").fill('{"notes": ["edited"]}');
    await page.getByText("Changes messages, notes").waitFor();
    await button(page, "Save").click();
    await page.waitForSelector('.moment h3:has-text("update")');
    expect(await stored()).toEqual([
      asked,
      { ...look, content: "I look it up", tool_calls: [{ ...call, args: { city: "Oslo" } }] },
      { ...found, status: "error" },
      expect.objectContaining({ type: "system", content: "Be brief" }),
    ]);

    // In another order all are stored anew.
    await button(page, "Edit state").click();
    await button(page, "Move message 2 up").click();
    await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Move message 1 up");
    await page.getByRole("button", { name: "ai I look it up → weather" }).click();
    await button(page, "Remove tool call 1").click();
    await button(page, "Save").click();
    await expect
      .poll(async () => (await stored()).map(({ id, tool_calls: calls }) => [id, calls]))
      .toEqual([
        ["look", []],
        ["asked", undefined],
        ["found", undefined],
        [expect.any(String), undefined],
      ]);
    expect(wrong).toEqual([]);
  });

  test("of a LangGraph.js graph are replayed from a step; content that is no text is edited as JSON", async () => {
    const spec = MessagesAnnotation.spec.messages;
    const { url } = await serve({ langGraphs: await served({ hosted: hosted(spec) }) });
    const { thread, stored } = await ran(url, "hosted");
    const [asked, look] = await stored();
    const [run] = (await (await get(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run?.run_id}`);
    await button(page, "superstep 2").click();
    await button(page, "Replay from here…").click();
    await page.getByRole("button", { name: "tool rain" }).click();
    await message(page, 3).getByLabel("Text").fill("sun");
    await message(page, 3).getByLabel("The tool failed").uncheck();
    await button(page, "Replay").click();
    await expect.poll(async () => (await stored()).at(-1)?.["content"]).toBe("It says sun");
    expect(await stored()).toEqual([
      asked,
      look,
      expect.objectContaining({ id: "found", type: "tool", content: "sun", status: "success" }),
      expect.objectContaining({ id: "said" }),
    ]);

    const blocks = [{ type: "text", text: "two" }];
    const update = {
      values: { messages: [{ type: "human", content: [{ type: "text", text: "one" }], id: "b" }] },
    };
    await postJson(`${url}/threads/${thread}/state`, update);
    await page.goto(`${url}/#/threads/${thread}?tab=history`);
    await button(page, "Edit state").click();
    await page.getByRole("button", { name: "human one" }).click();
    const content = message(page, 5).getByLabel("Content, as JSON");
    await content.fill("[");
    expect(await button(page, "Save").isDisabled()).toBe(true);
    await content.fill(JSON.stringify(blocks));
    await page.getByRole("button", { name: "human Will it rain?" }).click();
    await message(page, 1).getByLabel("Role").selectOption("ai");
    await message(page, 1).getByRole("button", { name: "Add tool call" }).click();
    await message(page, 1).getByLabel("Tool name").fill("clock");
    await message(page, 1).getByLabel("Arguments, as JSON").fill('{"zone": "CET"}');
    await button(page, "Save").click();
    await expect
      .poll(async () => (await stored())[0])
      .toMatchObject({
        id: "asked",
        type: "ai",
        content: "Will it rain?",
        tool_calls: [{ name: "clock", args: { zone: "CET" }, id: "call_2" }],
      });
    expect((await stored()).at(-1)).toMatchObject({ id: "b", content: blocks });
    expect(wrong).toEqual([]);
  });

  test("that the graph joins in another way are said not to be as shown", async () => {
    const reducer = (before: BaseMessage[] | undefined, after: BaseMessage[]) => [
      ...(before ?? []),
      ...after,
    ];
    const joins = hosted(Annotation<BaseMessage[], BaseMessage[]>({ reducer }) as never);
    const { url } = await serve({ langGraphs: await served({ joins }) });
    const { thread, stored } = await ran(url, "joins");
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    await button(page, "Edit state").click();
    await page.getByRole("button", { name: "tool rain" }).click();
    await message(page, 3).getByLabel("Text").fill("sun");
    await button(page, "Save").click();
    await page.getByText('The saved list "messages" differs from your edit').waitFor();
    expect(await stored()).toHaveLength(5);
    expect(wrong).toEqual([]);
  });
});

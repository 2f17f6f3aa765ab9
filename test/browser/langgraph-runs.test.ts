import { FakeListChatModel } from "@langchain/core/utils/testing";
import { interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { served } from "../langgraph/support.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

/** A chat model within a subgraph. Its answer is not stored, so only the stream contains its tokens. */
function speaker() {
  const model = new FakeListChatModel({ responses: ["said by the model"] });
  const inner = new StateGraph(MessagesAnnotation)
    .addNode("speak", async ({ messages }) => {
      await model.invoke(messages);
      return {};
    })
    .addEdge(START, "speak")
    .compile();
  return new StateGraph(MessagesAnnotation)
    .addNode("inner", inner)
    .addNode("review", () => {
      interrupt("Is it good?");
      return {};
    })
    .addEdge(START, "inner")
    .addEdge("inner", "review")
    .compile();
}

describe.skipIf(isMissing)("runs of LangGraph.js graphs in the dashboard", { timeout: 60_000 }, () => {
  test("a run that is started there has tokens, and the steps of its subgraphs", async () => {
    const { url } = await serve({ langGraphs: await served({ speaker: speaker() }) });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=speaker`);
    await page.getByRole("textbox", { name: "Message" }).fill("hello");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText("Is it good?").waitFor();
    await page.getByLabel("Views of the thread").getByRole("link", { name: "Runs" }).click();
    await page.locator(".runs a.main").click();
    await page.locator('[data-task="speak"]').click();
    await expect.poll(() => page.innerText(".detail .tokens")).toBe("said by the model");
    expect(wrong).toEqual([]);
  });

  test("a run of another client that asked for no subgraphs has their steps too", async () => {
    const { url } = await serve({ langGraphs: await served({ speaker: speaker() }) });
    const thread = await newThread(url);
    const body = { assistant_id: "speaker", input: { messages: [] }, stream_mode: "values" };
    await postJson(`${url}/threads/${thread}/runs/wait`, body);
    const [run] = (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread}/runs/${run?.run_id}`);
    await page.locator('[data-task="review"]').waitFor();
    expect(
      await page.locator("[data-task]").evaluateAll((all) => all.map((one) => one.getAttribute("data-task"))),
    ).toEqual(["inner", "speak", "review"]);
    expect(wrong).toEqual([]);
  });
});

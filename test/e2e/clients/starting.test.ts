import { describe, expect, test } from "vitest";
import { graph, list, messages } from "../../../src/index.ts";
import { serve } from "../support/server.ts";
import { aUuid, events } from "../support/wire.ts";

const inner = graph({
  state: { messages: messages(), log: list<string>() },
  nodes: { think: async () => ({ log: ["thought"] }), note: async () => ({ log: ["noted"] }) },
  edges: { start: "think", think: "note" },
});
const helper = graph({
  state: { messages: messages(), log: list<string>() },
  nodes: {
    inner,
    answer: async ({ messages: said }, ctx) => {
      ctx.emit({ working: true });
      const message = ctx.message();
      for (const word of ["you ", "said ", String(said.at(-1)?.content)]) message.write(word);
      return { messages: [message.end()] };
    },
  },
  edges: { start: "inner", inner: "answer" },
});

type Json = Record<string, unknown>;

/** A page of `origin` that sends requests as a browser does, with a preflight where one is needed. */
function pageOf(origin: string, base: string, sent: Record<string, string>) {
  return async (method: string, path: string, body?: unknown, type = "application/json") => {
    const headers: Record<string, string> = { origin, ...sent };
    if (body !== undefined) headers["content-type"] = type;
    const preflight = await fetch(`${base}${path}`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": method,
        "access-control-request-headers": Object.keys({ ...sent, "content-type": "" }).join(),
      },
    });
    expect([path, preflight.status]).toEqual([path, 204]);
    expect(preflight.headers.get("access-control-allow-methods")).toContain(method);
    expect(preflight.headers.get("access-control-allow-headers")?.split(/, ?/)).toEqual(
      expect.arrayContaining(Object.keys(sent)),
    );
    const answer = await fetch(`${base}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    expect([path, answer.status]).toEqual([path, 200]);
    expect(["*", origin]).toContain(answer.headers.get("access-control-allow-origin"));
    return answer;
  };
}

const start = () => serve({ graphs: { helper }, studio: true });

describe("what a client asks when it starts, in its order", () => {
  test("Agent Chat UI", async () => {
    const origin = "https://agentchat.vercel.app";
    const { url } = await start();
    const ask = pageOf(origin, url, { "x-api-key": "", "x-auth-scheme": "langsmith" });
    const json = async <T>(...asked: Parameters<typeof ask>) => (await (await ask(...asked)).json()) as T;

    expect(await json("GET", "/info")).toMatchObject({ version: expect.any(String), flags: {} });
    const page = { limit: 100, offset: 0 };
    const byName = { metadata: { graph_id: "helper" }, ...page };
    expect(await json("POST", "/threads/search", byName)).toEqual([]);

    const { thread_id: id } = await json<Json>("POST", "/threads", { metadata: {} });
    const thread = `/threads/${String(id)}`;
    expect(await json("POST", `${thread}/history`, { limit: 10 })).toEqual([]);
    const answer = await ask("POST", `${thread}/runs/stream`, {
      assistant_id: "helper",
      input: { messages: [{ id: "m1", type: "human", content: [{ type: "text", text: "hi" }] }] },
      stream_mode: ["values", "messages-tuple", "custom"],
      stream_subgraphs: true,
      stream_resumable: true,
      on_disconnect: "continue",
    });
    const exposed = answer.headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
    for (const name of ["content-location", "location", "x-pagination-total"])
      expect(exposed).toContain(name);
    const sent = events(await answer.text());
    const names = new Set(sent.map(({ event }) => event.split("|")[0]));
    expect(names).toEqual(new Set(["metadata", "values", "custom", "messages"]));
    expect(sent.at(-1)?.data).toMatchObject({ messages: [{ id: "m1" }, { type: "ai" }] });

    const history = await json<readonly Json[]>("POST", `${thread}/history`, { limit: 10 });
    expect(history[0]).toMatchObject({ next: [], values: sent.at(-1)?.data });
    // The first run writes its owner into the thread's metadata: otherwise the list of threads stays empty.
    const found = await json<readonly Json[]>("POST", "/threads/search", byName);
    expect(found).toMatchObject([{ thread_id: id, status: "idle", values: sent.at(-1)?.data }]);
    const { assistant_id } = await json<Json>("GET", "/assistants/helper");
    expect(await json("POST", "/threads/search", { metadata: { assistant_id }, ...page })).toEqual(found);
  });

  test("LangGraph Studio", async () => {
    const origin = "https://smith.langchain.com";
    const { url } = await start();
    const ask = pageOf(origin, url, { "x-auth-scheme": "langsmith" });
    const json = async <T>(...asked: Parameters<typeof ask>) => (await (await ask(...asked)).json()) as T;
    /** The client sends some JSON as plain text. */
    const plain = <T>(path: string, body: unknown) => json<T>("POST", path, body, "text/plain;charset=UTF-8");

    expect(await json("GET", "/info")).toMatchObject({ flags: { assistants: true } });
    const assistants = await plain<readonly Json[]>("/assistants/search", { limit: 1000, offset: 0 });
    const { assistant_id: id } = assistants.find(({ graph_id }) => graph_id === "helper") ?? {};
    const assistant = `/assistants/${String(id)}`;
    expect(await json("GET", `${assistant}/schemas`)).toMatchObject({
      graph_id: "helper",
      input_schema: { properties: { messages: {} } },
      state_schema: { properties: { log: {} } },
    });
    const { nodes } = await json<{ nodes: readonly Json[] }>("GET", `${assistant}/graph?xray=1`);
    expect(nodes.map((node) => node["id"])).toContain("inner:note");
    expect(Object.keys(await json<Json>("GET", `${assistant}/subgraphs?recurse=true`))).toEqual(["inner"]);
    const threads = { limit: 10, offset: 0, metadata: { assistant_id: id } };
    expect(await plain("/threads/search", threads)).toEqual([]);

    const { thread_id } = await plain<Json>("/threads", {
      metadata: { graph_id: "helper", assistant_id: id },
    });
    const thread = `/threads/${String(thread_id)}`;
    expect(await json("GET", `${thread}/state?subgraphs=true`)).toMatchObject({
      values: {},
      checkpoint: null,
    });
    const run = await ask("POST", `${thread}/runs/stream`, {
      assistant_id: id,
      input: { messages: [{ type: "human", content: "hi" }] },
      config: { configurable: {} },
      stream_mode: ["debug", "messages"],
      stream_subgraphs: true,
      multitask_strategy: "rollback",
    });
    const sent = events(await run.text());
    expect(new Set(sent.map(({ event }) => event.split("|")[0]))).toEqual(
      new Set(["metadata", "debug", "messages/metadata", "messages/partial", "messages/complete"]),
    );
    const history = await json<readonly Json[]>("POST", `${thread}/history`, { limit: 1000 });
    expect(history.map(({ next }) => next)).toEqual([[], ["answer"], ["inner"], ["__start__"]]);
    expect(await json("GET", `${thread}/state`)).toMatchObject({
      next: [],
      values: { log: ["thought", "noted"] },
    });
    expect(await plain("/threads/search", threads)).toMatchObject([{ thread_id }]);

    // The client's time travel: continues from an earlier state without changing it.
    const at = history[2]?.["checkpoint_id"];
    const forked = await plain<Json>(`${thread}/state`, {
      values: null,
      as_node: "inner",
      checkpoint_id: at,
    });
    expect(forked).toMatchObject({ checkpoint: { checkpoint_id: aUuid } });
    expect(await json("GET", `${thread}/state`)).toMatchObject({ next: ["answer"], values: { log: [] } });

    // The client's panels of assistants and of the store.
    const made = await plain<Json>("/assistants", { graph_id: "helper", name: "Mine" });
    const mine = `/assistants/${String(made["assistant_id"])}`;
    expect(await json("PATCH", mine, { metadata: { a: 1 } })).toMatchObject({ version: 2 });
    expect(await json("POST", `${mine}/versions`, { limit: 100 })).toHaveLength(2);
    expect(await json("POST", `${mine}/latest`, { version: 1 })).toMatchObject({ version: 1 });
    expect(await json("POST", "/store/namespaces", { limit: 100, offset: 0 })).toEqual({ namespaces: [] });
    const none = await json("POST", "/store/items/search", { namespace_prefix: [], limit: 10, offset: 0 });
    expect(none).toEqual({ items: [] });
  });
});

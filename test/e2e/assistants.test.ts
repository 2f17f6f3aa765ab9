import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { aTime, aUuid, get, NOBODY, post } from "./support/wire.ts";

/** Answers in the tone from its configuration. */
const tone = graph({
  state: { log: list<string>(), said: value<string>() },
  nodes: {
    say: async ({ said }, { config, context }) => {
      const { tone } = (config["configurable"] ?? {}) as { tone?: string };
      const { who } = context as { who?: string };
      return { log: [`${said} ${tone ?? "plain"} ${who ?? "nobody"}`] };
    },
  },
  edges: { start: "say" },
});

/** The well-known id of the default assistant of a graph named `agent`. */
const AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";

describe.each(lines)("assistants over %s", (_, connect) => {
  const start = async () => {
    const { url } = await serve({ graphs: { tone } });
    return { client: connect(url), url };
  };

  test("every graph has a default assistant with an empty config, made by the system", async () => {
    const { client } = await start();
    const found = await client.assistants.search();
    expect(found.map(({ graph_id }) => graph_id).sort()).toEqual(["agent", "approval", "tone"]);
    for (const assistant of found) {
      expect(assistant).toEqual({
        assistant_id: aUuid,
        graph_id: assistant.graph_id,
        version: 1,
        name: assistant.graph_id,
        description: null,
        config: {},
        context: {},
        metadata: { created_by: "system" },
        created_at: aTime,
        updated_at: assistant.created_at,
      });
      expect(await client.assistants.get(assistant.assistant_id)).toEqual(assistant);
    }
    expect(found.find(({ graph_id }) => graph_id === "agent")?.assistant_id).toBe(AGENT);
  });

  test("a graph's name stands for its default assistant", async () => {
    const { client } = await start();
    const assistant = await client.assistants.get("tone");
    const { thread_id } = await client.threads.create();
    const byName = await client.runs.create(thread_id, "tone", { input: { said: "a" } });
    await client.runs.join(thread_id, byName.run_id);
    const byId = await client.runs.create(thread_id, assistant.assistant_id, { input: { said: "b" } });
    expect([byName.assistant_id, byId.assistant_id]).toEqual(Array(2).fill(assistant.assistant_id));
    expect(await client.runs.join(thread_id, byId.run_id)).toMatchObject({
      log: ["a plain nobody", "b plain nobody"],
    });
  });

  test("a created assistant has every field of one, is got by its id and found first", async () => {
    const { client } = await start();
    const config = { configurable: { tone: "warm" }, recursion_limit: 9, tags: ["t"] };
    const made = await client.assistants.create({
      graphId: "tone",
      config,
      context: { who: "me" },
      metadata: { team: "a" },
      name: "Warm",
      description: "A warm one",
    });
    expect(made).toEqual({
      assistant_id: aUuid,
      graph_id: "tone",
      version: 1,
      name: "Warm",
      description: "A warm one",
      config,
      context: { who: "me" },
      metadata: { team: "a" },
      created_at: aTime,
      updated_at: made.created_at,
    });
    expect(await client.assistants.get(made.assistant_id)).toEqual(made);
    expect((await client.assistants.search())[0]).toEqual(made);
  });

  test("assistants with settings of their own share the thread's state, and not their settings", async () => {
    const { client } = await start();
    const warm = await client.assistants.create({
      graphId: "tone",
      config: { configurable: { tone: "warm" } },
      context: { who: "me" },
    });
    const cold = await client.assistants.create({
      graphId: "tone",
      config: { configurable: { tone: "cold" } },
    });
    const { thread_id } = await client.threads.create();
    const say = (id: string, said: string, options = {}) =>
      client.runs.wait(thread_id, id, { input: { said }, ...options });
    await say(warm.assistant_id, "1");
    await say(cold.assistant_id, "2");
    await say("tone", "3");
    const own = { config: { configurable: { tone: "own" } }, context: { who: "you" } };
    expect(await say(warm.assistant_id, "4", own)).toMatchObject({
      log: ["1 warm me", "2 cold nobody", "3 plain nobody", "4 own you"],
    });
    const runs = await client.runs.list(thread_id);
    const { assistant_id: plain } = await client.assistants.get("tone");
    expect(runs.map(({ assistant_id }) => assistant_id)).toEqual([
      warm.assistant_id,
      plain,
      cold.assistant_id,
      warm.assistant_id,
    ]);
  });

  test("an id may be given; taken, it is refused or answered with the assistant that has it", async () => {
    const { client } = await start();
    const made = await client.assistants.create({ graphId: "tone", assistantId: NOBODY, name: "one" });
    expect(made.assistant_id).toBe(NOBODY);
    const again = { graphId: "tone", assistantId: NOBODY, name: "two" };
    await expect(client.assistants.create(again)).rejects.toMatchObject({ status: 409 });
    expect(await client.assistants.create({ ...again, ifExists: "do_nothing" })).toEqual(made);
    const taken = { graphId: "agent", assistantId: AGENT };
    await expect(client.assistants.create(taken)).rejects.toMatchObject({ status: 409 });
  });

  test("an assistant of an unknown graph is 404, and so is an unknown assistant", async () => {
    const { client } = await start();
    await expect(client.assistants.create({ graphId: "nope" })).rejects.toMatchObject({ status: 404 });
    await expect(client.assistants.get(NOBODY)).rejects.toMatchObject({ status: 404 });
    await expect(client.assistants.get("nope")).rejects.toMatchObject({ status: 404 });
  });

  test("search pages newest first, the default ones last", async () => {
    const { client } = await start();
    const made: string[] = [];
    for (const name of ["a", "b", "c"]) {
      await client.assistants.create({ graphId: "tone", name });
      made.unshift(name);
    }
    const names = async (query: Parameters<typeof client.assistants.search>[0]) =>
      ((await client.assistants.search({ ...query, includePagination: false })) as { name: string }[]).map(
        ({ name }) => name,
      );
    const all = await names({});
    expect(all.slice(0, 3)).toEqual(made);
    expect(all.slice(3).sort()).toEqual(["agent", "approval", "tone"]);
    const pages: string[] = [];
    for (let offset = 0; offset < 8; offset += 2) pages.push(...(await names({ limit: 2, offset })));
    expect(pages).toEqual(all);
    expect(await names({ offset: 100 })).toEqual([]);
  });

  test("search pages by the next offset until there is none", async () => {
    const { client } = await start();
    const first = await client.assistants.search({ limit: 2, includePagination: true });
    expect(first).toMatchObject({ assistants: [{}, {}], next: "2" });
    const second = await client.assistants.search({ limit: 2, offset: 2, includePagination: true });
    expect(second).toMatchObject({ assistants: [{}], next: null });
  });

  test("search filters by graph and by metadata that it contains", async () => {
    const { client } = await start();
    const metadata = { team: { name: "a", size: 2 }, mine: true };
    const made = await client.assistants.create({ graphId: "tone", metadata });
    const ids = async (query: Parameters<typeof client.assistants.search>[0]) =>
      (
        (await client.assistants.search({ ...query, includePagination: false })) as { assistant_id: string }[]
      ).map(({ assistant_id }) => assistant_id);
    expect(await ids({ metadata: { team: { name: "a" } } })).toEqual([made.assistant_id]);
    expect(await ids({ metadata: { team: { name: "b" } } })).toEqual([]);
    expect(await ids({ metadata: { created_by: "system" } })).toHaveLength(3);
    expect(await ids({ graphId: "tone" })).toHaveLength(2);
    expect(await ids({ graphId: "agent" })).toEqual([AGENT]);
    expect(await ids({ graphId: "nope" })).toEqual([]);
  });

  test("search finds by a part of the name, and sorts as it is asked to", async () => {
    const { client } = await start();
    for (const name of ["Bravo", "alpha", "Charlie"])
      await client.assistants.create({ graphId: "tone", name });
    const names = async (query: Parameters<typeof client.assistants.search>[0]) =>
      ((await client.assistants.search({ ...query, includePagination: false })) as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await names({ name: "RAV" })).toEqual(["Bravo"]);
    expect(await names({ name: "a", graphId: "agent" })).toEqual(["agent"]);
    expect(await names({ name: "z" })).toEqual([]);
    const all = ["agent", "alpha", "approval", "Bravo", "Charlie", "tone"];
    expect(await names({ sortBy: "name", sortOrder: "asc" })).toEqual(all);
    expect(await names({ sortBy: "name" })).toEqual(all.toReversed());
    expect(await names({ sortBy: "name", sortOrder: "asc", limit: 2, offset: 1 })).toEqual(all.slice(1, 3));
    const oldest = await names({ sortBy: "created_at", sortOrder: "asc" });
    expect(oldest.slice(0, 3).sort()).toEqual(["agent", "approval", "tone"]);
    expect(oldest.slice(3)).toEqual(["Bravo", "alpha", "Charlie"]);
    expect((await names({ sortBy: "updated_at" })).slice(0, 3)).toEqual(["Charlie", "alpha", "Bravo"]);
    expect((await names({ sortBy: "graph_id", sortOrder: "asc" })).slice(0, 2)).toEqual([
      "agent",
      "approval",
    ]);
  });

  test("search may choose fields", async () => {
    const { client } = await start();
    const query = { graphId: "agent", select: ["assistant_id", "graph_id"] } as const;
    const found = await client.assistants.search({ ...query, select: [...query.select] });
    expect(found).toEqual([{ assistant_id: AGENT, graph_id: "agent" }]);
  });
});

test("search by an empty body, and what it says of the pages", async () => {
  const { url } = await serve();
  const all = await fetch(`${url}/assistants/search`, { method: "POST" });
  expect(await all.json()).toHaveLength(2);
  expect([all.headers.get("x-pagination-total"), all.headers.get("x-pagination-next")]).toEqual(["2", null]);
  const page = await post(`${url}/assistants/search`, { limit: 1 });
  expect(page.headers.get("x-pagination-next")).toBe("1");
  expect(page.headers.get("x-pagination-total")).toBe("2");
  const last = await post(`${url}/assistants/search`, { limit: 1, offset: 1 });
  expect([last.headers.get("x-pagination-total"), last.headers.get("x-pagination-next")]).toEqual([
    "2",
    null,
  ]);
});

test("a default assistant is the same after a restart, and on another server", async () => {
  const [one, two] = await Promise.all([serve(), serve()]);
  const ids = await Promise.all(
    [one, two].map(async ({ url }) => {
      const { assistant_id } = (await (await get(`${url}/assistants/agent`)).json()) as {
        assistant_id: string;
      };
      return assistant_id;
    }),
  );
  expect(ids).toEqual([AGENT, AGENT]);
});

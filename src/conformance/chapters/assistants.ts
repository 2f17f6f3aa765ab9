import { defineChapter, UNKNOWN_ID } from "../conformance-check.ts";
import { aList, anObject, aTimestamp, aUuid, expectMatch, expectRefusal } from "../response-pattern.ts";

export const assistantChecks = defineChapter("assistants", {
  "each graph has a default assistant, made by the system": async ({ client }) => {
    for (const graphId of ["steps", "approval", "agent"]) {
      // oxlint-disable-next-line no-await-in-loop -- a report shows the latest request, so requests must not overlap
      const found = await client.assistants.search({ graphId, metadata: { created_by: "system" } });
      expectMatch(`the default assistant of ${graphId}`, found, [
        { assistant_id: aUuid, graph_id: graphId, metadata: { created_by: "system" }, config: {} },
      ]);
    }
  },
  "create answers the assistant, and get finds it by its id": async ({ client }) => {
    const made = await client.assistants.create({
      graphId: "configured",
      name: "Warm",
      description: "speaks warmly",
      metadata: { team: "a" },
      config: { configurable: { tone: "warm" } },
    });
    expectMatch("the new assistant", made, {
      assistant_id: aUuid,
      graph_id: "configured",
      name: "Warm",
      description: "speaks warmly",
      version: 1,
      config: { configurable: { tone: "warm" } },
      metadata: { team: "a" },
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    expectMatch("the assistant", await client.assistants.get(made.assistant_id), made);
  },
  "get finds the default assistant by the graph's name": async ({ client }) => {
    expectMatch("the assistant", await client.assistants.get("steps"), {
      graph_id: "steps",
      metadata: { created_by: "system" },
    });
  },
  "an id that is taken is refused with 409, or kept if asked": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({ graphId: "steps", metadata: { n: 1 } });
    const again = { graphId: "steps", assistantId: assistant_id, metadata: { n: 2 } };
    await expectRefusal("a second one", client.assistants.create(again), 409);
    const kept = await client.assistants.create({ ...again, ifExists: "do_nothing" });
    expectMatch("the one that is kept", kept, { assistant_id, metadata: { n: 1 } });
  },
  "an update makes a version; an earlier one can be made the latest": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({ graphId: "steps", name: "one" });
    const updated = await client.assistants.update(assistant_id, { name: "two", metadata: { b: 1 } });
    expectMatch("the updated assistant", updated, {
      assistant_id,
      version: 2,
      name: "two",
      metadata: { b: 1 },
    });
    const versions = await client.assistants.getVersions(assistant_id);
    expectMatch("the versions", versions, [{ version: 2 }, { version: 1 }]);
    expectMatch("the latest", await client.assistants.setLatest(assistant_id, 1), { version: 1 });
    expectMatch("the assistant", await client.assistants.get(assistant_id), { version: 1 });
  },
  "search finds by metadata and graph, in pages": async ({ client }) => {
    const { thread_id: group } = await client.threads.create();
    for (const n of [1, 2, 3])
      // oxlint-disable-next-line no-await-in-loop -- the check depends on the order of creation
      await client.assistants.create({ graphId: n === 3 ? "chat" : "steps", metadata: { group, n } });
    const found = await client.assistants.search({ metadata: { group } });
    expectMatch("the number found", found.length, 3);
    const some = await client.assistants.search({ metadata: { group }, graphId: "steps" });
    expectMatch("the number found of a graph", some.length, 2);
    const page = await client.assistants.search({ metadata: { group }, limit: 1, offset: 1 });
    expectMatch("the page", page, [{ metadata: { n: 2 } }]);
    expectMatch("the count", await client.assistants.count({ metadata: { group } }), 3);
  },
  "the graph is drawn with its nodes and edges": async ({ client }) => {
    const drawn = await client.assistants.getGraph("steps");
    const ids = drawn.nodes.map(({ id }) => String(id)).toSorted();
    expectMatch("the nodes", ids, ["__end__", "__start__", "first", "second"]);
    const edges = drawn.edges.map(({ source, target }) => `${source} ${target}`).toSorted();
    expectMatch("the edges", edges, ["__start__ first", "first second", "second __end__"]);
  },
  "the schemas are told": async ({ client }) => {
    const told = await client.assistants.getSchemas("steps");
    expectMatch("the schemas", told, { graph_id: "steps", input_schema: anObject, state_schema: anObject });
  },
  "the subgraphs are told by the nodes that they are": async ({ client }) => {
    expectMatch("the subgraphs", await client.assistants.getSubgraphs("nested"), { sub: anObject });
    expectMatch("the number of none", Object.keys(await client.assistants.getSubgraphs("steps")).length, 0);
  },
  "what an assistant is configured with reaches its runs": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({
      graphId: "configured",
      config: { configurable: { tone: "warm" } },
    });
    const values = await client.runs.wait(null, assistant_id, { input: {} });
    expectMatch("the values", values, {
      seen: { tone: "warm", graph: "configured", assistant: assistant_id, run: aUuid },
    });
  },
  "the context of a run goes over that of its assistant": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({
      graphId: "configured",
      context: { tone: "warm" },
    });
    const own = await client.runs.wait(null, assistant_id, { input: {} });
    expectMatch("the values of the assistant's context", own, { seen: { context: { tone: "warm" } } });
    const given = await client.runs.wait(null, assistant_id, { input: {}, context: { tone: "cold" } });
    expectMatch("the values of the run's context", given, { seen: { context: { tone: "cold" } } });
  },
  "the context of a run that gives none is an empty object": async ({ client }) => {
    const values = await client.runs.wait(null, "configured", { input: {} });
    expectMatch("the values", values, { seen: { context: anObject } });
  },
  "two assistants on one thread share its state": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({ graphId: "steps" });
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "a" } });
    const values = await client.runs.wait(thread_id, assistant_id, { input: { topic: "b" } });
    expectMatch("the values", values, {
      log: ["first about a", "second after 1", "first about b", "second after 3"],
    });
  },
  "delete takes it away": async ({ client }) => {
    const { assistant_id } = await client.assistants.create({ graphId: "steps" });
    await client.assistants.delete(assistant_id);
    await expectRefusal("the deleted assistant", client.assistants.get(assistant_id), 404);
  },
  "unknown ids and graphs are 404": async ({ client }) => {
    await expectRefusal("an unknown assistant", client.assistants.get(UNKNOWN_ID), 404);
    await expectRefusal("an unknown graph", client.assistants.create({ graphId: "no such graph" }), 404);
    await expectRefusal("an update of an unknown one", client.assistants.update(UNKNOWN_ID, {}), 404);
  },
  "over HTTP, a search answers a list": async ({ http }) => {
    const { status, body } = await http.send("POST", "/assistants/search", { limit: 2 });
    expectMatch("the status", status, 200);
    expectMatch("the body", body, aList);
  },
});

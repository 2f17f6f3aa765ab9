import { expect } from "vitest";
import { z } from "zod";
import { graph, list, value } from "../../../src/index.ts";
import { aTime, aUuid, NOBODY } from "../support/wire.ts";
import { proves } from "./table.ts";

const inner = graph({
  state: { log: list<string>() },
  nodes: { first: async () => ({ log: ["first"] }), second: async () => ({ log: ["second"] }) },
  edges: { start: "first", first: "second" },
});
const tone = graph({
  state: { log: list<string>(), said: value("") },
  context: z.object({ tone: z.string().default("plain") }),
  nodes: { inner, say: async (_, { context }) => ({ said: context.tone }) },
  edges: { start: "inner", inner: "say" },
});

proves(
  "assistants",
  {
    get: [
      "gives the default assistant by the name of its graph, and any other by its id",
      async ({ client }) => {
        const byName = await client.assistants.get("tone");
        expect(byName).toMatchObject({ graph_id: "tone", metadata: { created_by: "system" }, config: {} });
        expect(await client.assistants.get(byName.assistant_id)).toEqual(byName);
        await expect(client.assistants.get(NOBODY)).rejects.toMatchObject({ status: 404 });
      },
    ],
    getGraph: [
      "draws its graph, flat and with its subgraphs",
      async ({ client }) => {
        const { nodes, edges } = await client.assistants.getGraph("tone");
        expect(nodes.map(({ id }) => id)).toEqual(["__start__", "inner", "say", "__end__"]);
        expect(edges).toContainEqual({ source: "inner", target: "say", conditional: false });
        const deep = await client.assistants.getGraph("tone", { xray: true });
        expect(deep.nodes.map(({ id }) => id)).toContain("inner:second");
      },
    ],
    getSchemas: [
      "tells what the graph takes, gives and can be set to",
      async ({ client }) => {
        const schemas = await client.assistants.getSchemas("tone");
        expect(schemas).toMatchObject({
          graph_id: "tone",
          input_schema: { type: "object" },
          output_schema: { type: "object" },
          state_schema: { properties: { log: { type: "array" } } },
          context_schema: { properties: { tone: { type: "string", default: "plain" } } },
        });
      },
    ],
    getSubgraphs: [
      "tells the subgraphs, one of them where it is named",
      async ({ client }) => {
        const all = await client.assistants.getSubgraphs("tone", { recurse: true });
        expect(Object.keys(all)).toEqual(["inner"]);
        expect(all["inner"]).toMatchObject({ state_schema: { properties: { log: { type: "array" } } } });
        expect(await client.assistants.getSubgraphs("tone", { namespace: "inner" })).toEqual(all);
      },
    ],
    create: [
      "makes one whose settings its runs see",
      async ({ client }) => {
        const asked = { graphId: "tone", assistantId: NOBODY, name: "Warm", description: "a warm one" };
        const made = await client.assistants.create({
          ...asked,
          context: { tone: "warm" },
          metadata: { team: "a" },
        });
        expect(made).toMatchObject({ assistant_id: NOBODY, graph_id: "tone", version: 1, name: "Warm" });
        expect(await client.runs.wait(null, NOBODY, { input: {} })).toMatchObject({ said: "warm" });
        await expect(client.assistants.create(asked)).rejects.toMatchObject({ status: 409 });
        expect(await client.assistants.create({ ...asked, name: "x", ifExists: "do_nothing" })).toEqual(made);
      },
    ],
    update: [
      "makes a new version, which its runs see",
      async ({ client }) => {
        const { assistant_id: id } = await client.assistants.create({ graphId: "tone", metadata: { a: 1 } });
        expect(
          await client.assistants.update(id, { context: { tone: "cold" }, metadata: { b: 2 } }),
        ).toMatchObject({
          version: 2,
          context: { tone: "cold" },
          metadata: { a: 1, b: 2 },
        });
        expect(await client.runs.wait(null, id, { input: {} })).toMatchObject({ said: "cold" });
      },
    ],
    delete: [
      "takes it away",
      async ({ client }) => {
        const { assistant_id: id } = await client.assistants.create({ graphId: "tone" });
        await client.assistants.delete(id);
        await expect(client.assistants.get(id)).rejects.toMatchObject({ status: 404 });
        await expect(client.assistants.delete(id)).rejects.toMatchObject({ status: 404 });
      },
    ],
    search: [
      "finds by graph, name and metadata, in pages that say whether there is more",
      async ({ client }) => {
        for (const name of ["Ann", "Anna", "Bo"]) {
          await client.assistants.create({ graphId: "tone", name, metadata: { team: { of: name } } });
        }
        const names = async (query: Parameters<typeof client.assistants.search>[0]) =>
          ((await client.assistants.search(query)) as { name: string }[]).map(({ name }) => name);
        expect(await names({ name: "ann", sortBy: "name", sortOrder: "asc" })).toEqual(["Ann", "Anna"]);
        expect(await names({ graphId: "tone" })).toEqual(["Bo", "Anna", "Ann", "tone"]);
        expect(await names({ metadata: { team: { of: "Bo" } } })).toEqual(["Bo"]);
        expect(await client.assistants.search({ name: "Bo", select: ["name"] })).toEqual([{ name: "Bo" }]);
        const page = { graphId: "tone", limit: 3, includePagination: true } as const;
        const first = await client.assistants.search(page);
        expect(first).toMatchObject({ assistants: [{}, {}, {}], next: "3" });
        expect(await client.assistants.search({ ...page, offset: 3 })).toMatchObject({
          assistants: [{ name: "tone" }],
          next: null,
        });
      },
    ],
    count: [
      "counts those that a search finds",
      async ({ client }) => {
        await client.assistants.create({ graphId: "tone", name: "Ann", metadata: { team: "a" } });
        expect(await client.assistants.count({ graphId: "tone" })).toBe(2);
        expect(await client.assistants.count({ metadata: { team: "a" } })).toBe(1);
        expect(await client.assistants.count({ metadata: { team: "b" } })).toBe(0);
      },
    ],
    getVersions: [
      "lists its versions, newest first",
      async ({ client }) => {
        const { assistant_id: id } = await client.assistants.create({ graphId: "tone", name: "one" });
        await client.assistants.update(id, { name: "two" });
        expect(await client.assistants.getVersions(id)).toMatchObject([
          { assistant_id: aUuid, version: 2, name: "two", created_at: aTime },
          { assistant_id: aUuid, version: 1, name: "one", created_at: aTime },
        ]);
        expect(await client.assistants.getVersions(id, { limit: 1, offset: 1 })).toMatchObject([
          { version: 1 },
        ]);
      },
    ],
    setLatest: [
      "goes back to an earlier version, which its runs see",
      async ({ client }) => {
        const { assistant_id: id } = await client.assistants.create({
          graphId: "tone",
          context: { tone: "old" },
        });
        await client.assistants.update(id, { context: { tone: "new" } });
        expect(await client.assistants.setLatest(id, 1)).toMatchObject({
          version: 1,
          context: { tone: "old" },
        });
        expect(await client.runs.wait(null, id, { input: {} })).toMatchObject({ said: "old" });
        await expect(client.assistants.setLatest(id, 9)).rejects.toMatchObject({ status: 404 });
      },
    ],
  },
  () => ({ graphs: { tone } }),
);

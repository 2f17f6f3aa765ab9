import { expect, test } from "vitest";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/model/json.ts";
import { graph, value } from "../../src/index.ts";
import { readConfig } from "../../src/config/config.ts";
import { lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";

const [, connect] = lines[0] as (typeof lines)[number];

/** A server whose configuration file sets `LANGGRAPH_CONFIG`, with a graph that stores its configuration. */
async function start(
  defaults: JsonObject,
  outside: { readonly [name: string]: string } = {},
  data?: string,
  graphs: JsonObject = {},
) {
  const home = await directory();
  const path = join(home, "langgraph.json");
  const env = { LANGGRAPH_CONFIG: JSON.stringify(defaults) };
  writeFileSync(path, JSON.stringify({ graphs, env }));
  const config = readConfig(path, outside);
  const told = graph({
    state: { seen: value<JsonObject>({}) },
    nodes: {
      tell: async (_, { config: { configurable }, context }) => ({
        seen: { model: (configurable as JsonObject)["model"], context },
      }),
    },
    edges: { start: "tell" },
  });
  const { url, close } = await serve({ config, graphs: { told, plain: told }, ...(data && { data }) });
  const client = connect(url);
  const seen = async (name: string, payload: object = {}) =>
    ((await client.runs.wait(null, name, { input: {}, ...payload })) as { seen: JsonObject }).seen;
  return { client, seen, config, close };
}

const defaults = { told: { configurable: { model: "small" }, tags: ["t"], context: { tone: "dry" } } };

test("a default assistant begins with what the variable says of its graph", async () => {
  const { client, seen } = await start(defaults);
  expect(await client.assistants.get("told")).toMatchObject({
    config: { configurable: { model: "small" }, tags: ["t"] },
    context: { tone: "dry" },
    metadata: { created_by: "system" },
    version: 1,
  });
  expect(await client.assistants.get("plain")).toMatchObject({ config: {}, context: {} });
  expect(await client.assistants.search({ graphId: "told" })).toMatchObject([{ context: { tone: "dry" } }]);
  expect(await seen("told")).toEqual({ model: "small", context: { tone: "dry" } });
  expect(await seen("told", { config: { configurable: { model: "large" } } })).toMatchObject({
    model: "large",
  });
});

test("what a client has changed stays, also over a restart, until it is deleted", async () => {
  const data = await directory();
  const first = await start(defaults, {}, data);
  await first.client.assistants.update("told", { config: { configurable: { model: "own" } } });
  await first.close();
  const { client, seen } = await start(defaults, {}, data);
  expect(await seen("told")).toEqual({ model: "own", context: { tone: "dry" } });
  await client.assistants.delete("told");
  expect(await seen("told")).toEqual({ model: "small", context: { tone: "dry" } });
});

test("the environment wins over the file's env, and a graph that is not there is told", async () => {
  const outside = { LANGGRAPH_CONFIG: JSON.stringify({ told: { context: { tone: "warm" } }, gone: {} }) };
  const { seen, config } = await start(defaults, outside);
  expect(await seen("told")).toEqual({ context: { tone: "warm" } });
  expect(config.notes).toContain('LANGGRAPH_CONFIG: there is no graph "gone"');
});

test("the description of a graph in the file is that of its default assistant, until a client changes it", async () => {
  const path = join(await directory(), "told.mjs");
  const index = JSON.stringify(join(import.meta.dirname, "../../src/index.ts"));
  writeFileSync(
    path,
    `import { graph } from ${index};
     export default graph({ state: {}, nodes: { a: async () => ({}) }, edges: { start: "a" } });`,
  );
  const graphs = { filed: { path, description: "Tells what it sees" } };
  const data = await directory();
  const { client, close } = await start({ filed: { context: { tone: "dry" } } }, {}, data, graphs);
  expect(await client.assistants.get("filed")).toMatchObject({
    description: "Tells what it sees",
    context: { tone: "dry" },
  });
  const found = await client.assistants.search({ graphId: "filed" });
  expect(found).toMatchObject([{ description: "Tells what it sees" }]);
  expect(await client.assistants.get("plain")).toMatchObject({ description: null });
  await client.assistants.update("filed", { description: "My own" });
  await close();
  const second = await start({}, {}, data, graphs);
  expect(await second.client.assistants.get("filed")).toMatchObject({ description: "My own" });
});

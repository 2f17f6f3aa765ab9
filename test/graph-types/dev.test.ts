import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { build, Running } from "../config/process.ts";
import { connect, Home } from "../config/project.ts";
import { writeProject } from "./project.ts";

const home = new Home();
// The compiler needs seconds, on a busy machine more than half a minute.
vi.setConfig({ testTimeout: 600_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

const graphOf = (keys: string) => `import { Annotation, StateGraph } from "@langchain/langgraph";
import type { Value } from "./value.ts";
const State = Annotation.Root({ ${keys} });
export const graph = new StateGraph(State).addNode("a", async () => ({})).addEdge("__start__", "a").compile();
`;

test("heddle dev reads types anew when a file changes, also one that only has types", async () => {
  const folder = writeProject(home, "dev", "TypeScript 5", {
    "graph.ts": graphOf("value: Annotation<Value>"),
    "value.ts": "export type Value = string;",
    "heddle.json": {
      graphs: { typed: "./graph.ts:graph" },
      env: { LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: "240000" },
    },
  });
  const server = await Running.spawn("dev", ["--config", join(folder, "heddle.json")]);
  const client = connect(server);
  const state = async () => (await client.assistants.getSchemas("typed")).state_schema?.properties;
  expect(await state()).toEqual({ value: { type: "string" } });

  writeFileSync(join(folder, "value.ts"), "export type Value = number;");
  expect(await state()).toEqual({ value: { type: "number" } });

  writeFileSync(join(folder, "graph.ts"), graphOf("value: Annotation<Value>, more: Annotation<boolean>"));
  await server.printed('"message":"reloaded"');
  expect(await state()).toEqual({ value: { type: "number" }, more: { type: "boolean" } });
});

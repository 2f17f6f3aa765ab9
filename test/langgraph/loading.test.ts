import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ModuleExport } from "../../src/model/module-export.ts";
import type { LoadedLangGraph } from "../../src/langgraph/exported-graph.ts";
import { type LangGraphLibrary, NEWEST_TESTED, versionWarnings } from "../../src/langgraph/user-library.ts";
import { loadGraphs } from "../../src/graph-loader/load-graphs.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { build, Running } from "../config/process.ts";
import { Home, say, saying } from "../config/project.ts";
import { serve } from "../e2e/support/server.ts";
import { langGraphModules, langGraphVersion } from "./support.ts";

const home = new Home();
const root = join(import.meta.dirname, "../..");
vi.setConfig({ testTimeout: 60_000 });
afterAll(() => home.remove());

const imports = `import { Annotation, MessagesAnnotation, StateGraph } from "@langchain/langgraph";`;
const builder = `new StateGraph(MessagesAnnotation).addNode("a", async () => ({})).addEdge("__start__", "a")`;

/** Loads one graph of a project with LangGraph.js installed, each file in a process of its own. */
async function load(name: string, file: string, text: string, manifest: object = { type: "module" }) {
  const path = home.project(name, { "package.json": manifest, [file]: text });
  const modules = join(home.path, name, "node_modules");
  mkdirSync(modules, { recursive: true });
  symlinkSync(join(langGraphModules, "@langchain"), join(modules, "@langchain"));
  symlinkSync(join(root, "node_modules/zod"), join(modules, "zod"));
  return loaded(path, { file: join(home.path, name, file), name: "graph" });
}

function loaded(path: string, place: ModuleExport) {
  return loadGraphs({ path, graphs: { g: place } }, { scheduler: systemScheduler });
}

async function graphOf(...args: Parameters<typeof load>): Promise<LoadedLangGraph> {
  const { langGraphs } = await load(...args);
  const graph = langGraphs.get("g");
  if (graph === undefined) throw new Error("it was not taken for a graph of LangGraph.js");
  return graph;
}

describe("a graph file of LangGraph.js", () => {
  test.each([
    ["compiled", "a.ts", `${imports} const x: number = 1; export const graph = ${builder}.compile();`],
    ["a builder", "a.ts", `${imports} export const graph = ${builder};`],
    ["in .mts", "a.mts", `${imports} const x: number = 1; export const graph = ${builder}.compile();`],
    ["in JavaScript", "a.js", `${imports} export const graph = ${builder}.compile();`],
    ["a function", "a.ts", `${imports} export const graph = () => ${builder};`],
    [
      "an async function",
      "a.ts",
      `${imports} export const graph = async (config: object) => ${builder}.compile();`,
    ],
    ["an agent that has one", "a.ts", `${imports} export const graph = { graph: ${builder}.compile() };`],
  ])("%s", async (name, file, text) => {
    const { library, graph, hash, graphFor: compiled } = await graphOf(name.replaceAll(" ", "-"), file, text);
    expect(graph).toBeInstanceOf(library.pregel.Pregel);
    expect(await compiled({})).toBeInstanceOf(library.pregel.Pregel);
    expect(library.version).toBe(langGraphVersion);
    expect(hash).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each([
    ["a project of CommonJS", "a.ts", `${imports} export const graph = ${builder}.compile();`],
    [
      "a file of CommonJS",
      "a.cjs",
      `const { MessagesAnnotation, StateGraph } = require("@langchain/langgraph"); exports.graph = ${builder}.compile();`,
    ],
  ])("%s: the classes are those that the graph itself has", async (name, file, text) => {
    const { library, graph } = await graphOf(name.replaceAll(" ", "-"), file, text, { type: "commonjs" });
    expect(graph).toBeInstanceOf(library.pregel.Pregel);
  });

  test("a function that takes the configuration is asked anew for each run", async () => {
    const text = `${imports} export const graph = (config) => {
      const name = config.configurable.node ?? "none";
      return new StateGraph(MessagesAnnotation).addNode(name, async () => ({})).addEdge("__start__", name).compile();
    };`;
    const { graphFor: compiled } = await graphOf("asks", "a.js", text);
    const nodes = async (node: string) =>
      Object.keys((await compiled({ configurable: { node } })).nodes as object);
    expect(await nodes("one")).toContain("one");
    expect(await nodes("two")).toContain("two");
  });

  test("what is neither says what to export", async () => {
    await expect(load("runnable", "a.mjs", "export const graph = { invoke() {} };")).rejects.toThrow(
      /graphs\.g: .*is no graph: a runnable that is no compiled graph/,
    );
  });

  test("without LangGraph.js in its project it says what to install", async () => {
    const path = home.project("missing", {
      "package.json": { type: "module" },
      "a.ts": `${imports} export const graph = ${builder};`,
    });
    await expect(loaded(path, { file: join(home.path, "missing/a.ts"), name: "graph" })).rejects.toThrow(
      /graphs\.g: .*cannot be loaded: .*npm install @langchain\/langgraph$/s,
    );
  });

  const ofVersion = (version: string, dependencies: object = {}) => {
    const name = `version-${version}`;
    const path = home.project(name, {
      "package.json": { type: "module", dependencies },
      "node_modules/@langchain/langgraph/package.json": {
        name: "@langchain/langgraph",
        version,
        type: "module",
        exports: "./index.js",
      },
      "node_modules/@langchain/langgraph/index.js":
        "export class Graph { lg_is_pregel = true; nodes = {}; channels = {}; }",
      "a.js": `import { Graph } from "@langchain/langgraph"; export const graph = new Graph();`,
    });
    return loaded(path, { file: join(home.path, name, "a.js"), name: "graph" });
  };

  test("of a version below 1 says what to update, how, and what changes", async () => {
    const others = {
      langchain: "0.3.1",
      "@langchain/openai": "0.6.1",
      "@langchain/langgraph": "0.4.9",
      zod: "3",
    };
    await expect(ofVersion("0.4.9", others)).rejects.toThrow(
      /graphs\.g: .*@langchain\/langgraph 0\.4\.9, which .* uses, is not served: update it .*\(npm install @langchain\/langgraph@1 @langchain\/core@1 langchain@latest @langchain\/openai@latest\); graphs stay as they are, but .*createAgent/,
    );
  });

  test("of version 2 says which versions are served", async () => {
    await expect(ofVersion("2.0.0")).rejects.toThrow(
      /graphs\.g: .*@langchain\/langgraph 2\.0\.0, which .* uses, is not served: it must be >=1\.0 <2$/,
    );
  });

  test("of a newer version than the tested ones is served, and warned about once", async () => {
    const graph = { lg_is_pregel: true, nodes: {}, channels: {} };
    const of = (version: string) => ({ library: { version } as LangGraphLibrary, graph });
    expect(versionWarnings([of("1.7.3"), of("1.0.0"), of("1.6.9")])).toEqual([]);
    expect(versionWarnings([of("1.12.0"), of("1.12.0"), of("1.7.4-rc.1")])).toEqual([
      expect.stringMatching(/^@langchain\/langgraph 1\.12\.0 is newer than 1\.7\.3/),
      expect.stringMatching(/^@langchain\/langgraph 1\.7\.4-rc\.1 is newer/),
    ]);
    const name = "newer";
    home.project(name, {
      "package.json": { type: "module" },
      "a.js": `${imports} export const graph = ${builder}.compile();`,
      "heddle.json": { graphs: { a: "./a.js:graph", b: "./a.js:graph" } },
    });
    // The installed version, which reports a newer version number.
    const modules = join(home.path, name, "node_modules/@langchain");
    mkdirSync(modules, { recursive: true });
    for (const part of ["core", "langgraph-checkpoint", "langgraph-sdk"])
      symlinkSync(join(langGraphModules, "@langchain", part), join(modules, part));
    symlinkSync(join(root, "node_modules/zod"), join(home.path, name, "node_modules/zod"));
    cpSync(join(langGraphModules, "@langchain/langgraph"), join(modules, "langgraph"), { recursive: true });
    const manifest = join(modules, "langgraph/package.json");
    const known = JSON.parse(readFileSync(manifest, "utf8")) as object;
    writeFileSync(manifest, JSON.stringify({ ...known, version: "1.99.0" }));
    const app = await serve({ config: join(home.path, name, "heddle.json") });
    const input = { messages: [{ role: "user", content: "hi" }] };
    expect(await new Client({ apiUrl: app.url }).runs.wait(null, "a", { input })).toMatchObject({
      messages: [{ content: "hi" }],
    });
    expect(app.complaints).toEqual([
      expect.stringContaining("@langchain/langgraph 1.99.0 is newer than 1.7.3"),
    ]);
  });
});

test("the newest tested version is the one that is developed against", () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly devDependencies: { readonly [name: string]: string };
  };
  expect(NEWEST_TESTED).toBe(devDependencies["@langchain/langgraph"]);
});

beforeAll(build, 120_000);

test("`heddle dev` in a project of LangGraph.js serves its graphs, and names them", async () => {
  const config = join(import.meta.dirname, "../fixtures/langgraph/langgraph.json");
  const server = await Running.spawn("dev", ["--config", config, "--data", home.data("dev")]);
  await server.printed('"graphs":["booking","reviewed","slow"]');
  const client = new Client({ apiUrl: server.url });
  const messages = [{ role: "user", content: "to Lisbon" }];
  expect(await client.runs.wait(null, "booking", { input: { messages } })).toMatchObject({
    __interrupt__: [{ value: { action: "book a flight", city: "Lisbon" } }],
  });
  expect(await server.stop()).toBe(0);
});

describe("a server of Heddle's own graphs", () => {
  test("never loads LangGraph.js, although it is there", async () => {
    const config = home.project("native", {
      "a.mjs": `import { graph, list } from "heddle"; export default ${saying('"hello"')};`,
      "heddle.json": { graphs: { a: "./a.mjs" } },
    });
    // Node records every module that it has loaded.
    const notes = join(home.path, "notes");
    const server = await Running.start(["--config", config, "--data", home.data("native")], {
      NODE_V8_COVERAGE: notes,
    });
    expect(await say(server, "a")).toBe("hello");
    await server.stop();
    const text = readdirSync(notes)
      .map((name) => readFileSync(join(notes, name), "utf8"))
      .join("");
    expect(text).toContain("dist/src/cli.js");
    expect(text).toContain("node_modules/msgpackr/");
    expect(text).not.toContain("node_modules/@langchain/");
  });
});

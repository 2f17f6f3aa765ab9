import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, Running } from "../config/process.ts";
import { Home } from "../config/project.ts";
import { langGraphModules, langGraphVersion } from "./support.ts";

const home = new Home();
const root = join(import.meta.dirname, "../..");
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

/**
 * A project like the official starter template for LangGraph.js: types are imported as if they were values, modules by
 * names that end in `.js`, and the graph gets its name after it was compiled.
 */
const STARTER = {
  "package.json": {
    name: "starter",
    version: "0.0.1",
    private: true,
    type: "module",
    main: "my_app/graph.ts",
    packageManager: "yarn@1.22.22",
    scripts: { build: "tsc", clean: "rm -rf dist", test: "jest", lint: "eslint src" },
    dependencies: { "@langchain/core": "^1.0.0", "@langchain/langgraph": "^1.0.0" },
    devDependencies: { "@tsconfig/recommended": "^1.0.7", typescript: "^5.3.3" },
  },
  "langgraph.json": { node_version: "20", graphs: { agent: "./src/agent/graph.ts:graph" }, env: ".env" },
  // The file may contain comments and trailing commas; it extends the file of a development dependency.
  "tsconfig.json": `{
    "extends": "@tsconfig/recommended",
    "compilerOptions": {
      "target": "ES2021",
      "lib": ["ES2021", "DOM"],
      "module": "NodeNext",
      "moduleResolution": "nodenext",
      // Declarations are for projects that import the graph.
      "declaration": true,
      "esModuleInterop": true,
      "noImplicitReturns": true,
      "strict": true,
      "useDefineForClassFields": true,
      "outDir": "dist",
      "types": ["jest", "node"],
    },
    "include": ["**/*.ts", "**/*.js"],
    "exclude": ["node_modules", "dist"],
  }`,
  ".env.example": "# KEY_OF_A_MODEL=...\n",
  "src/agent/state.ts": `
    import { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
    import { Annotation, messagesStateReducer } from "@langchain/langgraph";

    export const StateAnnotation = Annotation.Root({
      messages: Annotation<BaseMessage[], BaseMessageLike[]>({ reducer: messagesStateReducer, default: () => [] }),
    });

    export type State = typeof StateAnnotation.State;`,
  "src/agent/configuration.ts": `
    import { RunnableConfig } from "@langchain/core/runnables";

    export interface Configuration {
      model: string;
    }

    export function ensureConfiguration(config?: RunnableConfig): Configuration {
      const given = config?.configurable ?? {};
      return { model: given.model ?? "none" };
    }`,
  "src/agent/graph.ts": `
    import { StateGraph } from "@langchain/langgraph";
    import { RunnableConfig } from "@langchain/core/runnables";
    import { StateAnnotation } from "./state.js";
    import { ensureConfiguration } from "./configuration.js";

    const callModel = async (
      state: typeof StateAnnotation.State,
      config: RunnableConfig,
    ): Promise<typeof StateAnnotation.Update> => {
      const { model } = ensureConfiguration(config);
      console.log("State:", state);
      return { messages: [{ role: "assistant", content: \`This is \${model}, \${process.env.GREETING ?? "hi"}\` }] };
    };

    export const route = (state: typeof StateAnnotation.State): "__end__" | "callModel" =>
      state.messages.length > 0 ? "__end__" : "callModel";

    const builder = new StateGraph(StateAnnotation)
      .addNode("callModel", callModel)
      .addEdge("__start__", "callModel")
      .addConditionalEdges("callModel", route);

    export const graph = builder.compile();

    graph.name = "Starter";`,
};

/**
 * Writes the project, with its packages. Without `isDeveloped`, the development dependencies are missing, as in an
 * image.
 */
function starter(
  name: string,
  { env, isDeveloped = true }: { env?: string; isDeveloped?: boolean } = {},
): string {
  home.project(name, { ...STARTER, ...(env !== undefined && { ".env": env }) });
  const modules = join(home.path, name, "node_modules");
  mkdirSync(modules);
  symlinkSync(join(langGraphModules, "@langchain"), join(modules, "@langchain"));
  symlinkSync(join(root, "node_modules/zod"), join(modules, "zod"));
  if (isDeveloped)
    home.project(`${name}/node_modules/@tsconfig/recommended`, {
      "package.json": { name: "@tsconfig/recommended", version: "1.0.7" },
      "tsconfig.json": { compilerOptions: { target: "ES2015", module: "CommonJS", strict: true } },
    });
  return join(home.path, name, "langgraph.json");
}

describe("a project of the official starter template, unedited", () => {
  test.each(["dev", "start"] as const)("is served by `heddle %s`", async (command) => {
    const config = starter(command, { env: "GREETING=good day\n" });
    const server = await Running.spawn(command, ["--config", config, "--data", home.data(command)]);
    const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    const info = (await (await fetch(`${server.url}/info`)).json()) as object;
    expect(info).toMatchObject({ langgraph_js_version: langGraphVersion });
    const [assistant] = await client.assistants.search({ graphId: "agent" });
    expect(await client.assistants.getGraph(assistant?.assistant_id ?? "")).toMatchObject({
      nodes: expect.arrayContaining([expect.objectContaining({ id: "callModel" })]),
    });
    const { thread_id } = await client.threads.create();
    const input = { messages: [{ role: "user", content: "hello" }] };
    const options = { input, config: { configurable: { model: "small" } } };
    expect(await client.runs.wait(thread_id, "agent", options)).toMatchObject({
      messages: [
        { type: "human", content: "hello" },
        { type: "ai", content: "This is small, good day" },
      ],
    });
    const updates: unknown[] = [];
    for await (const { event, data } of client.runs.stream(thread_id, "agent", {
      input,
      streamMode: "updates",
    }))
      if (event === "updates") updates.push(data);
    expect(updates).toEqual([
      { callModel: { messages: [{ role: "assistant", content: "This is none, good day" }] } },
    ]);
    expect((await client.threads.getState<{ messages: unknown[] }>(thread_id)).values.messages).toHaveLength(
      4,
    );
    // The server logs no warning about it.
    expect(server.output).not.toContain('"level":"warn"');
    expect(await server.stop()).toBe(0);
  });

  test.each(["dev", "start"] as const)(
    "also without the packages for development, by `%s`",
    async (command) => {
      const config = starter(`bare-${command}`, { env: "", isDeveloped: false });
      const server = await Running.spawn(command, [
        "--config",
        config,
        "--data",
        home.data(`bare-${command}`),
      ]);
      const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
      const input = { messages: [{ role: "user", content: "hello" }] };
      expect(await client.runs.wait(null, "agent", { input })).toMatchObject({
        messages: [{ content: "hello" }, { content: "This is none, hi" }],
      });
      expect(server.output.split("\n").filter((line) => line.includes('"level":"warn"'))).toEqual([
        expect.stringMatching(
          /tsconfig\.json is not used, since it cannot be read: .*'@tsconfig\/recommended' not found/,
        ),
      ]);
    },
  );

  test("starts while its .env is missing, and says what to do", async () => {
    const server = await Running.start(["--config", starter("new"), "--data", home.data("new")]);
    expect(server.output).toMatch(
      /"level":"warn".*there is no file .*; create it \(cp \.env\.example \.env\), or remove env/,
    );
  });
});

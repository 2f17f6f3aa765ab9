import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, Running } from "./process.ts";
import { Home, say } from "./project.ts";

const home = new Home();
const modules = join(import.meta.dirname, "../../node_modules");
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

/** A project that requests the logger at the top level of its file, with this version of the SDK installed. */
function project(name: string, sdk: string, file: string): string {
  const config = home.project(name, {
    "package.json": { type: "module" },
    [file]: `import { getLogger } from "@langchain/langgraph-sdk/logging";
      import { graph, list } from "heddle";
      const logger = getLogger();
      logger.info("loaded the file", { by: "SDK" });
      export default graph({
        state: { said: list() },
        nodes: { say: async () => {
          logger.warn("in a node", { n: 1 });
          return { said: ["hello"] };
        } },
        edges: { start: "say" },
      });`,
    "heddle.json": { graphs: { a: `./${file}` } },
  });
  mkdirSync(join(home.path, name, "node_modules/@langchain"), { recursive: true });
  symlinkSync(
    realpathSync(join(modules, sdk)),
    join(home.path, name, "node_modules/@langchain/langgraph-sdk"),
  );
  return config;
}

describe.each([
  ["1.15", "@langchain/langgraph-sdk"],
  ["2.0", "langgraph-sdk-2"],
])("a graph file that calls getLogger of the SDK %s is served", (version, sdk) => {
  test.each([
    ["by heddle start", "start", []],
    ["by heddle dev", "dev", []],
    ["with nodes in worker threads", "start", ["--workers", "1"]],
  ] as const)("%s", async (how, command, flags) => {
    const config = project(`${version} ${how}`, sdk, command === "dev" ? "a.ts" : "a.js");
    const server = await Running.spawn(command, [
      "--config",
      config,
      "--data",
      home.data(`${version} ${how}`),
      ...flags,
    ]);
    expect(await say(server, "a")).toBe("hello");
    await server.stop();
    const lines = server.output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "info", message: "loaded the file", by: "SDK" }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ level: "warn", message: "in a node", n: 1 }));
  });
});

import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { loadGraphs } from "../../src/graph-loader/load-graphs.ts";
import { build, heddle, Running } from "./process.ts";
import { Home, say, saying } from "./project.ts";

const home = new Home();
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

/** A package as npm would install it, for ESM and CommonJS, that counts how often it is loaded. */
const counting = (name: string) => ({
  [`node_modules/${name}/package.json`]: {
    name,
    exports: { import: "./index.mjs", require: "./index.cjs" },
  },
  [`node_modules/${name}/index.cjs`]: `
    const loads = (globalThis.loads ??= {});
    loads["${name}"] = (loads["${name}"] ?? 0) + 1;
    exports.word = "packed";`,
  [`node_modules/${name}/index.mjs`]: "import cjs from './index.cjs'; export const { word } = cjs;",
});

const imports = 'import { graph, list } from "heddle";';
const requires = 'const { graph, list } = require("heddle");';
const loads = (pack: string) => `word + " " + globalThis.loads["${pack}"]`;

/** Every file extension of each kind of project, in the syntax of TypeScript and of JavaScript. */
const esm = (pack: string) =>
  `${imports} import { word } from "${pack}"; export default ${saying(loads(pack))};`;
const typed = (pack: string) =>
  `${imports} import { word } from "${pack}"; const w: string = word; export const g = ${saying(`w && ${loads(pack)}`)};`;
const commonjs = (pack: string) =>
  `${requires} const { word } = require("${pack}"); exports.g = ${saying(loads(pack))};`;

type Written = (pack: string) => string;

describe("a project", () => {
  const typescript = { "a.ts:g": typed, "a.mts:g": typed, "a.cts:g": typed };
  const kinds: readonly (readonly [kind: string, manifest: object, files: Record<string, Written>])[] = [
    ["esm", { type: "module" }, { ...typescript, "a.js": esm, "a.mjs": esm, "a.cjs:g": commonjs }],
    [
      "commonjs",
      { type: "commonjs" },
      { ...typescript, "a.js:g": commonjs, "a.mjs": esm, "a.cjs:g": commonjs },
    ],
    ["unsaid", {}, { ...typescript, "a.js:g": commonjs, "a.mjs": esm, "a.cjs:g": commonjs }],
  ];

  test.each(["start", "dev"] as const)(
    "of ES modules, of CommonJS, that does not say of what, under `%s`: every kind of file, its own packages, each once",
    async (command) => {
      const graphs: Record<string, string> = {};
      for (const [kind, manifest, files] of kinds) {
        const written = Object.entries(files).map(([place, text]) => [
          place.split(":")[0],
          text(`pack-${kind}`),
        ]);
        home.project(`${command}/${kind}`, {
          "package.json": manifest,
          ...counting(`pack-${kind}`),
          ...(Object.fromEntries(written) as Record<string, string>),
        });
        for (const place of Object.keys(files)) {
          graphs[`${kind}-${place.split(":")[0]}`] = `./${kind}/${place}`;
        }
      }
      const config = home.project(command, { "heddle.json": { graphs } });
      const server = await Running.spawn(command, ["--config", config, "--data", home.data(command)]);
      for (const graph of Object.keys(graphs)) {
        expect(`${graph} ${String(await say(server, graph))}`).toBe(`${graph} packed 1`);
      }
      expect(Object.keys(graphs)).toHaveLength(18);
      expect(await server.stop()).toBe(0);
    },
  );

  test("its tsconfig holds, from wherever the command is given", async () => {
    const config = home.project("paths", {
      "package.json": { type: "module" },
      "tsconfig.json": { compilerOptions: { paths: { "@words/*": ["./lib/*"] } } },
      "lib/word.ts": 'export const word: string = "aliased";',
      "graphs/a.ts": `${imports} import { word } from "@words/word"; export default ${saying("word")};`,
      "heddle.json": { graphs: { a: "./graphs/a.ts" } },
    });
    const server = await Running.start(["--config", config, "--data", home.data("paths")]);
    expect(await say(server, "a")).toBe("aliased");
  });

  test("the sources of the package, which its demo imports, are the running heddle", async () => {
    const sources = join(import.meta.dirname, "../../src/index.ts");
    const config = home.project("sources", {
      "package.json": { type: "module" },
      "a.ts": `${imports} import { graph as other } from "${sources}"; export default ${saying("graph === other")};`,
      "heddle.json": { graphs: { a: "./a.ts" } },
    });
    const server = await Running.start(["--config", config, "--data", home.data("sources")]);
    expect(await say(server, "a")).toBe(true);
  });

  test("its packages may be links to folders beside it", async () => {
    home.project("linked/shared", {
      "package.json": { name: "shared", type: "module", exports: "./index.ts" },
      "index.ts": 'export const word: string = "shared";',
    });
    const config = home.project("linked/app", {
      "package.json": { type: "module" },
      "node_modules/.keep": "",
      "a.ts": `${imports} import { word } from "shared"; export default ${saying("word")};`,
      "heddle.json": { graphs: { a: "./a.ts" } },
    });
    symlinkSync(join(home.path, "linked/shared"), join(home.path, "linked/app/node_modules/shared"));
    const server = await Running.start(["--config", config, "--data", home.data("linked")]);
    expect(await say(server, "a")).toBe("shared");
  });
});

describe("an export", () => {
  test("may be a function, or a promise, of a graph", async () => {
    const config = home.project("factory", {
      "a.mjs": `${imports}
        export const plain = () => ${saying('"plain"')};
        export const later = async (config) => ${saying("typeof config.configurable")};
        export const promise = Promise.resolve(${saying('"promise"')});`,
      "heddle.json": {
        graphs: { plain: "./a.mjs:plain", later: "./a.mjs:later", promise: "./a.mjs:promise" },
      },
    });
    const server = await Running.start(["--config", config, "--data", home.data("factory")]);
    expect(await say(server, "plain")).toBe("plain");
    expect(await say(server, "later")).toBe("object");
    expect(await say(server, "promise")).toBe("promise");
  });

  test.each<[string, string, string]>([
    ["that fails", "throw new Error('no luck')", 'the function "default" gave no graph: no luck'],
    ["that gives none", "return 5", 'the export "default" of '],
    ["that gives a runnable", "return { invoke() {} }", "a runnable that is no compiled graph"],
  ])("a function %s is refused", (_, body, message) => {
    const config = home.project("no-factory", {
      "a.mjs": `export default () => { ${body}; };`,
      "heddle.json": { graphs: { a: "./a.mjs" } },
    });
    const { status, stderr } = heddle([
      "start",
      "--port",
      "0",
      "--config",
      config,
      "--data",
      home.data("no"),
    ]);
    expect(stderr).toContain("graphs.a: ");
    expect(stderr).toContain(message);
    expect(status).toBe(1);
  });

  test("of a file that never comes to its end is not waited for for ever", async () => {
    const path = home.project("endless", {
      "a.mjs": "await new Promise(() => undefined);",
      "b.mjs": "export default () => new Promise(() => undefined);",
    });
    for (const file of ["a.mjs", "b.mjs"]) {
      const timers: (() => void)[] = [];
      const after = (_: number, task: () => void) => {
        timers.push(task);
        return () => undefined;
      };
      const graphs = { g: { file: join(home.path, "endless", file), name: "default" } };
      const loading = loadGraphs(
        { path, graphs },
        {
          scheduler: { soon: () => undefined, after },
        },
      );
      const outcome = loading.then(
        () => "loaded",
        (cause: Error) => cause.message,
      );
      // The file's own timer fires first, then the function's.
      await vi.waitFor(() => expect(timers.length).toBeGreaterThan(file === "a.mjs" ? 0 : 1), {
        timeout: 30_000,
      });
      for (const task of timers) task();
      expect(await outcome).toMatch(/graphs\.g: .*did not come to an end in 30 s/);
    }
  });
});

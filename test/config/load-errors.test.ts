import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, heddle } from "./process.ts";
import { Home } from "./project.ts";

const home = new Home();
beforeAll(build, 180_000);
afterAll(() => home.remove());

let projects = 0;

/** Starts a server with one graph, and returns the line with which it refuses it. `DIR` in the line is the project's folder. */
function refusal(
  manifest: object,
  files: Readonly<Record<string, string>>,
  { command = "start", env = {} }: { command?: "start" | "dev"; env?: Record<string, string> } = {},
) {
  const [graph = ""] = Object.keys(files);
  const config = home.project(`p${projects++}`, {
    "package.json": manifest,
    "heddle.json": { graphs: { g: `./${graph}` } },
    ...files,
  });
  const args = [command, "--port", "0", "--config", config, "--data", home.data("any")];
  const { status, stderr } = heddle(args, { env });
  const lines = stderr.replaceAll(dirname(config), "DIR").split("\n");
  return { status, stderr, lines: lines.filter((line) => line.startsWith("heddle:")) };
}

const esm = { type: "module" };
const commonjs = { type: "commonjs" };
const typescript =
  "interface A { a: string }\n\nconst x: A = { a: '1' };\nthrow new TypeError(`no luck ${x.a}`);\n";
const javascript = "const a = 1;\nthrow new Error(`no luck ${a}`);\n";
/** Node 20 loads such a file from a text without source map. */
const isMapped = Number(process.versions.node.split(".")[0]) >= 22;

describe("a graph file that throws is reported with the place", () => {
  test.each<[string, object, Record<string, string>, string]>([
    ["an ES module in TypeScript", esm, { "a.ts": typescript }, "no luck 1 (at DIR/a.ts:4:7)"],
    ["an ES module", esm, { "a.mjs": javascript }, "no luck 1 (at DIR/a.mjs:2:7)"],
    ["CommonJS", commonjs, { "a.js": javascript }, "no luck 1 (at DIR/a.js:2:7)"],
    [
      "CommonJS in TypeScript",
      commonjs,
      { "a.ts": typescript },
      `no luck 1 (at DIR/a.ts${isMapped ? ":4:7" : ""})`,
    ],
    [
      "a file that it imports",
      esm,
      { "a.ts": 'import "./lib/b.ts";', "lib/b.ts": typescript },
      "no luck 1 (at DIR/lib/b.ts:4:7)",
    ],
    [
      "a file that it requires",
      commonjs,
      { "a.ts": 'import "./b";', "b.ts": typescript },
      "no luck 1 (at DIR/b.ts:4:7)",
    ],
  ])("in %s", (_, manifest, files, told) => {
    const [graph] = Object.keys(files);
    const { status, lines } = refusal(manifest, files);
    expect(lines).toEqual([`heddle: graphs.g: DIR/${graph} cannot be loaded: ${told}`]);
    expect(status).toBe(1);
  });

  test("under `heddle dev`, which adds a suffix to the file's name at each load", () => {
    expect(refusal(esm, { "a.mjs": javascript }, { command: "dev" }).lines).toEqual([
      "heddle: graphs.g: DIR/a.mjs cannot be loaded: no luck 1 (at DIR/a.mjs:2:7)",
    ]);
  });
});

describe("the error line names the file, line and column", () => {
  test("of an invalid definition", () => {
    const source =
      'import { graph } from "heddle";\n\nexport default graph({ state: {}, nodes: {}, edges: {} });\n';
    expect(refusal(esm, { "a.ts": source }).lines).toEqual([
      "heddle: graphs.g: DIR/a.ts cannot be loaded: nodes is empty: a graph needs at least one node (at DIR/a.ts:3:16)",
    ]);
  });

  test("of an error in the function that makes the graph", () => {
    const source = "\nexport default () => {\n  throw new RangeError('too far');\n};\n";
    expect(refusal(esm, { "a.mts": source }).lines).toEqual([
      'heddle: graphs.g: DIR/a.mts: the function "default" gave no graph: too far (at DIR/a.mts:3:9)',
    ]);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      "TypeScript",
      { "a.ts": "const a: number = 1;\nconst b = ;\n" },
      /Unexpected ";" \(at DIR\/a\.ts:2:10\)$/,
    ],
    [
      "an ES module",
      { "a.mjs": "const a = 1;\nconst b = ;\n" },
      /Unexpected token ';' \(at DIR\/a\.mjs:2:11\)$/,
    ],
    [
      "an ES module that is imported",
      { "a.mjs": 'import "none-such-asset";\nimport "./b.mjs";', "b.mjs": "\n\nconst b = ;\n" },
      /Unexpected token ';' \(at DIR\/b\.mjs:3:11\)$/,
    ],
    ["CommonJS", { "a.cjs": "const a = 1;\nconst b = ;\n" }, /Unexpected token ';' \(at DIR\/a\.cjs:2\)$/],
  ])("of a syntax error in %s", (_, files, told) => {
    const installed = {
      ...files,
      "node_modules/none-such-asset/package.json": '{"exports":"./index.js"}',
      "node_modules/none-such-asset/index.js": "",
    };
    expect(refusal(esm, installed).lines).toEqual([expect.stringMatching(told)]);
  });

  test("except of a syntax error when esbuild cannot be loaded", () => {
    const hook =
      'export async function resolve(name, context, next) { if (name === "esbuild") throw new Error("not for this machine"); return next(name, context); }';
    const preload = `import { register } from "node:module"; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)});`;
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}` };
    expect(refusal(esm, { "a.mjs": "const a = 1;\nconst b = ;\n" }, { env }).lines).toEqual([
      "heddle: graphs.g: DIR/a.mjs cannot be loaded: Unexpected token ';'",
    ]);
  });

  test("of an import that does not exist", () => {
    const files = {
      "a.mjs": '\nimport { none } from "./b.mjs";\nexport default none;',
      "b.mjs": "export {};",
    };
    expect(refusal(esm, files).lines).toEqual([
      expect.stringMatching(/does not provide an export named 'none' \(at DIR\/a\.mjs:2\)$/),
    ]);
  });
});

test("each graph that cannot be loaded is reported, in a line of its own", () => {
  const graphs = {
    one: "./none.mjs:graph",
    two: "./a.mjs:default",
    good: "./b.mjs:default",
    three: "./b.mjs:other",
  };
  const config = home.project("several", {
    "heddle.json": { graphs },
    "a.mjs": "const a = 1;\nconst b = ;\n",
    "b.mjs":
      'import { graph } from "heddle"; export default graph({ state: {}, nodes: { a: () => ({}) }, edges: { start: "a" } });',
  });
  const { stderr } = heddle(["start", "--port", "0", "--config", config, "--data", home.data("any")]);
  const folder = dirname(config);
  const lines = stderr.replaceAll(folder, "DIR").trimEnd().split("\n");
  expect(lines).toEqual([
    "heddle: graphs.one: there is no file DIR/none.mjs",
    expect.stringMatching(/graphs\.two: DIR\/a\.mjs cannot be loaded: Unexpected token ';'/),
    expect.stringMatching(/graphs\.three: DIR\/b\.mjs exports no "other"/),
  ]);
});

test("a folder is named as one", () => {
  const config = home.project("folder", { "heddle.json": { graphs: { g: "./graphs" } }, "graphs/a.mjs": "" });
  const { stderr } = heddle(["start", "--port", "0", "--config", config, "--data", home.data("any")]);
  const folder = join(dirname(config), "graphs");
  expect(stderr).toBe(`heddle: graphs.g: ${folder} is a folder; name a file in it\n`);
});

test.each([
  ["CommonJS", commonjs, "exports.a = 1;"],
  ["CommonJS in TypeScript", commonjs, "export const a = 1;", ".ts"],
  ["an ES module", esm, "export const a = 1;"],
])("a file without a default export: %s", (_, manifest, source, extension = ".js") => {
  const file = `a${extension}`;
  expect(refusal(manifest, { [file]: source }).lines).toEqual([
    `heddle: graphs.g: DIR/${file} exports no "default"; it exports: a`,
  ]);
});

test("a module that is not there is named without what the loader adds", () => {
  const { stderr } = refusal(commonjs, { "a.ts": 'import "./nope";' });
  expect(stderr).toContain("Cannot find module './nope'");
  expect(stderr).not.toContain("namespace=");
});

test("an exported definition that was not passed to graph() is refused, and the message says to pass it", () => {
  const source = "export default { state: {}, nodes: { a: async () => ({}) } };";
  expect(refusal(esm, { "a.mjs": source }).lines).toEqual([
    'heddle: graphs.g: the export "default" of DIR/a.mjs is no graph: a definition that was not given to graph(): export graph({ ... })',
  ]);
});

test("a thrown value that is no error is shown", () => {
  const told = (thrown: string) => refusal(esm, { "a.mjs": `throw ${thrown};` }).lines[0];
  expect(told("'no luck'")).toMatch(/cannot be loaded: no luck$/);
  expect(told("{ a: 1 }")).toMatch(/cannot be loaded: \{"a":1\}$/);
  expect(told("undefined")).toMatch(/cannot be loaded: undefined$/);
});

describe("top-level await in a file that counts as CommonJS is refused with the remedy", () => {
  const typed = "const a: number = 1;\nconst b = await Promise.resolve(a);\nexport default b;\n";
  const plain = "const a = 1;\nconst b = await Promise.resolve(a);\nmodule.exports = b;\n";
  const rename = "let its name end in .mts or .mjs";
  const why = "; the file counts as CommonJS, which has no top-level await: ";

  test.each<[string, object, Record<string, string>, string, string]>([
    [
      "TypeScript in a project of no type",
      {},
      { "a.ts": typed },
      "a.ts:2:10",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
    [
      "an imported file",
      {},
      { "a.ts": 'import "./b";', "b.ts": typed },
      "b.ts:2:10",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
    [".cts", esm, { "a.cts": typed }, "a.cts:2:10", rename],
    [".cjs", esm, { "a.cjs": plain }, "a.cjs:2", rename],
    [
      "JavaScript",
      commonjs,
      { "a.js": plain },
      "a.js:2",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
  ])("%s", (_, manifest, files, place, remedy) => {
    const { status, lines } = refusal(manifest, files);
    expect(lines).toEqual([expect.stringContaining(`(at ${join("DIR", place)})${why}${remedy}`)]);
    expect(status).toBe(1);
  });
});

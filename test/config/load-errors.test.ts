import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, heddle } from "./process.ts";
import { Home } from "./project.ts";

const home = new Home();
afterAll(() => home.remove());

interface Project {
  readonly manifest: object;
  readonly files: Readonly<Record<string, string>>;
}

/** Projects with a graph that cannot be loaded: a start names them all, so one serves for those that one loader loads. */
const projects: Project[] = [];
const isTypescript = ({ files }: Project) => /\.[cm]?ts$/.test(Object.keys(files)[0] ?? "");
const told = new Map<Project, { readonly status: number | null; readonly lines: readonly string[] }>();

/**
 * Adds a project, whose graph is in its first file. Returns a function for its tests: what the start tells of it. `DIR`
 * is the project's folder.
 */
function refused(manifest: object, files: Project["files"]) {
  const project = { manifest, files };
  projects.push(project);
  return () => told.get(project) ?? { status: null, lines: [] };
}

/** Starts a server with these projects, and returns the lines with which it refuses each of them. */
function refusals(
  all: readonly Project[],
  { command = "start", env = {} }: { command?: "start" | "dev"; env?: Record<string, string> } = {},
) {
  const home = new Home();
  const names = all.map((_, n) => `p${n}`);
  for (const [n, { manifest, files }] of all.entries())
    home.project(`p${n}`, { "package.json": manifest, ...files });
  const graphs = all.map(({ files }, n) => [`p${n}`, `../p${n}/${Object.keys(files)[0]}`]);
  const config = home.project("all", { "heddle.json": { graphs: Object.fromEntries(graphs) } });
  const args = [command, "--port", "0", "--config", config, "--data", home.data("any")];
  const { status, stderr } = heddle(args, { env });
  home.remove();
  const printed = stderr.replace(/^heddle: /m, "").split("\n");
  return names.map((name) => ({
    status,
    lines: printed
      .filter((line) => line.startsWith(`graphs.${name}: `))
      .map((line) => line.replace(`.${name}: `, ".g: ").replaceAll(`${join(home.path, name)}/`, "DIR/")),
  }));
}

beforeAll(async () => {
  await build();
  for (const kind of [true, false]) {
    const some = projects.filter((project) => isTypescript(project) === kind);
    for (const [n, found] of refusals(some).entries()) told.set(some[n] as Project, found);
  }
}, 180_000);

const esm = { type: "module" };
const commonjs = { type: "commonjs" };
const typescript =
  "interface A { a: string }\n\nconst x: A = { a: '1' };\nthrow new TypeError(`no luck ${x.a}`);\n";
const javascript = "const a = 1;\nthrow new Error(`no luck ${a}`);\n";

describe("a graph file that throws is reported with the place", () => {
  test.each([
    ["an ES module in TypeScript", refused(esm, { "a.ts": typescript }), "a.ts", "DIR/a.ts:4:7"],
    ["an ES module", refused(esm, { "a.mjs": javascript }), "a.mjs", "DIR/a.mjs:2:7"],
    ["CommonJS", refused(commonjs, { "a.js": javascript }), "a.js", "DIR/a.js:2:7"],
    ["CommonJS in TypeScript", refused(commonjs, { "a.ts": typescript }), "a.ts", "DIR/a.ts:4:7"],
    [
      "a file that it imports",
      refused(esm, { "a.ts": 'import "./lib/b.ts";', "lib/b.ts": typescript }),
      "a.ts",
      "DIR/lib/b.ts:4:7",
    ],
    [
      "a file that it requires",
      refused(commonjs, { "a.ts": 'import "./b";', "b.ts": typescript }),
      "a.ts",
      "DIR/b.ts:4:7",
    ],
  ])("in %s", (_, found, graph, place) => {
    const { status, lines } = found();
    expect(lines).toEqual([`graphs.g: DIR/${graph} cannot be loaded: no luck 1 (at ${place})`]);
    expect(status).toBe(1);
  });

  test("under `heddle dev`, which adds a suffix to the file's name at each load", () => {
    const project = { manifest: esm, files: { "a.mjs": javascript } };
    expect(refusals([project], { command: "dev" })).toMatchObject([
      { lines: ["graphs.g: DIR/a.mjs cannot be loaded: no luck 1 (at DIR/a.mjs:2:7)"] },
    ]);
  });
});

describe("the error line names the file, line and column", () => {
  const invalid = refused(esm, {
    "a.ts": 'import { graph } from "heddle";\n\nexport default graph({ state: {}, nodes: {}, edges: {} });\n',
  });
  test("of an invalid definition", () => {
    expect(invalid().lines).toEqual([
      "graphs.g: DIR/a.ts cannot be loaded: nodes is empty: a graph needs at least one node (at DIR/a.ts:3:16)",
    ]);
  });

  const failing = refused(esm, {
    "a.mts": "\nexport default () => {\n  throw new RangeError('too far');\n};\n",
  });
  test("of an error in the function that makes the graph", () => {
    expect(failing().lines).toEqual([
      'graphs.g: DIR/a.mts: the function "default" gave no graph: too far (at DIR/a.mts:3:9)',
    ]);
  });

  const asset = {
    "node_modules/none-such-asset/package.json": '{"exports":"./index.js"}',
    "node_modules/none-such-asset/index.js": "",
  };
  const syntaxErrors: readonly (readonly [string, Record<string, string>, RegExp])[] = [
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
  ];
  test.each(
    syntaxErrors.map(([name, files, line]) => [name, refused(esm, { ...files, ...asset }), line] as const),
  )("of a syntax error in %s", (_, found, line) => {
    expect(found().lines).toEqual([expect.stringMatching(line)]);
  });

  test("except of a syntax error when esbuild cannot be loaded", () => {
    const hook =
      'export async function resolve(name, context, next) { if (name === "esbuild") throw new Error("not for this machine"); return next(name, context); }';
    const preload = `import { register } from "node:module"; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)});`;
    const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}` };
    const project = { manifest: esm, files: { "a.mjs": "const a = 1;\nconst b = ;\n" } };
    expect(refusals([project], { env })).toMatchObject([
      { lines: ["graphs.g: DIR/a.mjs cannot be loaded: Unexpected token ';'"] },
    ]);
  });

  const importing = refused(esm, {
    "a.mjs": '\nimport { none } from "./b.mjs";\nexport default none;',
    "b.mjs": "export {};",
  });
  test("of an import that does not exist", () => {
    expect(importing().lines).toEqual([
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
  ["CommonJS", "a.js", refused(commonjs, { "a.js": "exports.a = 1;" })],
  ["CommonJS in TypeScript", "a.ts", refused(commonjs, { "a.ts": "export const a = 1;" })],
  ["an ES module", "a.js", refused(esm, { "a.js": "export const a = 1;" })],
])("a file without a default export: %s", (_, file, found) => {
  expect(found().lines).toEqual([`graphs.g: DIR/${file} exports no "default"; it exports: a`]);
});

const missing = refused(commonjs, { "a.ts": 'import "./nope";' });
test("a module that is not there is named without what the loader adds", () => {
  const [line] = missing().lines;
  expect(line).toContain("Cannot find module './nope'");
  expect(line).not.toContain("namespace=");
});

const bare = refused(esm, { "a.mjs": "export default { state: {}, nodes: { a: async () => ({}) } };" });
test("an exported definition that was not passed to graph() is refused, and the message says to pass it", () => {
  expect(bare().lines).toEqual([
    'graphs.g: the export "default" of DIR/a.mjs is no graph: a definition that was not given to graph(): export graph({ ... })',
  ]);
});

const thrown = ["'no luck'", "{ a: 1 }", "undefined"].map((value) =>
  refused(esm, { "a.mjs": `throw ${value};` }),
);
test("a thrown value that is no error is shown", () => {
  expect(thrown.map((found) => found().lines)).toEqual([
    [expect.stringMatching(/cannot be loaded: no luck$/)],
    [expect.stringMatching(/cannot be loaded: \{"a":1\}$/)],
    [expect.stringMatching(/cannot be loaded: undefined$/)],
  ]);
});

describe("top-level await in a file that counts as CommonJS is refused with the remedy", () => {
  const typed = "const a: number = 1;\nconst b = await Promise.resolve(a);\nexport default b;\n";
  const plain = "const a = 1;\nconst b = await Promise.resolve(a);\nmodule.exports = b;\n";
  const rename = "let its name end in .mts or .mjs";
  const why = "; the file counts as CommonJS, which has no top-level await: ";

  test.each([
    [
      "TypeScript in a project of no type",
      refused({}, { "a.ts": typed }),
      "a.ts:2:10",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
    [
      "an imported file",
      refused({}, { "a.ts": 'import "./b";', "b.ts": typed }),
      "b.ts:2:10",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
    [".cts", refused(esm, { "a.cts": typed }), "a.cts:2:10", rename],
    [".cjs", refused(esm, { "a.cjs": plain }), "a.cjs:2", rename],
    [
      "JavaScript",
      refused(commonjs, { "a.js": plain }),
      "a.js:2",
      `set "type": "module" in its package.json, or ${rename}`,
    ],
  ])("%s", (_, found, place, remedy) => {
    const { status, lines } = found();
    expect(lines).toEqual([expect.stringContaining(`(at ${join("DIR", place)})${why}${remedy}`)]);
    expect(status).toBe(1);
  });
});

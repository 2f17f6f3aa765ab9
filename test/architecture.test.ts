import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { breaches, folderOf } from "./architecture/breaches.ts";
import { allowedImports, USER_CODE, packageOwners } from "./architecture/plan.ts";
import { clashes, exportsOf } from "./architecture/exported-names.ts";
import { read, type Source } from "./architecture/source.ts";

const root = join(import.meta.dirname, "..");
const sources: readonly Source[] = ["src", "actors"].flatMap((top) =>
  readdirSync(join(root, top), { recursive: true, encoding: "utf8" })
    .map((name) => join(top, name).replaceAll(sep, "/"))
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => read(path, readFileSync(join(root, path), "utf8"))),
);

describe("the map in src/README.md", () => {
  test("names every folder, and every folder that it names has files", () => {
    expect(sources.length).toBeGreaterThan(100);
    const folders = new Set(sources.map(({ path }) => folderOf(path)));
    expect([...folders].toSorted()).toEqual(Object.keys(allowedImports).toSorted());
  });

  test("allows every import that there is", () => {
    expect(breaches(sources)).toEqual([]);
  });

  test("names for packages only owners that import them", () => {
    const used = new Set(
      sources.filter(({ path }) => !path.startsWith(USER_CODE)).flatMap(({ imports }) => imports),
    );
    expect(Object.keys(packageOwners).filter((name) => !used.has(name))).toEqual([]);
  });

  test("names only files that exist", () => {
    const map = readFileSync(join(root, "src/README.md"), "utf8").replace(/^[\s\S]*?^## Words/m, "");
    const named = [...map.matchAll(/`((?:\.\.\/)?[\w-]+(?:\/[\w.-]*)+|app\.ts)`/g)].map(
      ([, name = ""]) => name,
    );
    expect(named.length).toBeGreaterThan(40);
    expect(named.filter((name) => !existsSync(join(root, "src", name)))).toEqual([]);
  });

  test.each(["actors/README.md", ".github/CONTRIBUTING.md", "bench/README.md"])(
    "the files that %s names exist",
    (page) => {
      const text = readFileSync(join(root, page), "utf8");
      const named = [...text.matchAll(/`([\w-]+(?:\/[\w-]+)*\/?(?:\.ts)?)`/g)]
        .map(([, name = ""]) => name)
        .filter((name) => /\.ts$|\/$/.test(name) && name !== "types.ts");
      expect(named.length).toBeGreaterThan(5);
      // By its path, or by its name within the folder of the page or of the storage.
      const folders = [dirname(page), "src/storage"].map((folder) => join(root, folder));
      const known = folders.flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }));
      const isThere = (name: string) =>
        existsSync(join(root, name)) ||
        known.some((path) => `/${path}`.endsWith(`/${name.replace(/\/$/, "")}`));
      expect(named.filter((name) => !isThere(name))).toEqual([]);
    },
  );

  test("has no circles", () => {
    const below = (folder: string, seen: readonly string[] = []): string[] => {
      if (seen.includes(folder)) throw new Error(`a circle: ${[...seen, folder].join(" -> ")}`);
      return (allowedImports[folder] ?? []).flatMap((next) => [next, ...below(next, [...seen, folder])]);
    };
    for (const folder of Object.keys(allowedImports)) expect(below(folder)).not.toContain(folder);
  });
});

describe("an exported name", () => {
  test("means one thing in all of src and actors", () => {
    expect(sources.flatMap(exportsOf).length).toBeGreaterThan(1_000);
    expect(clashes(sources)).toEqual([]);
  });

  test.each([
    [["export function send() {}"], ["export interface Send {}"], ["Send in b.ts, send in a.ts"]],
    [["export const STEP = 1;"], ["export interface Step {}"], ["STEP in a.ts, Step in b.ts"]],
    [
      ["export const PAGE_SIZE = 1;"],
      ["export function pageSize() {}"],
      ["PAGE_SIZE in a.ts, pageSize in b.ts"],
    ],
    [["export class A {}"], ["export type A = 1;"], ["A in a.ts, A in b.ts"]],
    [["export const [one, two] = f();"], ["export enum Two {}"], ["Two in b.ts, two in a.ts"]],
    [
      ["const a = 1;\nexport { a as b };"],
      ["export * from 'x';\nexport const b = 1;"],
      ["b in a.ts, b in b.ts"],
    ],
    [["export interface Item {}\nexport function item() {}"], [], ["Item in a.ts, item in a.ts"]],
    // Allowed: overloads, names that are exported again, and types of the graph API with the functions that make them.
    [["export interface Tool {}\nexport function tool(): Tool {}"], [], []],
    [["export function f(a: 1): 1;\nexport function f(a: 2) {}"], [], []],
    [["export class A {}"], ['export { A } from "./a.ts";'], []],
    [["export class A {}"], ['import { A } from "./a.ts";\nexport { A };'], []],
    [["const text = `export class A {}`;"], ["export class A {}"], []],
  ])("%j and %j: %j", (first, second, found) => {
    expect(clashes([read("a.ts", first.join("\n")), read("b.ts", second.join("\n"))])).toEqual(found);
  });
});

/** A planted breach, and the beginning of its message; undefined: it is allowed. */
const planted: readonly (readonly [path: string, text: string, said: string | undefined])[] = [
  // Imports between folders.
  [
    "src/http/x.ts",
    `import { openStorage } from "../storage/open-storage.ts";`,
    "src/http/x.ts must not import src/storage/open-storage.ts",
  ],
  [
    "src/model/x.ts",
    `import type { Clock } from "../ports/clock.ts";`,
    "src/model/x.ts must not import src/ports/clock.ts",
  ],
  [
    "src/graph/x.ts",
    `export * from "../engine/native-engine.ts";`,
    "src/graph/x.ts must not import src/engine/native-engine.ts",
  ],
  [
    "src/service/x.ts",
    `const app = await import("../app.ts");`,
    "src/service/x.ts must not import src/app.ts",
  ],
  [
    "actors/run/x.ts",
    `import "../../src/stream/run-log-registry.ts";`,
    "actors/run/x.ts must not import src/stream/run-log-registry.ts",
  ],
  [
    "src/stream/x.ts",
    `import { createSystem } from '../../actors/create-system.ts';`,
    "src/stream/x.ts must not import actors/create-system.ts",
  ],
  [
    "src/demo/x.ts",
    `import { graph } from "../graph/graph-builder.ts";`,
    "src/demo/x.ts must not import src/graph/graph-builder.ts",
  ],
  ["src/dashboard/docs/guide-contents.ts", `import runs from "../../guide/runs.md";`, undefined],
  [
    "src/dashboard/docs/x.ts",
    `import runs from "../../guide/runs.md";`,
    "src/dashboard/docs/x.ts must not import src/guide/runs.md",
  ],
  ["src/model/x.ts", `import { x } from "../../test/x.ts";`, "src/model/x.ts must not import test/x.ts"],
  [
    "src/cluster/x.ts",
    `import { openStorage } from "../storage/open-storage.ts";`,
    "src/cluster/x.ts must not import src/storage/open-storage.ts",
  ],
  // Whoever uses the service does not know how many shards there are.
  [
    "src/http/x.ts",
    `import { ShardRouter } from "../cluster/shard-router.ts";`,
    "src/http/x.ts must not import src/cluster/shard-router.ts",
  ],
  [
    "src/service/x.ts",
    `import { shardedStoreItems } from "../cluster/sharded-store-items.ts";`,
    "src/service/x.ts must not import src/cluster/sharded-store-items.ts",
  ],
  ["src/utils/x.ts", ``, "src/utils/x.ts is in no folder of the map"],
  ["src/http/x.ts", `import type { Service } from "../service/service.ts";`, undefined],
  ["src/http/x.ts", `const text = 'from "../storage/open-storage.ts"';`, undefined],
  ["src/http/x.ts", `// import { openStorage } from "../storage/open-storage.ts";`, undefined],
  // Packages and their owners.
  ["src/http/x.ts", `import { createServer } from "node:http";`, "src/http/x.ts must not import node:http"],
  ["src/websocket/x.ts", `import type { WebSocket } from "ws";`, "src/websocket/x.ts must not import ws"],
  ["src/service/x.ts", `import { createActor } from "xstate";`, "src/service/x.ts must not import xstate"],
  ["src/stream/x.ts", `import lodash from "lodash";`, "src/stream/x.ts must not import lodash: nobody may"],
  ["src/demo/x.ts", `import { z } from "zod";`, undefined],
  // Time and randomness.
  ["src/http/x.ts", `const now = Date.now();`, "src/http/x.ts must not use Date.now"],
  ["src/http/x.ts", `const now = new Date();`, "src/http/x.ts must not use new Date()"],
  ["src/http/x.ts", `const now = new Date;`, "src/http/x.ts must not use new Date"],
  ["src/http/x.ts", `const text = Date();`, "src/http/x.ts must not use Date("],
  ["src/http/x.ts", "const text = `at ${Math.random()}`;", "src/http/x.ts must not use Math.random"],
  ["actors/x.ts", `setTimeout(() => {}, 1);`, "actors/x.ts must not use setTimeout"],
  ["actors/x.ts", `const wait = { soon: queueMicrotask };`, "actors/x.ts must not use queueMicrotask"],
  ["actors/x.ts", `[1].forEach(setImmediate);`, "actors/x.ts must not use setImmediate"],
  ["actors/x.ts", `process.nextTick(run);`, "actors/x.ts must not use process.nextTick"],
  ["actors/x.ts", `const t = performance.now();`, "actors/x.ts must not use performance"],
  ["actors/x.ts", `const signal = AbortSignal.timeout(5);`, "actors/x.ts must not use AbortSignal.timeout"],
  ["src/model/x.ts", `const id = crypto.randomUUID();`, "src/model/x.ts must not use crypto.random"],
  [
    "src/model/ids.ts",
    `import { randomBytes } from "node:crypto";`,
    "src/model/ids.ts must not use randomBytes",
  ],
  ["src/model/x.ts", `const f = globalThis["setTimeout"];`, "src/model/x.ts must not use globalThis"],
  [
    "src/stream/x.ts",
    `import { scheduler } from "node:timers/promises";`,
    "src/stream/x.ts must not use node:timers/promises",
  ],
  ["src/stream/x.ts", `import timers from "node:timers";`, "src/stream/x.ts must not use node:timers"],
  ["src/platform/x.ts", `const now = Date.now(); setImmediate(run);`, undefined],
  ["src/demo/x.ts", `import { setTimeout as sleep } from "node:timers/promises"; Date.now();`, undefined],
  ["src/http/x.ts", `const at = new Date(ms); const text = "Date.now()"; /* Math.random() */`, undefined],
  [
    "src/http/x.ts",
    "const text = `Date.now() ${name} setTimeout(x)`; const is = /Math.random/.test(text);",
    undefined,
  ],
  [
    "actors/x.ts",
    `const clock = { setTimeout: (task) => scheduler.after(1, task) }; clock.setTimeout(run);`,
    undefined,
  ],
  // State.
  ["src/http/x.ts", `let current = 0;`, "src/http/x.ts keeps state"],
  ["src/http/x.ts", `export const open = new Map<string, Set<number>>();`, "src/http/x.ts keeps state"],
  ["src/http/x.ts", `const all: string[] = [];`, "src/http/x.ts keeps state"],
  [
    "src/http/x.ts",
    `const NONE: readonly string[] = [];\nfunction f() {\n  let n = new Map();\n}`,
    undefined,
  ],
];

describe("a breach is found", () => {
  test.each(planted)("%s: %s", (path, text, said) => {
    const found = breaches([read(path, text)]);
    expect(found).toEqual(said === undefined ? [] : [expect.stringContaining(said)]);
  });
});

describe("reading", () => {
  test.each([
    ['a("//") // b', 'a("")  '],
    ["a / b / c", "a / b / c"],
    ["a(/[/\"]/g) + 'x'", 'a( 0 ) + ""'],
    ["`a ${b(`c ${{ d: '}' }.d}`)} e` + f", ' (b( ({ d: "" }.d) ))  + f'],
    ["/* a\n b */ c", "  c"],
    ["'it\\'s' + \"a\\\"b\"", '"" + ""'],
  ])("%s", (text, code) => {
    expect(read("x.ts", text).code).toBe(code);
  });
});

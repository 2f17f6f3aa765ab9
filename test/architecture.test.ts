import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { breaches, roomOf } from "./architecture/breaches.ts";
import { floors, GUEST, keepers } from "./architecture/plan.ts";
import { read, type Source } from "./architecture/source.ts";

const root = join(import.meta.dirname, "..");
const sources: readonly Source[] = ["src", "actors"].flatMap((top) =>
  readdirSync(join(root, top), { recursive: true, encoding: "utf8" })
    .map((name) => join(top, name).replaceAll(sep, "/"))
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => read(path, readFileSync(join(root, path), "utf8"))),
);

describe("the house", () => {
  test("was seen: every room has files, every file a room", () => {
    expect(sources.length).toBeGreaterThan(100);
    const rooms = new Set(sources.map(({ path }) => roomOf(path)));
    expect([...rooms].toSorted()).toEqual(Object.keys(floors).toSorted());
  });

  test("stands as it is drawn", () => {
    expect(breaches(sources)).toEqual([]);
  });

  test("its keepers keep something: no row of the table is left over", () => {
    const used = new Set(
      sources.filter(({ path }) => !path.startsWith(GUEST)).flatMap(({ imports }) => imports),
    );
    expect(Object.keys(keepers).filter((name) => !used.has(name))).toEqual([]);
  });

  test("its arrows run downwards only: a room is drawn below those that look into it", () => {
    const below = (room: string, seen: readonly string[] = []): string[] => {
      if (seen.includes(room)) throw new Error(`a circle: ${[...seen, room].join(" -> ")}`);
      return (floors[room] ?? []).flatMap((next) => [next, ...below(next, [...seen, room])]);
    };
    for (const room of Object.keys(floors)) expect(below(room)).not.toContain(room);
  });
});

/** A breach that is planted, and the start of what is said about it; undefined: it is none. */
const planted: readonly (readonly [path: string, text: string, said: string | undefined])[] = [
  // Arrows.
  [
    "src/http/x.ts",
    `import { openStorage } from "../storage/open.ts";`,
    "src/http/x.ts must not import src/storage/open.ts",
  ],
  [
    "src/model/x.ts",
    `import type { Clock } from "../ports/clock.ts";`,
    "src/model/x.ts must not import src/ports/clock.ts",
  ],
  [
    "src/graph/x.ts",
    `export * from "../engine/native.ts";`,
    "src/graph/x.ts must not import src/engine/native-engine.ts",
  ],
  [
    "src/service/x.ts",
    `const app = await import("../app.ts");`,
    "src/service/x.ts must not import src/app.ts",
  ],
  [
    "actors/run/x.ts",
    `import "../../src/stream/hub.ts";`,
    "actors/run/x.ts must not import src/stream/hub.ts",
  ],
  [
    "src/stream/x.ts",
    `import { createSystem } from '../../actors/system.ts';`,
    "src/stream/x.ts must not import actors/create-system.ts",
  ],
  [
    "src/demo/x.ts",
    `import { graph } from "../graph/graph.ts";`,
    "src/demo/x.ts must not import src/graph/graph-builder.ts",
  ],
  ["src/model/x.ts", `import { x } from "../../test/x.ts";`, "src/model/x.ts must not import test/x.ts"],
  ["src/utils/x.ts", ``, "src/utils/x.ts is in no room"],
  ["src/http/x.ts", `import type { Service } from "../service/service.ts";`, undefined],
  ["src/http/x.ts", `const text = 'from "../storage/open.ts"';`, undefined],
  ["src/http/x.ts", `// import { openStorage } from "../storage/open.ts";`, undefined],
  // Keepers.
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

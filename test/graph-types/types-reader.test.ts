import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { entryUrl } from "../../src/graph-loader/own-package-paths.ts";
import { TypesReader } from "../../src/graph-types/types-reader.ts";
import type { GraphTypesMessage, GraphTypesRequest } from "../../src/graph-types/worker-messages.ts";
import { startWorker } from "../../src/platform/worker-thread.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { Home } from "../config/project.ts";
import { writeProject } from "./project.ts";

// The compiler needs seconds, on a busy machine more.
vi.setConfig({ testTimeout: 300_000, expect: { poll: { timeout: 240_000 } } });

const home = new Home();
afterAll(() => home.remove());

/** A graph whose state has one key, of the type that `declarations` calls `Value`. */
const graphOf = (declarations: string) => `import { Annotation, StateGraph } from "@langchain/langgraph";
${declarations}
const State = Annotation.Root({ value: Annotation<Value> });
export const graph = new StateGraph(State).addNode("a", async () => ({})).addEdge("__start__", "a").compile();
`;

/** A type with which the compiler is busy for some twenty seconds. */
const LARGE = `type Bits<N extends unknown[]> = N extends [unknown, ...infer R] ? \`\${0 | 1}\${Bits<R>}\` : "";
type All = Bits<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]>;
type Value = { [K in All]: { [L in All]: K extends L ? 1 : 2 }[All] }[All];`;

interface Timer {
  readonly ms: number;
  readonly task: () => void;
}

/**
 * A reader with real workers, whose timers fire by hand. `heapMb`: the heap of the first worker.
 * @param atEnd when it is closed
 */
function open(
  { heapMb }: { readonly heapMb?: number } = {},
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
) {
  const timers = new Set<Timer>();
  const logged: object[] = [];
  const note = (message: string, fields?: object) => void logged.push({ message, ...fields });
  let spawned = 0;
  let begun = 0;
  const reader = new TypesReader({
    logger: { debug() {}, info: note, warn: note, error: note },
    scheduler: {
      soon: (task) => systemScheduler.soon(task),
      after(ms, task) {
        const timer = { ms, task };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
    },
    spawn() {
      spawned++;
      const worker = startWorker<GraphTypesRequest, GraphTypesMessage>(
        entryUrl("app/graph-types-worker-entry"),
        null,
        spawned === 1 ? heapMb : undefined,
      );
      const onMessage: typeof worker.onMessage = (take) =>
        worker.onMessage((message) => {
          if (message.t === "files") begun++;
          take(message);
        });
      return { ...worker, onMessage };
    },
  });
  atEnd(() => reader.close());
  return {
    reader,
    logged,
    spawned: () => spawned,
    /** How many graphs have files that were read, and types that were looked at. */
    begun: () => begun,
    fire() {
      const all = [...timers];
      timers.clear();
      for (const { task } of all) task();
      return all.map(({ ms }) => ms);
    },
  };
}

async function valueOf(reader: TypesReader, file: string): Promise<unknown> {
  const schemas = await reader.read({ file, name: "graph" });
  const { properties } = (schemas?.get("")?.state ?? {}) as { properties?: { value?: unknown } };
  return properties?.value;
}

/** The reader of tests that need none of their own: a worker takes seconds until it has read the compiler. */
const shared = open({}, afterAll);
/** What the shared reader has logged about a file. */
const loggedOf = (file: string) => shared.logged.filter((fields) => "file" in fields && fields.file === file);

describe("a graph without schemas", () => {
  test("has a type that takes too much time: the log names it once, and the next graph is read", async () => {
    const folder = writeProject(home, "busy", "TypeScript 5", {
      "a.ts": graphOf(LARGE),
      "b.ts": graphOf("type Value = string;"),
    });
    const { reader, fire, logged, begun } = open();
    const [file, other] = [join(folder, "a.ts"), join(folder, "b.ts")] as const;
    const first = reader.read({ file, name: "graph" });
    const second = valueOf(reader, other);
    await expect.poll(begun).toBe(1);
    expect(fire()).toEqual([30_000]);
    expect(await first).toBeNull();
    expect(await second).toEqual({ type: "string" });
    expect(await reader.read({ file, name: "graph" })).toBeNull();
    const message = "the schemas of a graph cannot be read from its types";
    expect(logged).toEqual([{ message, file, export: "graph", why: "it took more than 30 s" }]);
  });

  test("needs more memory than there is: it is tried again, a minute later", async () => {
    const folder = writeProject(home, "large", "TypeScript 5", { "a.ts": graphOf("type Value = string;") });
    const { reader, logged, fire, spawned } = open({ heapMb: 40 });
    const file = join(folder, "a.ts");
    expect(await valueOf(reader, file)).toBeUndefined();
    expect(await valueOf(reader, file)).toBeUndefined();
    expect(spawned()).toBe(1);
    expect(logged).toMatchObject([{ why: expect.stringMatching(/out of memory|memory limit/) }]);
    expect(fire()).toContain(60_000);
    expect(await valueOf(reader, file)).toEqual({ type: "string" });
  });

  test("has more types than a schema may have", async () => {
    const many = `type Deep<N extends string, D extends unknown[] = []> = D["length"] extends 13
  ? N : { left: Deep<\`\${N}l\`, [...D, 0]>; right: Deep<\`\${N}r\`, [...D, 0]> };
type Value = Deep<"">;`;
    const folder = writeProject(home, "many", "TypeScript 5", { "a.ts": graphOf(many) });
    const file = join(folder, "a.ts");
    expect(await shared.reader.read({ file, name: "graph" })).toBeNull();
    expect(loggedOf(file)).toMatchObject([{ why: "its types have more than 5000 parts" }]);
  });

  test("is asked for when the server closes", async () => {
    const folder = writeProject(home, "closed", "TypeScript 5", { "a.ts": graphOf("type Value = string;") });
    const { reader, logged, spawned } = open();
    const reading = reader.read({ file: join(folder, "a.ts"), name: "graph" });
    await expect.poll(spawned).toBe(1);
    await reader.close();
    expect(await reading).toBeNull();
    expect(logged).toEqual([]);
  });
});

test("a generic type that nests without end is open below some depth", async () => {
  const folder = writeProject(home, "nested", "TypeScript 5", {
    "a.ts": graphOf("interface Value<T = string> { item: T; next?: Value<T[]> }"),
  });
  const file = join(folder, "a.ts");
  expect(await valueOf(shared.reader, file)).toEqual({ $ref: "#/definitions/Value_string" });
  expect(loggedOf(file)).toEqual([]);
});

test("types whose names have no ASCII letter have names of their own", async () => {
  const folder = writeProject(home, "letters", "TypeScript 5", {
    "a.ts": graphOf(`interface 値 { a: string; next?: 値 }
interface 名 { b: string; next?: 名 }
interface Value { first: 値; second: 名 }`),
  });
  const schemas = await shared.reader.read({ file: join(folder, "a.ts"), name: "graph" });
  expect(schemas?.get("")?.state).toMatchObject({
    definitions: {
      Value: {
        properties: { first: { $ref: "#/definitions/Type" }, second: { $ref: "#/definitions/Type_2" } },
      },
      Type: { properties: { a: { type: "string" }, next: { $ref: "#/definitions/Type" } } },
      Type_2: { properties: { b: { type: "string" }, next: { $ref: "#/definitions/Type_2" } } },
    },
  });
});

// The last test of the shared reader, because it ends its worker.
describe("what was read", () => {
  test("is kept until a file of the project changes that it was read from, also one for types alone", async () => {
    const folder = writeProject(home, "kept", "TypeScript 5", {
      "a.ts": graphOf(`import type { Value } from "./value.ts";`),
      "b.ts": graphOf("type Value = boolean;"),
      "value.ts": "export type Value = string;",
    });
    const [file, other, types] = ["a.ts", "b.ts", "value.ts"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const { reader, fire, spawned } = shared;
    expect(await Promise.all([valueOf(reader, file), valueOf(reader, file), valueOf(reader, other)])).toEqual(
      [{ type: "string" }, { type: "string" }, { type: "boolean" }],
    );
    expect(spawned()).toBe(1);
    // The thread has nothing to do, and ends.
    expect(fire()).toEqual([10_000]);
    // The same content: nothing is read.
    writeFileSync(types, readFileSync(types));
    expect(await valueOf(reader, file)).toEqual({ type: "string" });
    expect(spawned()).toBe(1);
    writeFileSync(types, "export type Value = number;");
    expect(await valueOf(reader, other)).toEqual({ type: "boolean" });
    expect(spawned()).toBe(1);
    expect(await valueOf(reader, file)).toEqual({ type: "number" });
    expect(spawned()).toBe(2);
  });
});

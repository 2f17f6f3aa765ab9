import { getLogger as line1 } from "@langchain/langgraph-sdk/logging";
import { getLogger as line2 } from "langgraph-sdk-2/logging";
import { Annotation, StateGraph } from "@langchain/langgraph";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLogger } from "../../src/platform/log.ts";
import { registerSdkLogger } from "../../src/platform/sdk-logger.ts";
import { served } from "../langgraph/support.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { SimulatedClock } from "../simulation/clock.ts";

/** Loggers of both lines of the SDK, and what the server's log gets from them. */
function registered() {
  const written: string[] = [];
  const logger = createLogger({
    clock: new SimulatedClock(),
    level: "debug",
    write: (line) => written.push(line),
  });
  const release = registerSdkLogger(logger);
  onTestFinished(release);
  const lines = () =>
    written.splice(0).map((line) => {
      const { time: _, ...rest } = JSON.parse(line) as Record<string, unknown>;
      return rest;
    });
  return { logger, release, lines };
}

describe.each([
  ["1.15", line1],
  ["2.0", line2],
] as const)("getLogger of the SDK %s", (_, getLogger) => {
  test("gives a logger whose lines go to the server's log, with their fields", () => {
    const { lines } = registered();
    getLogger().info("found", { n: 1 }, { kind: "a" }).warn("odd", "x", 2);
    expect(lines()).toEqual([
      { level: "info", message: "found", n: 1, kind: "a" },
      { level: "warn", message: "odd", data: ["x", 2] },
    ]);
  });

  test("has all methods of its type, each with a level of the log", () => {
    const { lines } = registered();
    const logger = getLogger();
    const methods = [
      "error",
      "warn",
      "help",
      "data",
      "info",
      "debug",
      "prompt",
      "http",
      "verbose",
      "input",
      "silly",
    ] as const;
    for (const method of methods) expect(logger[method](method)).toBe(logger);
    expect(lines().map(({ level, message }) => `${String(message)}: ${String(level)}`)).toEqual([
      "error: error",
      "warn: warn",
      "help: info",
      "data: info",
      "info: info",
      "debug: debug",
      "prompt: info",
      "http: debug",
      "verbose: debug",
      "input: info",
      "silly: debug",
    ]);
  });

  test("takes errors and whole objects", () => {
    const { lines } = registered();
    getLogger().error(new Error("it broke"));
    getLogger().error("no luck", new TypeError("why"));
    getLogger().info({ message: "an object", level: "error", n: 1 });
    getLogger().info({ n: 2 });
    getLogger().info(undefined);
    expect(lines()).toMatchObject([
      { level: "error", message: "it broke", error: { name: "Error", message: "it broke" } },
      { level: "error", message: "no luck", error: { name: "TypeError" } },
      { level: "info", message: "an object", n: 1 },
      { level: "info", message: "", n: 2 },
      { level: "info", message: "undefined" },
    ]);
  });

  test("never throws, whatever it is given", () => {
    registered();
    const odd = {
      get message(): string {
        throw new Error("odd");
      },
    };
    expect(() => getLogger().info(odd)).not.toThrow();
    expect(() => getLogger().info(Object.create(null))).not.toThrow();
  });

  test("is there for a process once: the first server's until that closes, then the next one's", () => {
    const { release, lines } = registered();
    const written: string[] = [];
    const second = createLogger({ clock: new SimulatedClock(), write: (line) => written.push(line) });
    const releaseSecond = registerSdkLogger(second);
    getLogger().info("first");
    expect([lines().length, written.length]).toEqual([1, 0]);
    release();
    release();
    getLogger().info("second");
    expect([lines().length, written.length]).toEqual([0, 1]);
    releaseSecond();
    expect(() => getLogger()).toThrow("Logger not available");
  });
});

test("a line of a node of LangGraph.js says which node, run and thread it is from", async () => {
  const { logger, lines } = registered();
  const State = Annotation.Root({ a: Annotation<number> });
  const logging = new StateGraph(State)
    .addNode("work", async () => {
      line1().info("working", { n: 1 });
      return { a: 1 };
    })
    .addEdge("__start__", "work");
  const { url } = await serve({ langGraphs: await served({ logging }), logger });
  const thread_id = await newThread(url);
  await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "logging", input: { a: 0 } });
  const [run] = (await (await fetch(`${url}/threads/${thread_id}/runs`)).json()) as { run_id: string }[];
  expect(lines().filter(({ message }) => message === "working")).toEqual([
    { level: "info", message: "working", n: 1, node: "work", thread_id, run_id: run?.run_id },
  ]);
});

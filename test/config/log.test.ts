import { describe, expect, test } from "vitest";
import { quietAfterStop, createLogger, type LogOptions } from "../../src/platform/log.ts";
import { SimulatedClock } from "../simulation/clock.ts";

function log(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const clock = new SimulatedClock(Date.UTC(2026, 10, 20, 12, 0, 55, 475));
  return { lines, logger: createLogger({ clock, write: (line) => void lines.push(line), ...options }) };
}

describe("JSON lines", () => {
  test("one for each message, with its fields", () => {
    const { lines, logger } = log();
    logger.info("ready", { port: 2024, graphs: ["a"] });
    expect(lines).toEqual([
      '{"time":"2026-11-20T12:00:55.475Z","level":"info","message":"ready","port":2024,"graphs":["a"]}\n',
    ]);
  });

  test("below the level nothing is written", () => {
    const { lines, logger } = log({ level: "warn" });
    logger.debug("a");
    logger.info("b");
    logger.warn("c");
    logger.error("d");
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(["c", "d"]);
  });

  test("what serves clients has no faults to tell once the server has stopped", () => {
    const { lines, logger } = log();
    let hasStopped = false;
    const calm = quietAfterStop(logger, () => hasStopped);
    calm.error("a");
    hasStopped = true;
    calm.error("b", { n: 1 });
    calm.warn("c");
    const told = lines.map((line) => JSON.parse(line) as { level: string; message: string; n?: number });
    expect(told.map(({ level, message, n }) => [level, message, n])).toEqual([
      ["error", "a", undefined],
      ["info", "b", 1],
      ["info", "c", undefined],
    ]);
  });

  test("a field cannot overwrite what the line says of itself, nor end it", () => {
    const { lines, logger } = log();
    logger.warn("a\nb", { level: "info", message: "x", time: 0, text: '"}\n{"level":"error"' });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.trimEnd()).not.toContain("\n");
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "warn", message: "a\nb" });
  });

  test("errors with their stack and cause, big numbers, and what contains itself", () => {
    const { lines, logger } = log();
    const circle: Record<string, unknown> = { n: 1n };
    circle["self"] = circle;
    const shared = { a: 1 };
    logger.error("failed", {
      cause: new TypeError("no", { cause: new Error("why") }),
      circle,
      twice: [shared, shared],
    });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      cause: { name: "TypeError", message: "no", stack: expect.any(String), cause: { message: "why" } },
      circle: { n: "1", self: "[circular]" },
      twice: [{ a: 1 }, { a: 1 }],
    });
  });

  test("never throws, whatever it is given", () => {
    const { lines, logger } = log();
    const hostile = Object.defineProperty({}, "x", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    expect(() => logger.info("a", { hostile })).not.toThrow();
    const broken = log({
      write: () => {
        throw new Error("disk full");
      },
    });
    expect(() => broken.logger.info("a")).not.toThrow();
    logger.info("b");
    expect(lines.at(-1)).toContain('"b"');
  });
});

describe("lines for people", () => {
  test("time, level, message and fields", () => {
    const { lines, logger } = log({ pretty: true });
    logger.info("ready", { port: 2024, at: "http://127.0.0.1:1", why: "two words" });
    // oxlint-disable-next-line no-control-regex -- colours are what is taken off
    const plain = lines.join("").replaceAll(/\u001b\[\d+m/g, "");
    expect(plain).toBe('12:00:55.475 info  ready port=2024 at=http://127.0.0.1:1 why="two words"\n');
  });

  test("errors and texts of several lines stand below their message, line by line", () => {
    const { lines, logger } = log({ pretty: true });
    const cause = new TypeError("why");
    cause.stack = "TypeError: why\n    at b (b.ts:2:2)";
    const error = new Error("no", { cause });
    error.stack = "Error: no\n    at a (a.ts:1:1)";
    logger.error("failed", { why: "graphs.a:\n1 | x\u001b[2J = ;\n", error, graph: "a" });
    // oxlint-disable-next-line no-control-regex -- colours are what is taken off
    const plain = lines.join("").replaceAll(/\u001b\[\d+m/g, "");
    expect(plain).toBe(
      [
        "12:00:55.475 error failed graph=a",
        "  why:",
        "    graphs.a:",
        "    1 | x\\u001b[2J = ;",
        "  error:",
        "    Error: no",
        "        at a (a.ts:1:1)",
        "    caused by TypeError: why",
        "        at b (b.ts:2:2)",
        "",
      ].join("\n"),
    );
  });

  test("control characters do not reach the terminal", () => {
    const { lines, logger } = log({ pretty: true });
    logger.info("a\u001b[2Jb\r\nc\u202e", { "x\u001b]0;": "d\u001b[1me" });
    const [line = ""] = lines;
    // oxlint-disable-next-line no-control-regex -- our own colours are meant to be there
    expect(line.trimEnd().replaceAll(/\u001b\[(2|32|0)m/g, "")).not.toMatch(/[\p{Cc}\p{Cf}]./u);
  });
});

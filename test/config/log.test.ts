import { describe, expect, test } from "vitest";
import { quietAfterStop, createLogger, type LogOptions } from "../../src/platform/log.ts";
import { applyStyleFor, leaveUnstyled } from "../../src/platform/terminal.ts";
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

  test("every line has the common fields", () => {
    const { lines, logger } = log({ common: { shard: 1 } });
    logger.info("a");
    logger.info("b", { port: 2024 });
    expect(lines.map((line) => line.replace(/^.*"message":/, ""))).toEqual([
      '"a","shard":1}\n',
      '"b","shard":1,"port":2024}\n',
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

  test("an error that contains itself, as its cause or below it", () => {
    const { lines, logger } = log();
    const own = new Error("own");
    own.cause = own;
    const below = new Error("below");
    below.cause = { request: { error: below } };
    logger.error("failed", { own, below });
    expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({
      own: { message: "own", cause: "[circular]" },
      below: { message: "below", cause: { request: { error: "[circular]" } } },
    });
  });

  test("an error with many causes: the first of them", () => {
    const { lines, logger } = log();
    let error = new Error("0");
    for (let n = 1; n <= 1_000; n++) error = new Error(String(n), { cause: error });
    logger.error("failed", { error });
    const messages: unknown[] = [];
    let one: unknown = (JSON.parse(lines[0] ?? "{}") as { error?: unknown }).error;
    for (; typeof one === "object" && one !== null; one = (one as { cause?: unknown }).cause)
      messages.push((one as Error).message);
    expect(messages).toEqual(["1000", "999", "998", "997", "996"]);
    expect(one).toBe("[more causes]");
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
  const at = new Date(Date.UTC(2026, 10, 20, 12, 0, 55));
  /** The clock's time in the time zone of the test. */
  const time = `${at.toTimeString().slice(0, 8)}.475`;

  test("time, level, message and fields", () => {
    const { lines, logger } = log({ text: leaveUnstyled });
    logger.info("ready", { port: 2024, at: "http://127.0.0.1:1", why: "two words" });
    expect(lines).toEqual([`${time} info  ready port=2024 at=http://127.0.0.1:1 why="two words"\n`]);
  });

  test("ids of threads and runs are shortened to what tells them apart; other ids stay whole", () => {
    const { lines, logger } = log({ text: leaveUnstyled });
    const id = "019aa1b2-0000-7000-8000-0123456789ab";
    logger.warn("a node failed", { run_id: id, thread_id: id, thread: id, run: "none", delivery: id });
    expect(lines).toEqual([
      `${time} warn  a node failed run_id=…456789ab thread_id=…456789ab thread=…456789ab run=none delivery=${id}\n`,
    ]);
  });

  test("errors and texts of several lines stand below their message, line by line", () => {
    const { lines, logger } = log({ text: leaveUnstyled });
    const cause = new TypeError("why");
    cause.stack = "TypeError: why\n    at b (b.ts:2:2)";
    const error = new Error("no", { cause });
    error.stack = "Error: no\n    at a (file:///p/a.mjs?tsx-namespace=heddle-0f:1:1)";
    logger.error("failed", { why: "graphs.a:\n1 | x\u001b[2J = ;\n", error, graph: "a" });
    expect(lines.join("")).toBe(
      [
        `${time} error failed graph=a`,
        "  why:",
        "    graphs.a:",
        String.raw`    1 | x\u001b[2J = ;`,
        "  error:",
        "    Error: no",
        "        at a (/p/a.mjs:1:1)",
        "    caused by TypeError: why",
        "        at b (b.ts:2:2)",
        "",
      ].join("\n"),
    );
  });

  test("control characters do not reach the terminal", () => {
    const { lines, logger } = log({ text: leaveUnstyled });
    logger.info("a\u001b[2Jb\r\nc\u202e\u009b", { "x\u001b]0;": "d\u001b[1me", y: ["\u0007\u2066"] });
    logger.error("f", { error: new Error("\u001b[2J\u0007\n\u009b") });
    expect(lines.join("").replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(lines[0]).toContain(String.raw`a\u001b[2Jb\r\nc\u{202e}\u{9b} x\u001b]0;=`);
  });

  test("the level has its colour, and frames of packages stand back", () => {
    const { lines, logger } = log({ text: applyStyleFor({ isTTY: true }, {}) });
    const error = new Error("no");
    error.stack = "Error: no\n    at a (a.ts:1:1)\n    at b (/p/node_modules/b.js:1:1)";
    logger.warn("slow", { error });
    expect(lines).toEqual([
      `\u001b[2m${time}\u001b[22m \u001b[33mwarn \u001b[39m slow\n` +
        "  \u001b[2merror:\u001b[22m\n    Error: no\n        at a (a.ts:1:1)\n" +
        "    \u001b[2m    at b (/p/node_modules/b.js:1:1)\u001b[22m\n",
    ]);
  });
});

describe("colours", () => {
  test.each<[string, boolean, Record<string, string>, boolean]>([
    ["on a terminal", true, {}, true],
    ["elsewhere", false, {}, false],
    ["with NO_COLOR", true, { NO_COLOR: "1" }, false],
    ["with an empty NO_COLOR", true, { NO_COLOR: "" }, true],
    ["on a terminal without any", true, { TERM: "dumb" }, false],
    ["with FORCE_COLOR", false, { FORCE_COLOR: "1" }, true],
    ["with an empty FORCE_COLOR", false, { FORCE_COLOR: "" }, true],
    ["with FORCE_COLOR and NO_COLOR", false, { FORCE_COLOR: "1", NO_COLOR: "1" }, true],
    ["with FORCE_COLOR=0", true, { FORCE_COLOR: "0" }, false],
  ])("%s", (_, isTTY, env, isColoured) => {
    expect(applyStyleFor({ isTTY }, env)("red", "x")).toBe(isColoured ? "\u001b[31mx\u001b[39m" : "x");
  });
});

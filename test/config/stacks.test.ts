import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { post } from "../e2e/support/wire.ts";
import { build, Running } from "./process.ts";
import { Home } from "./project.ts";

const home = new Home({ isInstalled: true });
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

const BAD = `
  import { graph, list } from "heddle";
  export default graph({
    state: { said: list() },
    nodes: { bad: async () => { throw new TypeError("kaboom"); } },
    edges: { start: "bad" },
  });`;

test.each([
  ["dev", undefined, [], true],
  ["dev", false, [], false],
  ["start", undefined, [], false],
  ["start", true, [], true],
  ["start", undefined, ["--workers", "1"], false],
  ["start", true, ["--workers", "1"], true],
] as const)("heddle %s, stacks %s, %s: are clients told where? %s", async (command, stacks, flags, told) => {
  const name = `${command}-${stacks}-${flags.length}`;
  const streams = stacks === undefined ? {} : { stacks };
  const config = home.project(name, {
    "bad.mjs": BAD,
    "heddle.json": { graphs: { bad: "./bad.mjs" }, streams },
  });
  const { url } = await Running.spawn(command, ["--config", config, "--data", home.data(name), ...flags]);
  const run = { assistant_id: "bad", input: {}, stream_mode: ["logs", "debug"] };
  const sent = await (await post(`${url}/runs/stream`, run)).text();
  expect(sent).toContain("TypeError: kaboom");
  expect(sent.includes("bad.mjs")).toBe(told);
});

test.each([[[]], [["--workers", "1"]]])(
  "what Node takes for CommonJS is named by its file, not by its compiled text, %j",
  async (flags) => {
    const name = `commonjs-${flags.length}`;
    const config = home.project(name, {
      "package.json": {},
      "bad.ts": BAD.replace("{ throw", '{ setTimeout(() => { throw new RangeError("late"); }, 1); throw'),
      "heddle.json": { graphs: { bad: "./bad.ts" }, streams: { stacks: true } },
    });
    const server = await Running.spawn("start", ["--config", config, "--data", home.data(name), ...flags]);
    const run = { assistant_id: "bad", input: {}, stream_mode: "logs" };
    const sent = await (await post(`${server.url}/runs/stream`, run)).text();
    await server.printed("an error that nobody caught");
    for (const told of [sent, server.output]) {
      // Older versions of Node do not report the line; if they do, it is the line in the source file.
      expect(told).toMatch(new RegExp(`${name}/bad\\.ts(:5:\\d+)?\\)`));
      expect(told).not.toMatch(/bad\.ts:(?!5:)/);
      expect(told).not.toContain("data:text/javascript");
    }
    expect(server.output).toContain("RangeError");
  },
);

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, heddle, Running } from "./process.ts";
import { connect, Home } from "./project.ts";

const home = new Home({ isInstalled: true });
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

const cli = join(import.meta.dirname, "../../dist/src/cli.js");
/** `script` of util-linux runs a program on a terminal. */
const hasTerminal = spawnSync("sh", ["-c", "script -qfc true /dev/null"]).status === 0;

const config = home.project("terminal", {
  "fail.mjs": `import { graph, list } from "heddle";
    export default graph({
      state: { said: list() },
      nodes: {
        write: async (_, ctx) => {
          ctx.log.info("\\u001b]0;title\\u0007 begins");
          throw new Error("\\u001b[2J no");
        },
      },
      edges: { start: "write" },
    });`,
  "heddle.json": { graphs: { fail: "./fail.mjs:default" } },
});

/**
 * Starts a server on a terminal, and runs a node that fails. Returns the terminal's output, and the ids of the run and
 * its thread.
 */
async function onTerminal(options: string, env: Record<string, string> = {}) {
  const command = `exec '${process.execPath}' '${cli}' ${options} --port 0 --config '${config}' --data '${home.data("terminal")}'`;
  const server = await Running.script(`exec script -qfc "${command}" /dev/null`, { TERM: "xterm", ...env });
  const client = connect(server);
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "fail", { input: {} });
  await client.runs.join(thread_id, run_id).catch(() => undefined);
  await server.printed("a node failed");
  await server.printed("fail.mjs");
  return { server, thread_id, run_id };
}

/** Takes off colours, and the line of progress that a slow start shows. */
const uncoloured = (text: string) =>
  // oxlint-disable-next-line no-control-regex
  text.replaceAll(/\u001b\[\d+m|\r\u001b\[2K(?:opening the database[^\r]*)?/g, "");

describe.runIf(hasTerminal)("on a terminal", () => {
  test("`heddle dev` greets with a banner, and logs coloured lines for people", async () => {
    const { server, thread_id, run_id } = await onTerminal("dev");
    expect(server.output).toContain("\u001b[36m");
    const text = uncoloured(server.output).replaceAll("\r\n", "\n");
    expect(text).toMatch(/^Heddle \S+ listens on http:\/\/127\.0\.0\.1:\d+\n\n {2}Dashboard +http:\S+\/\n/m);
    for (const name of ["API reference", "Inspector", "LangGraph Studio", "Agent Chat", "Graphs", "Data"])
      expect(text).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
    expect(text).not.toContain(" ready ");
    const ids = `run_id=…${run_id.slice(-8)} thread_id=…${thread_id.slice(-8)}`;
    expect(text).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\d\\.\\d{3} warn  a node failed .*${ids}`, "m"));
    expect(text).toMatch(/^ {2}error:\n {4}Error: .* no\n {8}at .*fail\.mjs/m);
    // Control sequences that the node has logged have no effect.
    expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    expect(await server.stop()).toBe(0);
  });

  test("`heddle start` names no tools that it does not let in; with NO_COLOR nothing is coloured", async () => {
    const { server } = await onTerminal("start", { NO_COLOR: "1" });
    expect(server.output).toMatch(/^ {2}Dashboard /m);
    expect(server.output).not.toContain("Agent Chat");
    expect(server.output).not.toContain("\u001b");
  });

  test("`--log json` writes lines of JSON, and no banner", async () => {
    const { server } = await onTerminal("start --log json");
    const lines = server.output.trimEnd().split("\r\n");
    const [listens, ...others] = lines.filter((line) => !line.startsWith("{"));
    expect([listens, others]).toEqual([expect.stringMatching(/^Heddle \S+ listens on http:\S+$/), []]);
    const failed = lines.find((line) => line.includes("a node failed")) ?? "";
    expect(JSON.parse(failed)).toMatchObject({ level: "warn", graph: "fail" });
  });
});

test("elsewhere `--log text` writes the same for people, without colours", async () => {
  const args = ["--config", config, "--data", home.data("elsewhere")];
  const server = await Running.start([...args, "--log", "text"]);
  expect(server.output).toMatch(/^ {2}API reference +http:/m);
  expect(server.output).not.toContain("\u001b");
});

test("elsewhere FORCE_COLOR colours it", async () => {
  const args = ["--config", config, "--data", home.data("forced")];
  const server = await Running.start(args, { HEDDLE_LOG_FORMAT: "text", FORCE_COLOR: "1" });
  expect(server.output).toContain("\u001b[36m");
});

test("`heddle check` takes no --log", () => {
  expect(heddle(["check", "--log", "text"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("heddle check takes no --log"),
  });
});

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { build, Running } from "./process.ts";
import { connect, Home } from "./project.ts";

const home = new Home({ isInstalled: true });
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

/** `key` is the state key of the draft, `node` the node that asks. */
const graphOf = (key: string, node: string) => `
  import { graph, list } from "heddle";
  export default graph({
    state: { ${key}: list(), log: list() },
    nodes: {
      write: async () => ({ ${key}: ["a draft"], log: ["written"] }),
      ${node}: async (state, ctx) => ({ log: [\`\${state.${key}?.[0]}: \${await ctx.interrupt("ok?")}\`] }),
    },
    edges: { start: "write", write: "${node}" },
  });`;

test("a node renamed and a key changed under an open question, over kill -9: told, nothing lost, mendable", async () => {
  const config = home.project("renamed", {
    "a.mjs": graphOf("draft", "review"),
    "heddle.json": { graphs: { a: "./a.mjs" } },
  });
  const data = ["--config", config, "--data", join(dirname(config), "data")];
  const first = await Running.start(data);
  const { thread_id } = await connect(first).threads.create();
  const paused = (await connect(first).runs.wait(thread_id, "a", { input: {} })) as {
    __interrupt__: readonly { id: string; value: string }[];
  };
  expect(paused.__interrupt__).toMatchObject([{ value: "ok?" }]);
  await first.stop("SIGKILL");

  writeFileSync(join(dirname(config), "a.mjs"), graphOf("text", "approve"));
  const second = await Running.start(data);
  const { threads, runs } = connect(second);
  await expect(runs.wait(thread_id, "a", { command: { resume: "yes" } })).rejects.toThrow(
    /GraphChangedError: .*it waits at the node "review"/,
  );
  const asked = async () => {
    const { values, next, tasks } = await threads.getState(thread_id);
    return { values, next, interrupts: tasks.flatMap(({ interrupts }) => interrupts) };
  };
  const kept = {
    values: { draft: ["a draft"], log: ["written"] },
    next: ["review"],
    interrupts: [{ id: paused.__interrupt__[0]?.id }],
  };
  expect(await asked()).toMatchObject(kept);
  await second.stop("SIGKILL");

  const third = await Running.start(data);
  const client = connect(third);
  expect(await client.threads.getState(thread_id)).toMatchObject({ values: kept.values, next: kept.next });
  // Repaired by a command: the renamed key gets the draft, and the run continues at the renamed node.
  const mended = await client.runs.wait(thread_id, "a", {
    command: { goto: "approve", update: { text: ["a draft"] } },
  });
  expect(mended).toMatchObject({ __interrupt__: [{ value: "ok?" }] });
  expect(await client.runs.wait(thread_id, "a", { command: { resume: "yes" } })).toMatchObject({
    log: ["written", "a draft: yes"],
  });
});

import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { latches, unlessAborted } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { get, post, postJson } from "./support/wire.ts";

/** Three steps that record their input; the second one waits, asks or fails on request. */
function stepping() {
  const opened = latches();
  const reached = latches();
  let calls = 0;
  const steps = graph({
    state: { log: list<string>(), say: value("nothing"), mode: value("go") },
    nodes: {
      one: async ({ say }) => ({ log: [`one ${say}`] }),
      two: async ({ say, mode }, ctx) => {
        if (mode === "wait") {
          reached(say).pass();
          await unlessAborted(opened(say).passed, ctx.signal);
        }
        if (mode === "ask") return { log: [`two ${String(await ctx.interrupt("what?"))}`] };
        if (mode === "fail" && ++calls % 2 === 0) throw new TypeError("kaboom");
        return { log: [`two ${say}`] };
      },
      three: async ({ log }) => ({ log: [`three after ${log.length}`] }),
    },
    edges: { start: "one", one: "two", two: "three" },
  });
  return { steps, waits: (say: string) => reached(say).passed, open: (say: string) => opened(say).pass() };
}

const whole = (say: string) => [`one ${say}`, `two ${say}`, "three after 2"];

describe.each(lines)("runs from an older checkpoint over %s", (_, connect) => {
  const start = async () => {
    const gate = stepping();
    const { url } = await serve({ graphs: { steps: gate.steps } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const wait = (options: Parameters<typeof client.runs.wait>[2]) =>
      client.runs.wait(thread_id, "steps", options);
    const state = () => client.threads.getState<{ log: string[]; say: string }>(thread_id);
    const log = async () => (await state()).values.log;
    /** Runs to the end and returns the checkpoints, by their next nodes. */
    const history = async (input: Record<string, unknown>) => {
      const at: Record<string, string> = {};
      for await (const { event, data } of client.runs.stream(thread_id, "steps", {
        input,
        streamMode: "checkpoints",
      })) {
        if (event !== "checkpoints") continue;
        const { next, checkpoint } = data as unknown as {
          next: string[];
          checkpoint: { checkpoint_id: string };
        };
        at[next.join() || "end"] = checkpoint.checkpoint_id;
      }
      return at;
    };
    return { ...gate, url, client, thread_id, wait, state, log, history };
  };

  test("input null runs on from there, on a branch whose parent it is; the other one is left as it was", async () => {
    const { client, thread_id, history, log, state, wait } = await start();
    const at = await history({ say: "tea" });
    expect(await log()).toEqual(whole("tea"));
    const values = await wait({ input: null, checkpointId: at["two"] as string });
    expect(values).toMatchObject({ log: whole("tea") });
    const forked = await state();
    expect(forked.checkpoint.checkpoint_id).not.toBe(at["end"]);
    expect(forked.next).toEqual([]);
    const [run] = await client.runs.list(thread_id);
    expect(run).toMatchObject({ kwargs: { config: { configurable: { checkpoint_id: at["two"] } } } });
    // Repeats the last step of the first branch from its own checkpoint.
    await wait({ input: null, checkpointId: at["three"] as string });
    const [end, fork] = await client.threads.getHistory(thread_id, { limit: 2 });
    expect(end?.metadata).toMatchObject({ source: "loop" });
    expect(fork).toMatchObject({
      metadata: { source: "fork" },
      next: ["three"],
      parent_checkpoint: { checkpoint_id: at["three"] },
    });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
  });

  test("an input is applied to the state there, not to the latest one", async () => {
    const { history, log, wait } = await start();
    const at = await history({ say: "tea" });
    await wait({ input: { say: "milk" } });
    expect(await log()).toHaveLength(6);
    const checkpoint = {
      checkpoint_id: at["two"] as string,
      checkpoint_ns: "",
      checkpoint_map: null,
    } as never;
    expect(await wait({ input: { say: "wine" }, checkpoint })).toMatchObject({
      log: ["one tea", "one wine", "two wine", "three after 3"],
    });
    // The thread continues from the new branch.
    expect(await wait({ input: { say: "ale" } })).toMatchObject({ log: { length: 7 } });
  });

  test("the latest checkpoint, named, is the same as none named", async () => {
    const { history, wait } = await start();
    const at = await history({ say: "tea" });
    const config = { configurable: { checkpoint_id: at["end"] } };
    expect(await wait({ input: { say: "milk" }, config })).toMatchObject({
      log: [...whole("tea"), "one milk", "two milk", "three after 5"],
    });
  });

  test("the place is the run's alone: neither the thread's config nor later runs have it", async () => {
    const { client, thread_id, history, wait } = await start();
    const at = await history({ say: "tea" });
    const config = { configurable: { checkpoint_id: at["two"], mine: 1 } };
    await wait({ input: null, config });
    expect((await client.threads.get(thread_id)).config).toEqual({ configurable: { mine: 1 } });
    expect(await wait({ input: { say: "milk" } })).toMatchObject({ log: { length: 6 } });
    const [later] = await client.runs.list(thread_id);
    expect(later).toMatchObject({ kwargs: { config: { configurable: { checkpoint_id: null } } } });
    expect((await client.threads.getState(thread_id)).metadata).not.toHaveProperty("checkpoint_id");
  });

  test("a question that was answered is asked again, and answered otherwise", async () => {
    const { client, thread_id, history, wait, state } = await start();
    const at = await history({ say: "tea", mode: "ask" });
    expect(await wait({ command: { resume: "yes" } })).toMatchObject({
      log: ["one tea", "two yes", "three after 2"],
    });
    const again = await wait({ input: null, checkpointId: at["two"] as string });
    expect(again).toMatchObject({ log: ["one tea"], __interrupt__: [{ value: "what?" }] });
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "interrupted",
      values: { log: ["one tea"] },
    });
    expect((await state()).next).toEqual(["two"]);
    const [paused] = await client.runs.list(thread_id);
    expect(await wait({ command: { resume: "no" } })).toMatchObject({
      log: ["one tea", "two no", "three after 2"],
    });
    // The results of the forked run are available later, too.
    expect(await client.runs.join(thread_id, paused?.run_id ?? "")).toMatchObject({ log: ["one tea"] });
  });

  test.skipIf(differs("answers where nothing waits"))(
    "an answer that nobody waits for there fails the run, and the thread stays where it was",
    async () => {
      const { client, thread_id, history, wait, log, state } = await start();
      const at = await history({ say: "tea" });
      const before = await state();
      const command = { resume: "yes" };
      const answer = await wait({ command, checkpointId: at["two"] as string, raiseError: false });
      expect(answer).toMatchObject({ __error__: { error: "InvalidResumeError" } });
      expect(await log()).toEqual(whole("tea"));
      expect(await state()).toEqual(before);
      expect(await wait({ input: { say: "milk" } })).toMatchObject({ log: { length: 6 } });
      expect((await client.runs.list(thread_id)).map(({ status }) => status)).toEqual([
        "success",
        "error",
        "success",
      ]);
    },
  );

  test("a failure leaves the thread at the place where it failed", async () => {
    const { client, thread_id, history, wait, state } = await start();
    const at = await history({ say: "tea", mode: "fail" });
    const failed = await wait({ input: null, checkpointId: at["two"] as string, raiseError: false });
    expect(failed).toEqual({ __error__: { error: "TypeError", message: "kaboom" } });
    expect(await state()).toMatchObject({ values: { log: ["one tea"] }, next: ["two"] });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "error" });
    expect(await wait({ input: null })).toMatchObject({ log: whole("tea") });
  });

  test.each(["interrupt", "rollback"] as const)("stopped by %s", async (action) => {
    const { client, thread_id, history, wait, waits, state } = await start();
    const at = await history({ say: "tea" });
    const before = await state();
    const run = await client.runs.create(thread_id, "steps", {
      input: { say: "milk", mode: "wait" },
      checkpointId: at["two"] as string,
    });
    await waits("milk");
    await client.runs.cancel(thread_id, run.run_id, true, action);
    if (action === "rollback") expect(await state()).toEqual(before);
    else expect(await state()).toMatchObject({ values: { log: ["one tea", "one milk"] }, next: ["two"] });
    const log = (await state()).values.log.length;
    expect(await wait({ input: { say: "ale", mode: "go" } })).toMatchObject({ log: { length: log + 3 } });
  });

  test("a queued one starts from its own place, whatever the run before has done", async () => {
    const { client, thread_id, history, waits, open } = await start();
    const at = await history({ say: "tea" });
    await client.runs.create(thread_id, "steps", { input: { say: "milk", mode: "wait" } });
    await waits("milk");
    const queued = await client.runs.create(thread_id, "steps", {
      input: { say: "ale" },
      checkpointId: at["end"] as string,
      multitaskStrategy: "enqueue",
    });
    open("milk");
    expect(await client.runs.join(thread_id, queued.run_id)).toMatchObject({
      log: [...whole("tea"), "one ale", "two ale", "three after 5"],
    });
  });
});

test("its stream begins with the state at its place", async () => {
  const { steps } = stepping();
  const { url } = await serve({ graphs: { steps } });
  const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
  const runs = `${url}/threads/${thread_id}/runs`;
  const run = { assistant_id: "steps", interrupt_before: ["two"] };
  await postJson(`${runs}/wait`, { ...run, input: { say: "tea" } });
  const { checkpoint } = (await (await get(`${url}/threads/${thread_id}/state`)).json()) as {
    checkpoint: object;
  };
  await postJson(`${runs}/wait`, { assistant_id: "steps", input: null });
  const text = await (
    await post(`${runs}/stream`, {
      assistant_id: "steps",
      input: null,
      checkpoint,
      stream_mode: ["updates", "values"],
    })
  ).text();
  const shown = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => [
    event,
    JSON.parse(data ?? "") as unknown,
  ]);
  const values = { say: "tea", mode: "go" };
  expect(shown.slice(1)).toEqual([
    ["values", { ...values, log: ["one tea"] }],
    ["updates", { two: { log: ["two tea"] } }],
    ["values", { ...values, log: ["one tea", "two tea"] }],
    ["updates", { three: { log: ["three after 2"] } }],
    ["values", { ...values, log: whole("tea") }],
  ]);
});

test("it goes on from its place, and from nowhere else, after a restart", async () => {
  const data = await directory();
  const first = stepping();
  const before = await serve({ data, graphs: { steps: first.steps } });
  const { thread_id } = await postJson<{ thread_id: string }>(`${before.url}/threads`);
  const runs = `/threads/${thread_id}/runs`;
  const run = { assistant_id: "steps" };
  await postJson(`${before.url}${runs}/wait`, { ...run, input: { say: "tea" }, interrupt_before: ["two"] });
  const state = await get(`${before.url}/threads/${thread_id}/state`);
  const { checkpoint_id } = (await state.json()) as { checkpoint_id: string };
  await postJson(`${before.url}${runs}/wait`, { ...run, input: null });
  const { run_id } = await postJson<{ run_id: string }>(`${before.url}${runs}`, {
    ...run,
    input: { say: "milk", mode: "wait" },
    checkpoint_id: checkpoint_id.toUpperCase(),
  });
  await first.waits("milk");
  await before.close(0);

  const second = stepping();
  second.open("milk");
  const after = await serve({ data, graphs: { steps: second.steps } });
  const joined = await get(`${after.url}${runs}/${run_id}/join`);
  expect(await joined.json()).toMatchObject({ log: ["one tea", "one milk", "two milk", "three after 3"] });
});

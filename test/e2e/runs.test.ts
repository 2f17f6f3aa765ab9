import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { aTime, aUuid, get, newThread, NOBODY, openPost, post, postJson } from "./support/wire.ts";

/** A node that stores its input. */
const told = graph({
  state: { config: value<unknown>(), context: value<unknown>(), place: value<unknown>() },
  nodes: {
    tell: async (_, { config, context, runId, threadId, attempt }) => ({
      config: config["configurable"],
      context,
      place: { runId, threadId, attempt },
    }),
  },
  edges: { start: "tell" },
});

const endless = graph({
  state: { log: list<string>() },
  nodes: { again: async () => ({ log: ["again"] }) },
  edges: { start: "again", again: "again" },
});

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

describe.each(lines)("runs over %s", (_, connect) => {
  const start = async () => {
    const held = gated();
    const { url } = await serve({ graphs: { told, endless, fails, held: held.held } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    return { client, url, thread_id, ...held };
  };

  test("a created run has every field of a run", async () => {
    const { client, thread_id, open } = await start();
    const run = await client.runs.create(thread_id, "held", { input: { name: "a" }, metadata: { mine: 1 } });
    const { run_id, assistant_id } = run;
    const metadata = { created_by: "system", graph_id: "held", assistant_id, mine: 1 };
    expect(run).toEqual({
      run_id: aUuid,
      thread_id,
      assistant_id: aUuid,
      created_at: aTime,
      updated_at: aTime,
      metadata,
      status: "pending",
      multitask_strategy: "reject",
      kwargs: {
        input: { name: "a" },
        command: null,
        config: {
          configurable: {
            run_id,
            thread_id,
            assistant_id,
            graph_id: "held",
            user_id: "",
            checkpoint_id: null,
          },
          metadata,
        },
        context: {},
        webhook: null,
        temporary: false,
        stream_mode: ["values"],
        feedback_keys: null,
        interrupt_before: null,
        interrupt_after: null,
        subgraphs: false,
        resumable: false,
        durability: "async",
      },
    });
    open("a");
    await client.runs.join(thread_id, run_id);
  });

  test("what was asked for is found again in kwargs", async () => {
    const { client, thread_id } = await start();
    const run = await client.runs.create(thread_id, "told", {
      input: null,
      streamMode: ["updates", "custom"],
      streamSubgraphs: true,
      streamResumable: true,
      interruptBefore: ["tell"],
      interruptAfter: "*",
      multitaskStrategy: "enqueue",
      durability: "sync",
      config: { tags: ["t"], recursion_limit: 7, configurable: { mine: true } },
      context: { who: "me" },
    });
    expect(run).toMatchObject({
      multitask_strategy: "enqueue",
      kwargs: {
        input: null,
        stream_mode: ["updates", "custom"],
        subgraphs: true,
        resumable: true,
        interrupt_before: ["tell"],
        interrupt_after: "*",
        durability: "sync",
        config: { tags: ["t"], recursion_limit: 7, configurable: { mine: true, user_id: "" } },
        context: { who: "me" },
      },
    });
    await client.runs.join(thread_id, run.run_id);
  });

  test("if_not_exists create makes the thread with the run; without it, 404", async () => {
    const { client, open } = await start();
    open("a");
    const thread_id = "01a1f8d4-0000-7000-8000-00000000000a";
    const options = { input: { name: "a" }, metadata: { mine: 1 } };
    const reject = client.runs.wait(thread_id, "held", { ...options, ifNotExists: "reject" });
    await expect(reject).rejects.toMatchObject({ status: 404 });
    await expect(client.threads.get(thread_id)).rejects.toMatchObject({ status: 404 });
    const values = { name: "a", log: ["a began", "a ended"] };
    const create = { ...options, ifNotExists: "create" } as const;
    expect(await client.runs.wait(thread_id, "held", create)).toEqual(values);
    const [run] = await client.runs.list(thread_id);
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "idle",
      metadata: { mine: 1, graph_id: "held", assistant_id: run?.assistant_id },
      values,
    });
    expect(run).toMatchObject({ kwargs: { temporary: false } });
    // The thread exists by now, and is used as it is.
    const again = await client.runs.wait(thread_id, "held", { ...create, metadata: { mine: 2 } });
    expect(again).toMatchObject({ log: { length: 4 } });
    expect(await client.threads.get(thread_id)).toMatchObject({ metadata: { mine: 1 } });
  });

  test("of many that would make the same thread, one does, and the multitask rules hold for the others", async () => {
    const { client, open } = await start();
    const thread_id = "01a1f8d4-0000-7000-8000-00000000000b";
    const create = { input: { name: "a" }, ifNotExists: "create" } as const;
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, () => client.runs.create(thread_id, "held", create)),
    );
    const refused = made.filter((one) => one.status === "rejected");
    expect(refused).toHaveLength(7);
    for (const { reason } of refused) expect(reason).toMatchObject({ status: 409 });
    open("a");
    const [run] = await client.runs.list(thread_id);
    await client.runs.join(thread_id, run?.run_id ?? "");
  });

  test("made by its first run and by itself at the same time, it is there once, and nobody is told to come again", async () => {
    const { client, open } = await start();
    for (let i = 0; i < 20; i++) {
      const threadId = `01a1f8d4-0000-7000-8000-0000000001${i.toString().padStart(2, "0")}`;
      const run = () =>
        client.runs.create(threadId, "held", { input: { name: `a${i}` }, ifNotExists: "create" });
      const thread = (ifExists: "raise" | "do_nothing") => client.threads.create({ threadId, ifExists });
      const asked = [run(), thread("raise"), run(), thread("do_nothing"), thread("raise")];
      if (i % 2 === 1) asked.unshift(thread("raise"));
      for (const made of await Promise.allSettled(asked)) {
        if (made.status === "rejected") expect(made.reason).toMatchObject({ status: 409 });
        else expect(made.value.thread_id).toBe(threadId);
      }
      const runs = await client.runs.list(threadId);
      // Held until here, so that the second run finds the first one active.
      expect(runs).toHaveLength(1);
      open(`a${i}`);
      await client.runs.join(threadId, runs[0]?.run_id ?? "");
      expect(await client.threads.get(threadId)).toMatchObject({ status: "idle" });
    }
  });

  test("a run that is refused makes no thread", async () => {
    const { client } = await start();
    const thread_id = "01a1f8d4-0000-7000-8000-00000000000c";
    const resume = { command: { resume: 1 }, ifNotExists: "create" } as const;
    await expect(client.runs.wait(thread_id, "held", resume)).rejects.toMatchObject({ status: 422 });
    await expect(client.threads.get(thread_id)).rejects.toMatchObject({ status: 404 });
    await client.threads.create({ threadId: thread_id });
    expect(await client.runs.list(thread_id)).toEqual([]);
  });

  test("the thread shows the configuration of its runs, and passes it on to none", async () => {
    const { client, thread_id } = await start();
    expect((await client.threads.get(thread_id)).config).toEqual({});
    const one = { tags: ["t"], recursion_limit: 9, configurable: { tone: "warm", only: "one" } };
    await client.runs.wait(thread_id, "told", { input: {}, config: one });
    expect((await client.threads.get(thread_id)).config).toEqual(one);
    const assistant = await client.assistants.create({
      graphId: "told",
      config: { configurable: { tone: "cold" } },
    });
    const values = await client.runs.wait(thread_id, assistant.assistant_id, { input: {} });
    expect((await client.threads.get(thread_id)).config).toEqual({
      ...one,
      configurable: { tone: "cold", only: "one" },
    });
    const { config } = values as unknown as { config: Record<string, unknown> };
    expect(config).toMatchObject({ tone: "cold", assistant_id: assistant.assistant_id });
    expect(config).not.toHaveProperty("only");
  });

  test("pending at its creation, running while it runs, success at its end", async () => {
    const { client, thread_id, waits, open } = await start();
    const run = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    expect(run.status).toBe("pending");
    await waits("a");
    expect(await client.runs.get(thread_id, run.run_id)).toEqual({
      ...run,
      status: "running",
      updated_at: aTime,
    });
    open("a");
    const values = { name: "a", log: ["a began", "a ended"] };
    expect(await client.runs.join(thread_id, run.run_id)).toEqual(values);
    // The slowest node is known if a task has taken a millisecond or more.
    const { slowest_node: slowest, ...ended } = {
      slowest_node: null,
      ...(await client.runs.get(thread_id, run.run_id)),
    };
    expect(ended).toEqual({ ...run, status: "success", updated_at: aTime });
    // Which of the two nodes it is depends on how long the client takes to open the second one.
    if (slowest !== null)
      expect(slowest).toEqual({
        name: expect.stringMatching(/^(begin|hold)$/),
        task_id: expect.any(String),
        duration_ms: expect.any(Number),
      });
    // A second join returns the same result at once.
    expect(await client.runs.join(thread_id, run.run_id)).toEqual(values);
  });

  test("join tells what its own run left, also when others have gone on", async () => {
    const { client, thread_id, open } = await start();
    open("a");
    open("b");
    const one = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await client.runs.join(thread_id, one.run_id);
    await client.runs.wait(thread_id, "held", { input: { name: "b" } });
    expect(await client.runs.join(thread_id, one.run_id)).toEqual({
      name: "a",
      log: ["a began", "a ended"],
    });
  });

  test("wait throws what a node threw, or answers it when it must not throw", async () => {
    const { client, thread_id } = await start();
    await expect(client.runs.wait(thread_id, "fails", { input: {} })).rejects.toThrow("TypeError: kaboom");
    const answer = await client.runs.wait(thread_id, "fails", { input: {}, raiseError: false });
    expect(answer).toEqual({ __error__: { error: "TypeError", message: "kaboom" } });
    const runs = await client.runs.list(thread_id);
    expect(runs.map(({ status }) => status)).toEqual(["error", "error"]);
    expect(await client.runs.join(thread_id, runs[0]?.run_id ?? "")).toEqual(answer);
  });

  test("the first run of a thread fails without an input: there is nothing to go on from", async () => {
    const { client, thread_id } = await start();
    const answer = await client.runs.wait(thread_id, "told", { input: null, raiseError: false });
    expect(answer).toMatchObject({ __error__: { error: "EmptyInputError" } });
    expect(await client.runs.list(thread_id)).toMatchObject([{ status: "error" }]);
  });

  test("a graph without an end is stopped at the recursion limit", async () => {
    const { client, thread_id } = await start();
    const limited = { input: {}, config: { recursion_limit: 3 }, raiseError: false };
    expect(await client.runs.wait(thread_id, "endless", limited)).toEqual({
      __error__: { error: "GraphRecursionError", message: expect.stringContaining("3") as unknown },
    });
    expect((await client.threads.get(thread_id)).values).toEqual({ log: ["again", "again", "again"] });
  });

  test("a node is told config, context and where it is", async () => {
    const { client, thread_id } = await start();
    const config = { configurable: { tone: "warm", user_id: "u1" } };
    const context = { who: "me", deep: [1] };
    const values = await client.runs.wait(thread_id, "told", { input: {}, config, context });
    const [run] = await client.runs.list(thread_id);
    expect(values).toMatchObject({
      config: { tone: "warm", user_id: "u1", thread_id, run_id: run?.run_id, graph_id: "told" },
      context,
      place: { runId: run?.run_id, threadId: thread_id, attempt: 1 },
    });
  });

  test("list shows the newest first, page by page, and by status", async () => {
    const { client, thread_id, open, waits } = await start();
    expect(await client.runs.list(thread_id)).toEqual([]);
    const ids: string[] = [];
    for (const name of ["a", "b", "c", "d"]) {
      const multitaskStrategy = "enqueue";
      const run = await client.runs.create(thread_id, "held", { input: { name }, multitaskStrategy });
      ids.unshift(run.run_id);
    }
    const [d, c, b, a] = ids;
    const list = async (options: Parameters<typeof client.runs.list>[1]) =>
      (await client.runs.list(thread_id, options)).map(({ run_id }) => run_id);
    await waits("a");
    expect(await list({})).toEqual(ids);
    expect(await list({ limit: 2 })).toEqual([d, c]);
    expect(await list({ limit: 2, offset: 1 })).toEqual([c, b]);
    expect(await list({ limit: 1000, offset: 4 })).toEqual([]);
    expect(await list({ status: "running" })).toEqual([a]);
    expect(await list({ status: "pending" })).toEqual([d, c, b]);
    expect(await list({ status: "pending", limit: 1, offset: 1 })).toEqual([c]);
    expect(await list({ status: "success" })).toEqual([]);
    for (const name of ["a", "b", "c", "d"]) open(name);
    await Promise.all(ids.map((id) => client.runs.join(thread_id, id)));
    expect(await list({ status: "success" })).toEqual(ids);
    expect(await list({ status: "running" })).toEqual([]);
  });

  test("a run that is cancelled is interrupted; what it did stays; the thread is idle", async () => {
    const { client, thread_id, waits } = await start();
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    const joined = client.runs.join(thread_id, run_id);
    expect(await client.runs.cancel(thread_id, run_id, true)).toBeUndefined();
    expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
    const values = { name: "a", log: ["a began"] };
    expect(await joined).toEqual(values);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", values });
  });

  test("cancelled without waiting, its end is found by join", async () => {
    const { client, thread_id, waits } = await start();
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    await client.runs.cancel(thread_id, run_id);
    await client.runs.join(thread_id, run_id);
    expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
  });

  test("a run that waits in the queue is cancelled alone", async () => {
    const { client, thread_id, waits, open } = await start();
    const first = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    const queued = await client.runs.create(thread_id, "held", {
      input: { name: "b" },
      multitaskStrategy: "enqueue",
    });
    await client.runs.cancel(thread_id, queued.run_id, true);
    expect(await client.runs.get(thread_id, queued.run_id)).toMatchObject({ status: "interrupted" });
    expect(await client.runs.get(thread_id, first.run_id)).toMatchObject({ status: "running" });
    open("a");
    const values = { name: "a", log: ["a began", "a ended"] };
    expect(await client.runs.join(thread_id, first.run_id)).toEqual(values);
    expect((await client.threads.get(thread_id)).values).toEqual(values);
  });

  test("rolled back, the run is gone and the thread is where it stood before", async () => {
    const { client, thread_id, waits, open } = await start();
    open("a");
    const before = await client.runs.wait(thread_id, "held", { input: { name: "a" } });
    const { checkpoint } = await client.threads.getState(thread_id);
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name: "b" } });
    await waits("b");
    await client.runs.cancel(thread_id, run_id, true, "rollback");
    await expect(client.runs.get(thread_id, run_id)).rejects.toMatchObject({ status: 404 });
    expect(await client.runs.list(thread_id)).toHaveLength(1);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", values: before });
    expect((await client.threads.getState(thread_id)).checkpoint).toEqual(checkpoint);
  });

  test("to cancel a run that has ended changes nothing", async () => {
    const { client, thread_id, open } = await start();
    open("a");
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await client.runs.join(thread_id, run_id);
    for (const wait of [false, true]) await client.runs.cancel(thread_id, run_id, wait);
    await client.runs.cancel(thread_id, run_id, true, "rollback");
    expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "success" });
  });

  test("unknown runs are 404, also one of another thread", async () => {
    const { client, thread_id, open } = await start();
    open("a");
    const { run_id } = await client.runs.create(thread_id, "held", { input: { name: "a" } });
    await client.runs.join(thread_id, run_id);
    const other = (await client.threads.create()).thread_id;
    for (const [thread, run] of [
      [thread_id, NOBODY],
      [other, run_id],
      [NOBODY, run_id],
    ] as const) {
      const unknown = { status: 404 };
      await expect(client.runs.get(thread, run)).rejects.toMatchObject(unknown);
      await expect(client.runs.join(thread, run)).rejects.toMatchObject(unknown);
      await expect(client.runs.cancel(thread, run)).rejects.toMatchObject(unknown);
    }
    await expect(client.runs.list(NOBODY)).rejects.toMatchObject({ status: 404 });
  });
});

describe("runs, byte by byte", () => {
  test("feedback_keys are kept with the run; none are null", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    open("nobody");
    for (const [feedback_keys, kept] of [
      [
        ["liked", "used"],
        ["liked", "used"],
      ],
      ["liked", ["liked"]],
      [[], null],
      [null, null],
    ] as const) {
      const body = { assistant_id: "held", input: {}, feedback_keys };
      const run = await postJson(`${url}/threads/${await newThread(url)}/runs`, body);
      expect(run).toMatchObject({ kwargs: { feedback_keys: kept } });
    }
  });

  test("null in a run's fields, and in its config's, is as good as nothing", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    open("a");
    const create = async (fields: object) => {
      const body = { assistant_id: "held", input: { name: "a" }, ...fields };
      const { kwargs } = await postJson<{ kwargs: { config: { configurable: object } } }>(
        `${url}/threads/${await newThread(url)}/runs`,
        body,
      );
      // Ids differ from run to run.
      const { configurable, ...config } = kwargs.config;
      return { ...kwargs, config: { ...config, configurable: Object.keys(configurable).sort() } };
    };
    const plain = await create({});
    const fields = ["command", "config", "context", "metadata", "webhook", "checkpoint", "checkpoint_id"];
    const others = ["stream_mode", "interrupt_before", "interrupt_after", "multitask_strategy", "durability"];
    for (const field of [...fields, ...others, "feedback_keys", "langsmith_tracer", "strict_resume"]) {
      expect(await create({ [field]: null }), field).toEqual(plain);
    }
    for (const field of ["tags", "recursion_limit", "configurable", "metadata"]) {
      expect(await create({ config: { [field]: null } }), field).toEqual(plain);
    }
    for (const checkpoint of [
      {},
      { checkpoint_id: null, checkpoint_ns: "", checkpoint_map: null, thread_id: null },
    ]) {
      expect(await create({ checkpoint })).toEqual(plain);
    }
  });

  test("what only a client's own tracing asks for is kept with the run's config", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    open("nobody");
    for (const [langsmith_tracer, kept] of [
      [
        { project_name: "p", example_id: "e" },
        { langsmith_project: "p", langsmith_example_id: "e" },
      ],
      [{ project_name: "p", example_id: null }, { langsmith_project: "p" }],
      [{}, {}],
    ] as const) {
      const body = { assistant_id: "held", input: {}, langsmith_tracer };
      const run = await postJson<{ kwargs: { config: { configurable: Record<string, unknown> } } }>(
        `${url}/threads/${await newThread(url)}/runs`,
        body,
      );
      const { configurable } = run.kwargs.config;
      const found = Object.entries(configurable).filter(([key]) => key.startsWith("langsmith"));
      expect(Object.fromEntries(found)).toEqual(kept);
    }
  });

  test("a created run says where it is: Content-Location ends with its id", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    open("a");
    const thread = await newThread(url);
    const created = await post(`${url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    const { run_id } = (await created.json()) as { run_id: string };
    const at = `/threads/${thread}/runs/${run_id}`;
    expect(created.headers.get("content-location")).toBe(at);

    const joined = await get(`${url}${at}/join`);
    expect(Object.fromEntries(joined.headers)).toMatchObject({
      "content-type": "application/json",
      "content-location": at,
      location: `${at}/join`,
    });
    expect(await joined.json()).toEqual({ name: "a", log: ["a began", "a ended"] });

    const waited = await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    const path = waited.headers.get("content-location") ?? "";
    expect(path).toMatch(new RegExp(`^/threads/${thread}/runs/[0-9a-f-]{36}$`));
    expect(waited.headers.get("location")).toBe(`${path}/join`);
    await waited.text();
  });

  test("wait has its head at once, before the run has ended", async () => {
    const { held, open, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const waited = await openPost(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    expect(waited.status).toBe(200);
    await waits("a");
    open("a");
    expect(await waited.json()).toMatchObject({ name: "a" });
  });

  test("a client that leaves ends its run where it asked for that, and only there", async () => {
    const { held, open, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    for (const [on_disconnect, status] of [
      ["cancel", "interrupted"],
      ["continue", "success"],
    ] as const) {
      const thread = await newThread(url);
      const leaving = new AbortController();
      const response = await fetch(`${url}/threads/${thread}/runs/wait`, {
        method: "POST",
        body: JSON.stringify({ assistant_id: "held", input: { name: on_disconnect }, on_disconnect }),
        signal: leaving.signal,
      });
      await waits(on_disconnect);
      const path = response.headers.get("content-location") ?? "";
      const joined = get(`${url}${path}/join`);
      leaving.abort();
      if (on_disconnect === "continue") open(on_disconnect);
      await (await joined).text();
      expect(await (await get(`${url}${path}`)).json()).toMatchObject({ status });
    }
  });

  test("cancel answers 202, or 204 where it waited; neither has a body", async () => {
    const { held, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    await waits("a");
    const cancel = (query: string) =>
      fetch(`${url}/threads/${thread}/runs/${run_id}/cancel?${query}`, { method: "POST" });
    const asked = await cancel("wait=0");
    expect([asked.status, await asked.text()]).toEqual([202, ""]);
    const waited = await cancel("wait=true&action=interrupt");
    expect([waited.status, await waited.text()]).toEqual([204, ""]);
    expect(waited.headers.get("location")).toBe(`/threads/${thread}/runs/${run_id}/join`);
  });

  test("a list says where its next page begins, and how many runs there are", async () => {
    const { held, open, waits } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const page = async (query: string) => {
      const { headers } = await get(`${url}/threads/${thread}/runs?${query}`);
      return [headers.get("x-pagination-total"), headers.get("x-pagination-next")];
    };
    expect(await page("")).toEqual(["0", null]);
    for (const name of ["a", "b", "c"]) {
      const body = { assistant_id: "held", input: { name }, multitask_strategy: "enqueue" };
      await postJson(`${url}/threads/${thread}/runs`, body);
    }
    await waits("a");
    expect(await page("")).toEqual(["3", null]);
    expect(await page("limit=2")).toEqual(["3", "2"]);
    expect(await page("limit=2&offset=2")).toEqual(["3", null]);
    expect(await page("limit=1&offset=7")).toEqual(["3", null]);
    expect(await page("status=running")).toEqual(["1", null]);
    expect(await page("status=pending&limit=1")).toEqual(["2", "1"]);
    expect(await page("status=success")).toEqual(["0", null]);
    for (const name of ["a", "b", "c"]) open(name);
  });

  test("a run's fields may be chosen in a list", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    open("a");
    const thread = await newThread(url);
    const run = { assistant_id: "held", input: { name: "a" } };
    await postJson(`${url}/threads/${thread}/runs/wait`, run);
    const chosen = await get(`${url}/threads/${thread}/runs?select=status&select=multitask_strategy`);
    expect(await chosen.json()).toEqual([{ status: "success", multitask_strategy: "reject" }]);
  });
});

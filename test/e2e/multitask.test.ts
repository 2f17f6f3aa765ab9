import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated, latch } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { isHosted } from "./support/suite-variant.ts";
import { get, newThread, post, postJson } from "./support/wire.ts";

const whole = (...names: string[]) => names.flatMap((name) => [`${name} began`, `${name} ended`]);

describe.each(lines)("a second run on a busy thread over %s", (_, connect) => {
  /** A thread with the run "a" in progress. */
  const start = async () => {
    const held = gated();
    const { url } = await serve({ graphs: { held: held.held } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const create = (name: string, multitaskStrategy?: "reject" | "enqueue" | "interrupt" | "rollback") =>
      client.runs.create(thread_id, "held", {
        input: { name },
        ...(multitaskStrategy !== undefined && { multitaskStrategy }),
      });
    const a = await create("a");
    await held.waits("a");
    const status = async (run: { run_id: string }) => (await client.runs.get(thread_id, run.run_id)).status;
    const join = (run: { run_id: string }) => client.runs.join(thread_id, run.run_id);
    const log = async () =>
      ((await client.threads.get(thread_id)).values as { log: string[] } | null)?.log ?? [];
    return { ...held, url, client, thread_id, create, a, status, join, log };
  };

  test("reject: while the first one is being stopped, one takes its place, and the next is refused", async () => {
    const stubborn = graph({
      state: { log: list<string>(), name: value("") },
      // The node of the first run ignores its abort signal.
      nodes: {
        say: async ({ name }) => {
          began.pass();
          if (name === "a") await ever;
          return { log: [name] };
        },
      },
      edges: { start: "say" },
    });
    const began = latch();
    const ever = new Promise<void>(() => undefined);
    const { url } = await serve({ graphs: { stubborn } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const create = (name: string) => client.runs.create(thread_id, "stubborn", { input: { name } });
    const a = await create("a");
    await began.passed;
    await expect(create("b")).rejects.toMatchObject({ status: 409 });
    await client.runs.cancel(thread_id, a.run_id);
    const b = await create("b");
    expect(b).toMatchObject({ status: "pending", multitask_strategy: "reject" });
    await expect(create("c")).rejects.toMatchObject({ status: 409 });
    expect(await client.runs.join(thread_id, b.run_id)).toEqual({ name: "b", log: ["b"] });
    expect((await client.runs.get(thread_id, a.run_id)).status).toBe("interrupted");
    expect(await client.runs.list(thread_id)).toHaveLength(2);
  });

  // LangGraph.js takes any keys as an input, and fails in the run.
  test.skipIf(isHosted)(
    "what is wrong with its request is said first: it would be refused also once the thread is idle",
    async () => {
      const { client, thread_id, open } = await start();
      await expect(client.runs.create(thread_id, "held", { input: { none: 1 } })).rejects.toMatchObject({
        status: 422,
      });
      await expect(client.runs.create(thread_id, "held", { input: { name: "b" } })).rejects.toMatchObject({
        status: 409,
      });
      open("a");
    },
  );

  test("without a strategy it is refused too, and shown as reject where it was taken", async () => {
    const { create, a, join, open } = await start();
    expect(a.multitask_strategy).toBe("reject");
    await expect(create("b")).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining(
        "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.",
      ) as unknown,
    });
    open("a");
    await join(a);
    open("b");
    expect(await create("b")).toMatchObject({ status: "pending", multitask_strategy: "reject" });
  });

  test("enqueue: the stream of a run that waits begins when the run does", async () => {
    const { client, thread_id, a, join, open } = await start();
    open("b");
    const stream = client.runs.stream(thread_id, "held", {
      input: { name: "b" },
      multitaskStrategy: "enqueue",
      streamMode: "updates",
    });
    const first = stream.next();
    open("a");
    await join(a);
    expect((await first).value).toMatchObject({ event: "metadata", data: { attempt: 1 } });
    const rest: unknown[] = [];
    for await (const { event, data } of stream) rest.push([event, data]);
    expect(rest).toEqual([
      ["updates", { begin: { log: ["b began"] } }],
      ["updates", { hold: { log: ["b ended"] } }],
    ]);
  });

  test("enqueue: after a run that failed or was cancelled the next one starts all the same", async () => {
    const { client, thread_id, create, a, join, open, status } = await start();
    const b = await create("b", "enqueue");
    await client.runs.cancel(thread_id, a.run_id, true);
    open("b");
    expect(await join(b)).toEqual({ name: "b", log: ["a began", ...whole("b")] });
    expect([await status(a), await status(b)]).toEqual(["interrupted", "success"]);
  });

  test("interrupt: those that wait in the queue are superseded too, and each tells by which run", async () => {
    const { client, thread_id, create, join, a, status, open, log } = await start();
    const reason = async ({ run_id }: { run_id: string }) =>
      ((await client.runs.get(thread_id, run_id)) as { cancel_reason?: string }).cancel_reason;
    const queued = await create("b", "enqueue");
    const c = await create("c", "interrupt");
    open("c");
    await join(c);
    expect([await status(a), await status(queued), await status(c)]).toEqual([
      "interrupted",
      "interrupted",
      "success",
    ]);
    expect(await log()).toEqual(["a began", ...whole("c")]);
    const told = `superseded by run ${c.run_id}`;
    expect([await reason(a), await reason(queued), await reason(c)]).toEqual([told, told, undefined]);
  });

  test("interrupt: a delayed run tells which runs it has superseded when it came; a reason of before stays", async () => {
    const { client, thread_id, create, a, url } = await start();
    const reason = async ({ run_id }: { run_id: string }) =>
      ((await client.runs.get(thread_id, run_id)) as { cancel_reason?: string }).cancel_reason;
    const queued = await create("b", "enqueue");
    const cancel = `${url}/threads/${thread_id}/runs/${queued.run_id}/cancel?wait=1&reason=mine`;
    expect((await post(cancel)).status).toBe(204);
    const later = await client.runs.create(thread_id, "held", {
      input: { name: "c" },
      multitaskStrategy: "interrupt",
      afterSeconds: 900,
    });
    await client.runs.join(thread_id, a.run_id);
    expect(await reason(a)).toBe(`superseded by run ${later.run_id}`);
    expect(await reason(queued)).toBe("mine");
  });

  test("rollback: all runs in flight are gone, and what they did; the new one starts from before", async () => {
    const { client, thread_id, create, join, a, status, open } = await start();
    const queued = await create("b", "enqueue");
    const c = await create("c", "rollback");
    open("c");
    expect(await join(c)).toEqual({ name: "c", log: whole("c") });
    for (const gone of [a, queued]) await expect(status(gone)).rejects.toMatchObject({ status: 404 });
    expect(await client.runs.list(thread_id)).toMatchObject([{ run_id: c.run_id, status: "success" }]);
  });

  test("a thread of its own is in nobody's way", async () => {
    const { client, open } = await start();
    open("b");
    const other = (await client.threads.create()).thread_id;
    expect(await client.runs.wait(other, "held", { input: { name: "b" } })).toMatchObject({
      log: whole("b"),
    });
  });
});

describe("a superseded run's stream", () => {
  test.each(["interrupt", "rollback"])("%s: it ends, without an error", async (multitask_strategy) => {
    const { held, waits, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const streamed = await post(`${url}/threads/${thread}/runs/stream`, {
      assistant_id: "held",
      input: { name: "a" },
      stream_mode: "updates",
    });
    await waits("a");
    open("b");
    await postJson(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "b" },
      multitask_strategy,
    });
    const text = await streamed.text();
    expect(text).toContain("event: metadata\n");
    expect(text).not.toContain("event: error\n");
    expect(text).not.toContain("a ended");
  });

  test("many that come at once: one is taken, the others are conflicts", async () => {
    const { held, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const run = { assistant_id: "held", input: { name: "a" } };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post(`${url}/threads/${thread}/runs`, run)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)]);
    const taken = answers.find(({ status }) => status === 200);
    open("a");
    await (await get(`${url}${taken?.headers.get("content-location") ?? ""}/join`)).text();
    expect(await (await get(`${url}/threads/${thread}/runs`)).json()).toHaveLength(1);
  });
});

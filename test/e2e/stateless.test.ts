import { describe, expect, test, vi } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { aTime, aUuid, events, get, NOBODY, post, postJson, Reading } from "./support/wire.ts";

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

/** Streams a long text, piece by piece. */
const chatters = graph({
  state: { said: value(0) },
  nodes: {
    chat: async (_, ctx) => {
      for (let i = 0; i < 500; i++) ctx.emit({ i, text: "x".repeat(2_000) });
      return { said: 500 };
    },
  },
  edges: { start: "chat" },
});

interface Run {
  readonly run_id: string;
  readonly thread_id: string;
}

const done = (name: string) => ({ name, log: [`${name} began`, `${name} ended`] });

async function parts<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of stream) found.push(part);
  return found;
}

/** The metric that shows that nobody reads a run's stream. */
const UNREAD = /^heddle_connections\{kind="sse"\} 0$/m;

/** The run of a stream, from its first event. */
function runOf(stream: readonly ({ readonly data: unknown } | undefined)[]): Run {
  const [metadata] = stream;
  if (metadata === undefined) throw new Error("the stream is empty");
  return metadata.data as Run;
}

/** The run and its thread do not exist. */
async function gone(url: string, { thread_id, run_id }: Run): Promise<void> {
  const thread = `${url}/threads/${thread_id}`;
  const run = `${thread}/runs/${run_id}`;
  for (const path of [thread, `${thread}/state`, `${thread}/runs`, run]) {
    expect((await get(path)).status).toBe(404);
  }
  expect((await post(`${run}/cancel`)).status).toBe(404);
}

/** Waits until the run is deleted, also for readers; at once if nobody has read its stream. */
async function deleted(url: string, run: Run): Promise<void> {
  const paths = [`/threads/${run.thread_id}/runs/${run.run_id}`, `/runs/${run.run_id}`];
  await vi.waitFor(
    async () => {
      for (const path of paths) expect((await get(`${url}${path}/join`)).status).toBe(404);
    },
    { timeout: 30_000 },
  );
  for (const path of paths) expect((await get(`${url}${path}/stream`)).status).toBe(404);
  await gone(url, run);
}

describe.each(lines)("runs without a thread over %s", (_, connect) => {
  const start = async () => {
    const { held, waits, open } = gated();
    const { url, complaints } = await serve({ graphs: { held, fails } });
    return { url, client: connect(url), waits, open, complaints };
  };

  test("stream shows the run from its start to its end", async () => {
    const { client, url, open } = await start();
    open("a");
    const seen = [];
    let created;
    const stream = client.runs.stream(null, "held", {
      input: { name: "a" },
      streamMode: ["updates", "values"],
      onRunCreated: (run) => (created = run),
    });
    for await (const { event, data } of stream) seen.push([event, data]);
    const { run_id, thread_id } = runOf(seen.map(([, data]) => ({ data })));
    expect(created).toMatchObject({ run_id });
    expect(seen).toEqual([
      ["metadata", { run_id, thread_id, attempt: 1 }],
      ["values", { name: "a", log: [] }],
      ["updates", { begin: { log: ["a began"] } }],
      ["values", { name: "a", log: ["a began"] }],
      ["updates", { hold: { log: ["a ended"] } }],
      ["values", done("a")],
    ]);
    await gone(url, { run_id, thread_id });
  });

  test("a created one has every field of a run, is joined while it lives, and is gone at its end", async () => {
    const { client, url, waits, open } = await start();
    const run = await client.runs.create(null, "held", { input: { name: "a" }, metadata: { mine: 1 } });
    const { run_id, thread_id, assistant_id } = run;
    const metadata = { created_by: "system", graph_id: "held", assistant_id, mine: 1 };
    expect(run).toEqual({
      run_id: aUuid,
      thread_id: aUuid,
      assistant_id: aUuid,
      created_at: aTime,
      updated_at: aTime,
      metadata,
      status: "pending",
      multitask_strategy: "reject",
      kwargs: expect.objectContaining({ input: { name: "a" }, temporary: true, webhook: null }) as unknown,
    });
    expect(thread_id).not.toBe(run_id);
    await waits("a");
    expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "running" });
    const joined = client.runs.join(thread_id, run_id);
    open("a");
    expect(await joined).toEqual(done("a"));
    await deleted(url, run);
  });

  test("its stream is joined from the start, by both of its paths", async () => {
    const { client, url, waits, open } = await start();
    const run = await client.runs.create(null, "held", { input: { name: "a" }, streamMode: "updates" });
    await waits("a");
    const alone = await get(`${url}/runs/${run.run_id}/stream`);
    const path = `/runs/${run.run_id}`;
    expect(alone.headers.get("location")).toBe(`${path}/stream`);
    const over = (async () => {
      const seen = [];
      const stream = client.runs.joinStream(run.thread_id, run.run_id, { lastEventId: "-1" });
      for await (const { id, event, data } of stream) seen.push({ id, event, data });
      return seen;
    })();
    open("a");
    const seen = events(await alone.text()).map(({ id, event, data }) => ({ id, event, data }));
    expect(seen.map(({ event }) => event)).toEqual(["metadata", "updates", "updates"]);
    expect(await over).toEqual(seen);
    await gone(url, run);
  });

  test("its thread is hidden: not found, not given, and no place for another run", async () => {
    const { client, url, waits, open } = await start();
    const { thread_id, run_id } = await client.runs.create(null, "held", { input: { name: "a" } });
    await waits("a");
    const unknown = { status: 404 };
    await expect(client.threads.get(thread_id)).rejects.toMatchObject(unknown);
    await expect(client.threads.getState(thread_id)).rejects.toMatchObject(unknown);
    await expect(client.runs.list(thread_id)).rejects.toMatchObject(unknown);
    for (const ifNotExists of ["reject", "create"] as const) {
      const options = { input: {}, multitaskStrategy: "interrupt", ifNotExists } as const;
      await expect(client.runs.create(thread_id, "held", options)).rejects.toMatchObject(unknown);
    }
    for (const ifExists of ["raise", "do_nothing"] as const) {
      const taken = client.threads.create({ threadId: thread_id, ifExists });
      await expect(taken).rejects.toMatchObject({ status: 409 });
    }
    open("a");
    expect(await client.runs.join(thread_id, run_id)).toEqual(done("a"));
    await deleted(url, { thread_id, run_id });
  });

  test("a failure is told like any other, and leaves nothing", async () => {
    const { client, url } = await start();
    const wait = client.runs.wait(null, "fails", { input: {} });
    await expect(wait).rejects.toThrow("TypeError: kaboom");
    const seen = await parts(client.runs.stream(null, "fails", { input: {} }));
    expect(seen.at(-1)).toMatchObject({ event: "error", data: { error: "TypeError", message: "kaboom" } });
    await gone(url, runOf(seen));
  });

  test("an interrupt is told, and then the run is gone: nothing can answer it", async () => {
    const { client, url } = await start();
    const paused = await client.runs.wait(null, "approval", { input: { topic: "tea" } });
    expect(paused).toMatchObject({ topic: "tea", __interrupt__: [{ value: expect.anything() as unknown }] });
    const run = await client.runs.create(null, "approval", { input: { topic: "tea" } });
    await deleted(url, run);
    const resume = client.runs.wait(null, "approval", { command: { resume: { ok: true } } });
    await expect(resume).rejects.toMatchObject({ status: 422 });
  });

  test("a cancelled one is gone", async () => {
    const { client, url, waits } = await start();
    for (const action of ["interrupt", "rollback"] as const) {
      const run = await client.runs.create(null, "held", { input: { name: action } });
      await waits(action);
      expect(await client.runs.cancel(run.thread_id, run.run_id, true, action)).toBeUndefined();
      await deleted(url, run);
    }
  });

  test("on_completion keep: the thread stays, with its state", async () => {
    const { client, url, open } = await start();
    open("a");
    open("b");
    // The SDK sends it, although its types do not declare it.
    const keep: object = { onCompletion: "keep" };
    const stream = client.runs.stream(null, "held", { input: { name: "a" }, metadata: { mine: 1 }, ...keep });
    const { run_id, thread_id } = runOf(await parts(stream));
    expect(await client.runs.join(thread_id, run_id)).toEqual(done("a"));
    const run = await client.runs.get(thread_id, run_id);
    expect(run).toMatchObject({ status: "success", kwargs: { temporary: false } });
    const { assistant_id } = run;
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "idle",
      metadata: { mine: 1, graph_id: "held", assistant_id },
      values: done("a"),
    });
    expect(await (await get(`${url}/runs/${run_id}/join`)).json()).toEqual(done("a"));
    const more = await client.runs.wait(thread_id, "held", { input: { name: "b" } });
    expect(more).toEqual({ name: "b", log: ["a began", "a ended", "b began", "b ended"] });
  });

  test("an unknown assistant and a bad field are refused before anything is made", async () => {
    const { client, url } = await start();
    await expect(client.runs.wait(null, "nobody", { input: {} })).rejects.toMatchObject({ status: 404 });
    for (const path of ["/runs", "/runs/stream", "/runs/wait"]) {
      const refused = await post(url + path, { assistant_id: "held", on_completion: "later" });
      expect(refused.status).toBe(422);
      expect(await refused.json()).toMatchObject({ errors: [{ at: "on_completion" }] });
    }
  });
});

describe("runs without a thread, byte by byte", () => {
  const start = async () => {
    const { held, waits, open } = gated();
    const { url, storage } = await serve({ graphs: { held, chatters } });
    return { url, storage, waits, open };
  };

  test("each answer says where the run is, without its thread", async () => {
    const { url, open } = await start();
    open("a");
    const body = { assistant_id: "held", input: { name: "a" } };
    const at = /^\/runs\/[0-9a-f-]{36}$/;
    const created = await post(`${url}/runs`, body);
    expect(created.headers.get("content-location")).toBe(`/runs/${((await created.json()) as Run).run_id}`);
    for (const [path, end] of [
      ["/runs/wait", "/join"],
      ["/runs/stream", "/stream"],
    ] as const) {
      const { headers, ...answer } = await post(url + path, body).then(async (response) => ({
        headers: response.headers,
        status: response.status,
        text: await response.text(),
      }));
      const here = headers.get("content-location") ?? "";
      expect(here).toMatch(at);
      expect(headers.get("location")).toBe(here + end);
      expect(answer.status).toBe(200);
    }
  });

  test("on_completion, by its name on the wire", async () => {
    const { url, open } = await start();
    open("a");
    for (const [on_completion, kept] of [
      ["keep", true],
      ["delete", false],
      ["complete", false],
      [null, false],
    ] as const) {
      const body = { assistant_id: "held", input: { name: "a" }, on_completion };
      const run = await postJson<Run & { kwargs: unknown }>(`${url}/runs`, body);
      expect(run.kwargs).toMatchObject({ temporary: !kept });
      if (!kept) await deleted(url, run);
      else expect((await get(`${url}/threads/${run.thread_id}`)).status).toBe(200);
    }
  });

  test("unknown and malformed ids", async () => {
    const { url } = await start();
    for (const end of ["join", "stream"]) {
      expect((await get(`${url}/runs/${NOBODY}/${end}`)).status).toBe(404);
      expect((await get(`${url}/runs/nobody/${end}`)).status).toBe(422);
    }
  });

  test.each(["stream", "wait"])("that a client of %s has left is nothing to complain of", async (how) => {
    const { held, waits } = gated();
    const { url, complaints } = await serve({ graphs: { held } });
    for (const name of ["a", "b", "c"]) {
      const leaving = new AbortController();
      const body = JSON.stringify({ assistant_id: "held", input: { name } });
      const asked = fetch(`${url}/runs/${how}`, { method: "POST", body, signal: leaving.signal });
      await waits(name);
      // For a waiting request, the headers may have arrived by then or not.
      if (how === "stream" || name === "b") await asked;
      leaving.abort();
      await asked.then((response) => response.text()).catch(() => undefined);
    }
    const ended = /^heddle_runs_ended_total\{.*status="interrupted".*\} 3$/m;
    await vi.waitFor(async () => expect(await (await get(`${url}/metrics`)).text()).toMatch(ended), {
      timeout: 30_000,
    });
    expect(complaints).toEqual([]);
  });

  test("nor is that one has left before it had read all of a run that is gone", async () => {
    // More output than the buffers between client and server can hold.
    const floods = graph({
      state: { said: value(0) },
      nodes: {
        flood: async (_, ctx) => {
          for (let i = 0; i < 300; i++) ctx.emit({ i, text: "x".repeat(100_000) });
          return { said: 300 };
        },
      },
      edges: { start: "flood" },
    });
    const { url, complaints } = await serve({ graphs: { floods } });
    const body = { assistant_id: "floods", input: {}, stream_mode: ["custom"] };
    const reading = new Reading(await post(`${url}/runs/stream`, body));
    const [metadata] = await reading.until(({ event }) => event === "metadata");
    const { thread_id, run_id } = runOf([metadata]);
    const run = `${url}/threads/${thread_id}/runs/${run_id}`;
    await vi.waitFor(async () => expect((await get(run)).status).toBe(404), { timeout: 30_000 });
    await reading.leave();
    await vi.waitFor(async () => expect(await (await get(`${url}/metrics`)).text()).toMatch(UNREAD), {
      timeout: 30_000,
    });
    expect(complaints).toEqual([]);
  });

  test("a client that leaves takes its run with it, unless it says otherwise", async () => {
    const { url, waits, open } = await start();
    const leave = async (name: string, more: object) => {
      const response = await post(`${url}/runs/stream`, { assistant_id: "held", input: { name }, ...more });
      const reading = new Reading(response);
      const [metadata] = await reading.until(({ event }) => event === "metadata");
      await waits(name);
      await reading.leave();
      return runOf([metadata]);
    };
    await deleted(url, await leave("a", {}));
    const run = await leave("b", { on_disconnect: "continue" });
    open("b");
    // A client whose connection broke before the end can read it for some time.
    const rest = await get(`${url}/runs/${run.run_id}/stream`);
    expect(events(await rest.text()).at(-1)).toMatchObject({ event: "values", data: done("b") });
    await gone(url, run);
    expect(await (await get(`${url}/runs/${run.run_id}/join`)).json()).toEqual(done("b"));
  });

  test("a reader that is slow reads the stream to its end", async () => {
    const { url } = await start();
    const response = await post(`${url}/runs/stream`, {
      assistant_id: "chatters",
      input: {},
      stream_mode: ["custom", "values"],
    });
    const reading = new Reading(response);
    const [metadata] = await reading.until(({ event }) => event === "metadata");
    const { thread_id, run_id } = runOf([metadata]);
    await vi.waitFor(
      async () => {
        const found = await get(`${url}/threads/${thread_id}/runs/${run_id}`);
        expect(found.status).toBe(404);
      },
      { timeout: 30_000 },
    );
    const all = await reading.all();
    expect(all.filter(({ event }) => event === "custom")).toHaveLength(500);
    expect(all.at(-1)).toMatchObject({ event: "values", data: { said: 500 } });
  });
});

describe("a restart", () => {
  test("takes up background runs, drops those whose client is gone, and leaves no thread behind", async () => {
    const data = await directory();
    const first = gated();
    const before = await serve({ data, graphs: { held: first.held } });
    const url = before.url;
    const background = await postJson<Run>(`${url}/runs`, { assistant_id: "held", input: { name: "a" } });
    const streams = await Promise.all(
      ["b", "c"].map(async (name) => {
        const on_disconnect = name === "c" ? "continue" : "cancel";
        const body = { assistant_id: "held", input: { name }, on_disconnect };
        const [metadata] = await new Reading(await post(`${url}/runs/stream`, body)).until(() => true);
        return runOf([metadata]);
      }),
    );
    await Promise.all(["a", "b", "c"].map(first.waits));
    await before.close(0);

    const second = gated();
    const after = await serve({ data, graphs: { held: second.held } });
    const [dropped, continued] = streams as [Run, Run];
    await deleted(after.url, dropped);
    for (const [name, run] of [
      ["a", background],
      ["c", continued],
    ] as const) {
      await second.waits(name);
      const joined = get(`${after.url}/threads/${run.thread_id}/runs/${run.run_id}/join`);
      second.open(name);
      expect(await (await joined).json()).toEqual(done(name));
      await gone(after.url, run);
    }
    expect(after.complaints).toEqual([]);
  });
});

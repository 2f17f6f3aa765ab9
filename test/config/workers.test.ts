import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { events, get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { build, heddle, Running } from "./process.ts";
import { Home } from "./project.ts";

vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);

// A user's file: each worker loads it again.
const GRAPHS = `
import { threadId } from "node:worker_threads";
import { appendFileSync } from "node:fs";
import { graph, list, messages, END, to } from "heddle";

const z = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const log = new URL("./begun.log", import.meta.url);

export const where = graph({
  state: { thread: z },
  nodes: { tell: async () => ({ thread: threadId }) },
  edges: { start: "tell" },
});

const inner = graph({
  state: { notes: list() },
  nodes: { deep: async (_, ctx) => (ctx.emit({ deep: ctx.ns !== "" }), { notes: ["deep"] }) },
  edges: { start: "deep" },
});

export const all = graph({
  state: { messages: messages(), notes: list() },
  nodes: {
    talk: async (_, ctx) => {
      const first = ctx.message({ id: "m1" });
      const second = ctx.message({ id: "m2", model: "test" });
      for (const word of ["a ", "b ", "c"]) {
        first.write(word);
        second.write(word.toUpperCase());
        await null;
      }
      second.toolCall({ name: "look", args: { at: 1 }, id: "c1" });
      ctx.emit({ custom: [1, { two: 2 }] });
      ctx.log.warn("said", { words: 3 });
      return { messages: [first.end(), second.end()] };
    },
    ask: async (_, ctx) => {
      const kept = await ctx.step("once", () => {
        appendFileSync(log, "once ");
        return { kept: true };
      });
      const answer = await ctx.interrupt({ question: "ok?", kept });
      return answer === "yes" ? to("sub", { notes: ["answered"] }) : to(END);
    },
    sub: inner,
  },
  edges: { start: "talk", talk: "ask" },
});

export const memory = graph({
  state: { seen: z },
  nodes: {
    keep: async (_, { store }) => {
      await store.put(["a"], "k", { n: 1 });
      const { value } = await store.get(["a"], "k");
      const found = await store.search(["a"], { filter: { n: { $gte: 1 } } });
      const [spaces, none] = await store.batch([{ kind: "namespaces" }, { kind: "get", namespace: ["a"], key: "none" }]);
      const told = async (call) => call().then(() => "", ({ name, code, message }) => [name, code, message]);
      const refused = [
        await told(() => store.put(["a.b"], "k", {})),
        await told(() => store.put(["a"], "k", { f: () => 1 })),
        await told(() => store.search(["a"], { filter: { n: () => 1 } })),
      ];
      return { seen: [value, found.map(({ key, score }) => [key, score]), spaces, none, refused] };
    },
  },
  edges: { start: "keep" },
});

class Odd {}
export const odd = graph({
  state: { what: z, seen: z },
  nodes: {
    do: {
      run: async ({ what }, ctx) => {
        if (what === "null") throw null;
        if (what === "error") throw new TypeError("no such thing");
        if (what === "function") return { seen: () => 1 };
        if (what === "class") return { seen: { deep: [new Odd()] } };
        if (what === "date") return { seen: new Date(0) };
        if (what === "exit") process.exit(3);
        if (what === "retry" && ctx.attempt >= 1) {
          appendFileSync(log, "try ");
          if (!globalThis.tried) {
            globalThis.tried = true;
            throw new TypeError("once more");
          }
          return { seen: "again" };
        }
        if (what === "wait") {
          await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
        }
        if (what === "block") for (;;);
        if (what === "late") setTimeout(() => { throw new RangeError("thrown too late"); }, 1);
        if (what === "reject") void Promise.reject(new RangeError("rejected too late"));
        if (what === "odd") void Promise.reject(Object.assign(new RangeError("odd"), { name: () => 1, stack: Symbol("s") }));
        if (what === "none") void Promise.reject(() => 1);
        if (what === "deep") {
          let seen = () => 1;
          for (let i = 0; i < 40; i++) seen = [seen];
          return { seen };
        }
        return { seen: what };
      },
      retry: { attempts: 2, initial: 1 },
    },
  },
  edges: { start: "do" },
});
`;

const home = new Home({ isInstalled: true });
afterAll(() => home.remove());

/** Writes the project and returns its folder. */
function project(name: string, graphs = GRAPHS): string {
  const names = ["where", "all", "odd", "memory"];
  return dirname(
    home.project(name, {
      "graphs.mjs": graphs,
      "begun.log": "",
      "heddle.json": {
        graphs: Object.fromEntries(names.map((graph) => [graph, `./graphs.mjs:${graph}`])),
        runs: { grace_ms: 50 },
      },
    }),
  );
}

const argumentsOf = (at: string, workers: number) => [
  "--config",
  join(at, "heddle.json"),
  "--data",
  join(at, "data"),
  "--workers",
  String(workers),
];

const servers = new Map<number, Promise<Running>>();
const ends: (() => void)[] = [];
afterAll(() => {
  for (const end of ends) end();
});

/** One server for all tests with this number of workers, and the output and logs since this call. */
async function served(workers: number) {
  const name = `workers-${workers}`;
  const at = join(home.path, name);
  const starting =
    servers.get(workers) ??
    Running.start(argumentsOf(project(name), workers), {}, (end) => void ends.push(end));
  servers.set(workers, starting);
  const server = await starting;
  const read = () => readFileSync(join(at, "begun.log"), "utf8");
  const before = { log: read().length, output: server.output.length };
  return {
    url: server.url,
    log: () => read().slice(before.log),
    output: () => server.output.slice(before.output),
  };
}

const wait = (url: string, thread: string, body: object) =>
  postJson<Record<string, unknown>>(`${url}/threads/${thread}/runs/wait`, body);

const odd = async (url: string, what: string) =>
  wait(url, await newThread(url), { assistant_id: "odd", input: { what } });

/** A run of `odd` whose node has begun. */
async function began(url: string, what: string) {
  const thread = await newThread(url);
  const runs = `${url}/threads/${thread}/runs`;
  const { run_id } = await postJson<{ run_id: string }>(runs, { assistant_id: "odd", input: { what } });
  const at = `${runs}/${run_id}`;
  const record = async () => (await (await get(at)).json()) as object;
  await expect.poll(record).toMatchObject({ status: "running" });
  return { thread, at, record };
}

async function cancelled({ at, record }: Awaited<ReturnType<typeof began>>): Promise<void> {
  expect((await post(`${at}/cancel?wait=true`)).status).toBeLessThan(300);
  expect(await record()).toMatchObject({ status: "interrupted" });
}

const MODES = ["values", "updates", "messages-tuple", "messages", "custom", "tasks", "checkpoints", "debug"];

/** The result of a graph that uses everything a node can do, as a client sees it, without ids and times. */
async function story(workers: number) {
  const { url, log, output } = await served(workers);
  const thread = await newThread(url);
  const run = async (body: object) => {
    const asked = { assistant_id: "all", stream_mode: MODES, stream_subgraphs: true, ...body };
    return events(await (await post(`${url}/threads/${thread}/runs/stream`, asked)).text());
  };
  const told = [...(await run({ input: { notes: ["go"] } })), ...(await run({ command: { resume: "yes" } }))];
  const text = JSON.stringify(told.map(({ event, data }) => [event, data]));
  const ids = new Map<string, string>();
  const seen = text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}/g, (id) => {
      if (!ids.has(id)) ids.set(id, `#${ids.size}`);
      return ids.get(id) as string;
    })
    .replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)"|(?<="(?:created_at|at)":)\d+/g, '"now"');
  return {
    seen: JSON.parse(seen) as unknown[],
    log: log(),
    output: output(),
  };
}

describe("nodes in worker threads", () => {
  test("run in other threads than the server, all of them", async () => {
    const { url } = await served(2);
    const seen = await Promise.all(
      Array.from({ length: 12 }, async () =>
        wait(url, await newThread(url), { assistant_id: "where", input: { thread: 0 } }),
      ),
    );
    const threads = new Set(seen.map(({ thread }) => thread));
    expect(threads.size).toBe(2);
    expect(threads.has(0)).toBe(false);
  });

  test("a client sees what it sees where they run beside everything else, in every mode", async () => {
    const here = await story(0);
    const there = await story(2);
    expect(here.seen.length).toBeGreaterThan(40);
    expect(there.seen).toEqual(here.seen);
    // A stored step does not run again in the task's second attempt.
    expect(there.log).toBe("once ");
    expect(there.output).toContain('"words":3');
  });

  test("the store is reached from there as from here", async () => {
    const seen = await Promise.all(
      [0, 1].map(async (workers) => {
        const { url } = await served(workers);
        return wait(url, await newThread(url), { assistant_id: "memory", input: { seen: null } });
      }),
    );
    const refused = ["ServiceError", "value.unstorable"];
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[1]).toEqual({
      seen: [
        { n: 1 },
        [["k", null]],
        [["a"]],
        null,
        [
          [
            "ServiceError",
            "validation.failed",
            "namespace[0] cannot be empty or contain periods. Received: a.b",
          ],
          [...refused, "put.value.f cannot be stored: it is a function"],
          [...refused, "search.filter.n cannot be stored: it is a function"],
        ],
      ],
    });
  });

  test("what a node throws, and what cannot be stored, is told as ever", async () => {
    const here = (await served(0)).url;
    const there = (await served(1)).url;
    for (const what of ["null", "error", "function", "class", "date", "plain"]) {
      expect(await odd(there, what), what).toEqual(await odd(here, what));
    }
    expect(await odd(there, "class")).toMatchObject({
      __error__: { message: expect.stringContaining("deep[0] cannot be stored") as unknown },
    });
  });

  test("a node that fails is tried again", async () => {
    const { url, log } = await served(1);
    expect(await odd(url, "retry")).toMatchObject({ seen: "again" });
    expect(log()).toBe("try try ");
  });

  test("a cancel reaches the body's signal", async () => {
    const { url } = await served(1);
    const run = await began(url, "wait");
    await cancelled(run);
    // The worker still works.
    expect(await odd(url, "plain")).toMatchObject({ seen: "plain" });
  });

  test("a node that ends its thread costs its own run, and no other", async () => {
    const { url, output } = await served(1);
    expect(await odd(url, "exit")).toMatchObject({ __error__: { error: "WorkerLostError" } });
    await expect.poll(output).toContain("a worker thread ended");
    expect(output()).toMatch(
      /"process.exit in a graph ended its worker thread","code":3,"stack":"[^"]*graphs\.mjs:\d+/,
    );
    expect(await odd(url, "plain")).toMatchObject({ seen: "plain" });
  });

  test("an error that nobody caught is logged, and costs no run in that thread", async () => {
    const { url, output } = await served(1);
    const run = await began(url, "wait");
    for (const what of ["late", "reject", "odd", "none"]) {
      expect(await odd(url, what), what).toMatchObject({ seen: what });
    }
    await expect.poll(output).toContain("an error that nobody caught");
    await expect.poll(() => output().split("a rejected promise that nobody handled").length).toBe(4);
    expect(output()).toMatch(/thrown too late.*graphs\.mjs:\d+/s);
    expect(output()).toMatch(/rejected too late.*graphs\.mjs:\d+/s);
    // A value that cannot be cloned fails its own run only.
    expect(await odd(url, "deep")).toMatchObject({ __error__: { error: "DataCloneError" } });
    expect(await run.record()).toMatchObject({ status: "running" });
    expect(output()).not.toContain("a worker thread ended");
    await cancelled(run);
  });

  test("a node that blocks its thread stops neither the server nor other threads, and can be cancelled", async () => {
    const { url, output } = await served(2);
    const run = await began(url, "block");
    // The other worker gets the next calls, because it has fewer.
    for (let i = 0; i < 5; i++) expect(await odd(url, "plain")).toMatchObject({ seen: "plain" });
    expect((await get(`${url}/ok`)).status).toBe(200);
    await cancelled(run);
    // A worker that does not respond is ended and replaced.
    await expect.poll(output).toContain("a worker thread ended");
    expect(output()).not.toContain("process.exit in a graph ended its worker thread");
    await wait(url, run.thread, { assistant_id: "odd", input: { what: "plain" } });
  });

  test("runs that come before and after the cancel of a node that blocks its thread end as ever", async () => {
    const { url, output } = await served(1);
    const run = await began(url, "block");
    const plain = async () =>
      wait(url, await newThread(url), { assistant_id: "where", input: { thread: 0 } });
    const before = [plain(), plain()];
    const other = await began(url, "plain");
    await cancelled(run);
    await cancelled(other);
    const ended = await Promise.all([...before, plain(), plain()]);
    for (const state of ended) expect(state).toEqual({ thread: expect.any(Number) as number });
    expect(output()).toContain("a worker thread ended");
  });

  test("graphs that a worker cannot load are refused at the start", () => {
    const only =
      "import { isMainThread } from 'node:worker_threads';\nif (!isMainThread) throw new Error('not here');\n";
    const at = project("refused", only + GRAPHS);
    const { status, stderr } = heddle(["start", "--port", "0", ...argumentsOf(at, 1)]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/In a worker thread: graphs.*not here/s);
  });

  test("end where the start fails: the process ends by itself", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const program = `import { createApp } from "heddle";
      const config = new URL("heddle.json", import.meta.url).pathname;
      await createApp({ config, port: ${port}, workers: 1 }).catch(({ code }) => console.log(code));`;
    const file = join(project("failed-start"), "start.mjs");
    writeFileSync(file, program);
    const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 30_000 });
    expect(stdout).toBe("server.address\n");
  });

  test.each(["-1", "65", "many"])("--workers=%s is refused by name", (workers) => {
    const { status, stderr } = heddle(["start", `--workers=${workers}`]);
    expect(status).toBe(2);
    expect(stderr).toContain(`--workers "${workers}" is not a whole number from 0 to 64`);
  });
});

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/ports/clock.ts";
import { check } from "../../src/cli/maintenance.ts";
import { systemClock } from "../../src/platform/clock.ts";
import * as graphs from "../fixtures/data-0.1/graphs.ts";
import { reviewed } from "../fixtures/data-0.1/langgraph.ts";
import { served } from "../langgraph/support.ts";
import { directory, serve } from "./support/server.ts";
import { get, post, postJson } from "./support/wire.ts";

// Directories that version 0.1 wrote, and its responses about them: see their README.
const fixtures = join(import.meta.dirname, "../fixtures/data-0.1");

interface Run {
  readonly run_id: string;
  readonly status: string;
  readonly metadata: { readonly [name: string]: unknown };
}
interface State {
  readonly values: { readonly log?: readonly string[] };
  readonly next: readonly string[];
  readonly checkpoint: { readonly checkpoint_id: string };
}
interface Thread {
  readonly thread: { readonly thread_id: string };
  readonly state: State;
  readonly history: readonly State[];
  readonly runs: readonly Run[];
}
interface Assistant {
  readonly assistant_id: string;
  readonly name: string;
  readonly metadata: { readonly [name: string]: unknown };
}
interface Answers {
  readonly made_at: string;
  /** A run in progress without a thread. */
  readonly alone: Run & { readonly thread_id: string };
  readonly threads: { readonly [name: string]: Thread };
  readonly stream: { readonly run_id: string; readonly events: string };
  readonly assistants: readonly Assistant[];
  readonly versions: readonly { readonly assistant_id: string }[];
  readonly crons: readonly { readonly cron_id: string }[];
  readonly items: readonly { readonly namespace: readonly string[] }[];
  readonly deliveries: readonly { readonly id: string }[];
}

const langGraphs = await served({ reviewed });

/** Threads whose runs continue when a server opens the directory. */
const GOES_ON: ReadonlySet<string> = new Set(["queued", "delayed"]);
const MINUTE = 60_000;
const threadTtl = { interval: 20 };

const json = async <T>(response: Promise<Response>) => (await (await response).json()) as T;

async function unpack(name: string): Promise<{ data: string; answers: Answers }> {
  const folder = await directory();
  execFileSync("tar", ["-xzf", join(fixtures, `${name}.tar.gz`), "-C", folder]);
  const answers = JSON.parse(readFileSync(join(folder, "answers.json"), "utf8")) as Answers;
  return { data: join(folder, "data"), answers };
}

/** The clock of a server that opens the directory this long after it was written. */
function clockAfter({ made_at }: Answers, ms: number): Clock {
  const shift = Date.parse(made_at) + ms - systemClock.now();
  return { now: () => systemClock.now() + shift, mono: () => systemClock.mono() };
}

async function open(name: string, ms: number) {
  const { data, answers } = await unpack(name);
  const server = await serve({ graphs, langGraphs, threadTtl, data, clock: clockAfter(answers, ms) });
  const { url } = server;
  const idOf = (thread: string) => answers.threads[thread]?.thread.thread_id ?? "";
  const at = (thread: string) => `${url}/threads/${idOf(thread)}`;
  const stateOf = (thread: string) => json<State>(get(`${at(thread)}/state`));
  const runsOf = async (thread: string) =>
    (await json<readonly Run[]>(get(`${at(thread)}/runs?limit=100`))).toReversed();
  const answer = (thread: string, assistant_id: string, resume: unknown) =>
    postJson<object>(`${at(thread)}/runs/wait`, { assistant_id, command: { resume } });
  return { server, url, data, answers, at, stateOf, runsOf, answer };
}

describe.each(["stopped", "killed"])("a data directory of 0.1, its server %s", (name) => {
  test("is whole, before today's server has opened it and after", async () => {
    const { data } = await unpack(name);
    const lines: string[] = [];
    expect(await check(data, (line) => lines.push(line))).toBe(0);
    const server = await serve({ graphs, langGraphs, data });
    await server.close(0);
    expect(await check(data, (line) => lines.push(line))).toBe(0);
    expect(lines).toEqual([`${data} is whole`, `${data} is whole`]);
  });

  test("has every thread, with its state, its history in order and its runs", async () => {
    const { answers, at, server } = await open(name, MINUTE);
    const quiet = Object.entries(answers.threads).filter(([thread]) => !GOES_ON.has(thread));
    expect(quiet.length).toBe(12);
    for (const [thread, expected] of quiet) {
      expect({
        thread: await json(get(at(thread))),
        state: await json(get(`${at(thread)}/state?subgraphs=true`)),
        history: await json(get(`${at(thread)}/history?limit=100`)),
        runs: await json(get(`${at(thread)}/runs?limit=100`)),
      }).toMatchObject(expected);
    }
    const found = await postJson<readonly object[]>(`${server.url}/threads/search`, {
      metadata: { name: "history" },
    });
    expect(found).toHaveLength(1);
    expect(server.complaints).toEqual([]);
  });

  test("has its runs in the search over all threads", async () => {
    const { answers, url, server } = await open(name, MINUTE);
    const found = await postJson<readonly Run[]>(`${url}/runs/search`, { limit: 1000 });
    const ids = found.map(({ run_id }) => run_id);
    const expected = Object.values(answers.threads).flatMap(({ runs }) => runs);
    expect(ids).toEqual(expect.arrayContaining(expected.map(({ run_id }) => run_id)));
    const failed = await postJson<readonly Run[]>(`${url}/runs/search`, { status: "error", limit: 1000 });
    const known = expected.filter(({ status }) => status === "error").map(({ run_id }) => run_id);
    expect(known.length).toBeGreaterThan(0);
    expect(failed.map(({ run_id }) => run_id)).toEqual(expect.arrayContaining(known));
    expect(server.complaints).toEqual([]);
  });

  test("has the events of a run that ended, under the same ids", async () => {
    const { answers, at } = await open(name, MINUTE);
    const { run_id, events } = answers.stream;
    const response = await get(`${at("history")}/runs/${run_id}/stream`, { "last-event-id": "-1" });
    const lines = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith(":"));
    expect(lines(events).length).toBeGreaterThan(20);
    // Since then, every end of a task has had a member `error`.
    const withError = (line: string) => line.replace(/"interrupts":\[\]\}$/, '"interrupts":[],"error":null}');
    expect(lines(await response.text())).toEqual(lines(events).map(withError));
  });

  test("has assistants with their versions, crons, items and deliveries that were given up", async () => {
    const { answers, url } = await open(name, MINUTE);
    const byId = <T extends object>(list: readonly T[], id: keyof T) =>
      new Map(list.map((one) => [one[id], one]));
    const assistants = await postJson<Answers["assistants"]>(`${url}/assistants/search`, { limit: 100 });
    // The default assistants of the graphs are created at each start.
    const own = answers.assistants.filter((one) => one.metadata["created_by"] !== "system");
    expect(own).toHaveLength(1);
    for (const one of own) {
      expect(byId(assistants, "assistant_id").get(one.assistant_id)).toMatchObject(one);
    }
    expect(own.map((one) => one.name)).toEqual(["second clerk"]);
    const [{ assistant_id } = { assistant_id: "" }] = answers.versions;
    const versions = await postJson(`${url}/assistants/${assistant_id}/versions`, { limit: 100 });
    expect(answers.versions).toHaveLength(3);
    expect(versions).toMatchObject(answers.versions);
    const crons = await postJson<Answers["crons"]>(`${url}/runs/crons/search`, { limit: 100 });
    expect(answers.crons).toHaveLength(3);
    expect(crons).toHaveLength(3);
    for (const one of answers.crons) expect(byId(crons, "cron_id").get(one.cron_id)).toMatchObject(one);
    const { items } = await postJson<{ items: object[] }>(`${url}/store/items/search`, {
      namespace_prefix: [],
      limit: 100,
    });
    // The continued run writes the item of the notes again.
    const put = answers.items.filter(({ namespace }) => namespace[0] !== "notes");
    expect(put).toHaveLength(3);
    expect(items).toHaveLength(4);
    expect(items).toEqual(expect.arrayContaining(put.map((one) => expect.objectContaining(one))));
    expect(answers.deliveries).toHaveLength(1);
    expect(await json(get(`${url}/webhooks/deliveries?status=dead`))).toMatchObject(answers.deliveries);
  });

  test("asks its questions still, and takes the answers", async () => {
    const { stateOf, answer } = await open(name, MINUTE);
    expect((await stateOf("asking")).next).toEqual(["ask"]);
    await answer("asking", "asking", "again");
    expect((await stateOf("asking")).values.log).toEqual(["yes", "again", "done"]);
    await answer("nested", "nested", "one");
    await answer("nested", "nested", "two");
    const { log } = (await stateOf("nested")).values;
    expect(log?.slice(0, 2)).toEqual(["before", "before"]);
    expect(log?.slice(-4)).toEqual(["one", "two", "done", "after"]);
    await answer("reviewed", "reviewed", "fine");
    const reviewed = (await stateOf("reviewed")).values.log;
    expect(reviewed?.slice(-2)).toEqual(["answered fine", "after"]);
  });

  test("goes on with the run that was under way, and with those behind it in their order", async () => {
    const { answers, stateOf, runsOf } = await open(name, MINUTE);
    const before = answers.threads["queued"]?.runs.toReversed() ?? [];
    expect(before.map((run) => run.status)).toEqual(["running", "pending", "pending"]);
    await expect
      .poll(async () => (await runsOf("queued")).map((run) => run.status))
      .toEqual(["success", "success", "success"]);
    expect((await runsOf("queued")).map((run) => run.run_id)).toEqual(before.map((run) => run.run_id));
    expect((await stateOf("queued")).values.log).toEqual([
      "began a",
      "ended a",
      "began b",
      "ended b",
      "wrote c",
      "filed",
    ]);
  });

  test("goes on with a run without a thread, which can be joined for a minute then", async () => {
    const { answers, url } = await open(name, MINUTE);
    const { run_id, thread_id } = answers.alone;
    const ended = async () => (await (await get(`${url}/metrics`)).text()).split("\n");
    // The two queued runs, and this one.
    await expect
      .poll(ended)
      .toContainEqual(expect.stringMatching(/^heddle_runs_ended_total\{.*graph="held",.*"success".*\} 3$/));
    await expect.poll(async () => (await get(`${url}/threads/${thread_id}`)).status).toBe(404);
    expect((await get(`${url}/runs/${run_id}/join`)).status).toBe(200);
  });

  test("knows a request again by its idempotency key", async () => {
    const { answers, at, runsOf } = await open(name, MINUTE);
    const [first] = answers.threads["repeated"]?.runs ?? [];
    const body = JSON.stringify({ assistant_id: "notes", input: { text: "once" } });
    const headers = { "content-type": "application/json", "idempotency-key": "only-once" };
    const again = await fetch(`${at("repeated")}/runs`, { method: "POST", headers, body });
    expect(await again.json()).toMatchObject({ run_id: first?.run_id });
    expect(await runsOf("repeated")).toHaveLength(1);
  });

  test("starts a delayed run when its time has come, and not before", async () => {
    const early = await open(name, MINUTE);
    expect((await early.runsOf("delayed")).map((run) => run.status)).toEqual(["pending", "pending"]);
    const { stateOf, runsOf } = await open(name, 6 * MINUTE);
    await expect
      .poll(async () => (await runsOf("delayed")).map((run) => run.status))
      .toEqual(["success", "pending"]);
    expect((await stateOf("delayed")).values.log).toEqual(["wrote soon", "filed"]);
  });

  test("runs its crons at their times, and deletes threads whose life is over", async () => {
    const { at, url, answers, runsOf } = await open(name, 380 * 24 * 60 * MINUTE);
    await expect.poll(async () => (await runsOf("cron")).map((run) => run.status)).toEqual(["success"]);
    await expect.poll(async () => (await get(at("expiring"))).status).toBe(404);
    const off = answers.crons.find((one) => (one as { enabled?: boolean }).enabled === false);
    const crons = await postJson<Answers["crons"]>(`${url}/runs/crons/search`, { limit: 100 });
    expect(crons.find((one) => one.cron_id === off?.cron_id)).toMatchObject(off ?? {});
  });

  test("takes new work: a run on an old thread, from its old checkpoint", async () => {
    const { answers, at, stateOf } = await open(name, MINUTE);
    const { history, state } = answers.threads["history"] as Thread;
    await post(`${at("history")}/runs/wait`, { assistant_id: "notes", input: { text: "new" } });
    expect((await stateOf("history")).values.log).toEqual([
      ...(state.values.log ?? []),
      "wrote new",
      "filed",
    ]);
    const older = history.findLast((one) => one.next.length === 0) as State;
    expect(older.values.log).toEqual(["wrote one", "filed"]);
    await post(`${at("history")}/runs/wait`, {
      assistant_id: "notes",
      input: { text: "fork" },
      checkpoint: older.checkpoint,
    });
    expect((await stateOf("history")).values.log).toEqual(["wrote one", "filed", "wrote fork", "filed"]);
  });
});

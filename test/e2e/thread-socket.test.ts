import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { streamModes } from "../../src/model/run.ts";
import { gated, latch, unlessAborted } from "./support/latches.ts";
import { expectEqual } from "../fixtures/expect-equal.ts";
import { isAgain } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { dial, type Dialed, type Frame } from "./support/sockets.ts";
import { ALL_MODES, talking } from "./support/all-modes-graph.ts";
import { events, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const NUMBERED = { "heddle.msgpack": true, text: false } as const;

interface Run {
  readonly run_id: string;
  readonly status: string;
}

/** A run's own events, by its server-sent events, as the thread shows them: its numbers begin at `base`. */
async function shown(
  url: string,
  thread: string,
  run_id: string,
  base: number,
  query = "",
): Promise<Frame[]> {
  const text = await (await get(`${url}/threads/${thread}/runs/${run_id}/stream${query}`)).text();
  return events(text).map(({ id, event, data }) => ({ id: String(base + Number(id)), event, data, run_id }));
}

/** The end of a run that succeeded: its number follows that of the last event. */
const end = (run_id: string, last: number): Frame => ({
  id: String(last + 1),
  event: "run_done",
  data: { run_id, status: "success" },
  run_id,
});

/** The same of several runs, in order, one after the other, each with its end. */
async function all(url: string, thread: string, runs: readonly string[], query = ""): Promise<Frame[]> {
  const frames: Frame[] = [];
  let base = 1;
  for (const run of runs) {
    const every = await shown(url, thread, run, base, `?stream_mode=${streamModes.join()}`);
    const last = Number(every.at(-1)?.id ?? base - 1);
    frames.push(...(await shown(url, thread, run, base, query)), end(run, last));
    base = last + 2;
  }
  return frames;
}

describeOverEachTransport("the thread's socket", (transport) => {
  const echo = graph({
    state: { log: list<string>() },
    nodes: {
      say: async (_, ctx) => {
        ctx.emit({ said: ctx.runId });
        return { log: ["said"] };
      },
    },
    edges: { start: "say" },
  });

  const start = async () => {
    const { held, waits, open } = gated();
    const { url, ...server } = await serve({ transport, graphs: { held, echo } });
    const thread = await newThread(url);
    const address = `${url}/threads/${thread}/stream`;
    const run = async (graphName: string, input: unknown = {}, more = {}) => {
      const body = { assistant_id: graphName, input, stream_mode: ALL_MODES, ...more };
      return (await postJson<Run>(`${url}/threads/${thread}/runs`, body)).run_id;
    };
    const ended = async (id: string) => {
      await (await get(`${url}/threads/${thread}/runs/${id}/join`)).text();
      return id;
    };
    return { url, thread, address, waits, open, run, ended, server };
  };

  test.each(Object.entries(NUMBERED))(
    "follows run after run; ids are the thread's (%s)",
    async (_, packed) => {
      const { url, thread, address, run, ended } = await start();
      const socket = await dial(address, { packed });
      const first = await ended(await run("echo"));
      const second = await ended(await run("echo"));
      const expected = await all(url, thread, [first, second], `?stream_mode=${ALL_MODES.join()}`);
      await socket.until(({ frames }) => frames.length >= expected.length);
      expect(socket.frames).toEqual(expected);
      expect(socket.odd).toBe(0);
      expect(new Set(socket.frames.map(({ id }) => id)).size).toBe(expected.length);
    },
  );

  test("resumes after any id, over all stored runs", async () => {
    const { url, thread, address, run, ended } = await start();
    const runs: string[] = [];
    for (let i = 0; i < 12; i++) runs.push(await ended(await run("echo")));
    const expected = await all(url, thread, runs);
    const whole = await dial(`${address}?last_event_id=-1`);
    await whole.until(({ frames }) => frames.length >= expected.length);
    expect(whole.frames).toEqual(expected);
    for (const [at, { id }] of expected.entries()) {
      const socket = await dial(address, { headers: { "last-event-id": id } });
      await socket.until(({ frames }) => frames.length >= expected.length - at - 1);
      expect(socket.frames, id).toEqual(expected.slice(at + 1));
      socket.socket.terminate();
    }
  });

  test("several that read large states at the same time get everything", async () => {
    const { url, thread, address, run, ended } = await start();
    const large = { log: ["x".repeat(1_000_000)] };
    const runs: string[] = [];
    for (let i = 0; i < 4; i++) runs.push(await ended(await run("echo", large)));
    const expected = await all(url, thread, runs, "?stream_mode=values");
    const sockets = await Promise.all(
      Array.from({ length: 8 }, () => dial(`${address}?last_event_id=-1&stream_mode=values`)),
    );
    for (const socket of sockets) {
      await socket.until(({ frames }) => frames.length >= expected.length);
      expect(socket.frames).toHaveLength(expected.length);
      expectEqual(socket.frames, expected);
    }
  });

  test("without an id: the run in progress from its start, and what follows", async () => {
    const { url, thread, address, run, ended, waits, open } = await start();
    await ended(await run("echo"));
    const second = await run("held", { name: "b" });
    await waits("b");
    const socket = await dial(address);
    await socket.until(({ frames }) => frames.length > 2);
    open("b");
    await ended(second);
    const third = await ended(await run("echo"));
    const expected = (await all(url, thread, [await oldest(url, thread), second, third])).filter(
      ({ run_id }) => run_id === second || run_id === third,
    );
    await socket.until(({ frames }) => frames.length >= expected.length);
    expect(socket.frames).toEqual(expected);
  });

  test("a run that waits is shown when it begins; in the modes that are asked for", async () => {
    const { address, run, ended, waits, open } = await start();
    const socket = await dial(`${address}?stream_mode=custom`);
    const first = await run("held", { name: "a" });
    await waits("a");
    const second = await run("echo", {}, { multitask_strategy: "enqueue" });
    await socket.until(({ frames }) => frames.length > 0);
    expect(socket.frames.map(({ run_id }) => run_id)).toEqual([first]);
    open("a");
    await ended(second);
    await socket.until(({ frames }) => frames.filter(({ event }) => event === "run_done").length === 2);
    const { frames } = socket;
    expect(frames.map(({ event, run_id }) => [event, run_id])).toEqual([
      ["metadata", first],
      ["run_done", first],
      ["metadata", second],
      ["custom", second],
      ["run_done", second],
    ]);
  });

  test("a number is never given twice, also after a rollback", async () => {
    const { url, thread, address, run, ended, waits } = await start();
    const first = await ended(await run("echo"));
    const socket = await dial(`${address}?last_event_id=-1`);
    const second = await run("held", { name: "b" });
    await waits("b");
    await socket.until(({ frames }) => frames.at(-1)?.run_id === second);
    const cancelled = await post(`${url}/threads/${thread}/runs/${second}/cancel?wait=1&action=rollback`);
    expect(cancelled.status).toBe(204);
    await socket.until(({ frames }) => frames.at(-1)?.event === "run_done");
    expect(socket.frames.at(-1)).toMatchObject({ run_id: second, data: { run_id: second, status: null } });
    const seen = socket.frames.filter(({ run_id }) => run_id === second);
    const resumed = await Promise.all(
      seen.map(async ({ id }) => ({ id, socket: await dial(`${address}?last_event_id=${id}`) })),
    );
    const third = await ended(await run("echo"));
    const isThird = ({ event, run_id }: Frame) => event === "run_done" && run_id === third;
    await socket.until(({ frames }) => frames.some(isThird));
    // Nothing that a client has comes again, also while the server remembers the run.
    for (const { id, socket: again } of resumed) {
      await again.until(({ frames }) => frames.some(isThird));
      expect(again.frames.filter((frame) => Number(frame.id) <= Number(id))).toEqual([]);
      expect(again.frames.filter(({ run_id }) => run_id === third)).toEqual(
        socket.frames.filter(({ run_id }) => run_id === third),
      );
      expect(new Set(again.frames.map((frame) => frame.id)).size).toBe(again.frames.length);
    }
    const ids = socket.frames.map(({ id }) => Number(id));
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect(new Set(socket.frames.map(({ run_id }) => run_id))).toEqual(new Set([first, second, third]));
    // What was taken back is not there any more; what follows it is, after any of its numbers too.
    const gone = socket.frames.find(({ run_id }) => run_id === second)?.id;
    const later = await dial(`${address}?last_event_id=${gone}`);
    const rest = socket.frames.filter(({ run_id }) => run_id === third);
    await later.until(({ frames }) => frames.length >= rest.length);
    expect(later.frames).toEqual(rest);
  });

  test("over a restart of the server on the same data, nothing is lost and nothing comes twice", async () => {
    const data = await directory();
    const { talk } = talking();
    const one = await serve({ transport, data, graphs: { echo, talk } });
    const thread = await newThread(one.url);
    const run = async (url: string, id: string, input: unknown = {}) => {
      const body = { assistant_id: id, input, stream_mode: streamModes };
      return (await postJson<Run>(`${url}/threads/${thread}/runs`, body)).run_id;
    };
    const first = await dial(`${one.url}/threads/${thread}/stream`);
    const a = await run(one.url, "echo");
    await (await get(`${one.url}/threads/${thread}/runs/${a}/join`)).text();
    const b = await run(one.url, "talk");
    await first.until(({ frames }) => frames.some(({ data: said }) => said === "waiting"));
    const half = first.frames.length - 2;
    await one.close(0);
    expect((await first.closed).code).toBe(1012);
    const again = talking();
    again.open();
    const two = await serve({ transport, data, graphs: { echo, talk: again.talk } });
    const id = first.frames[half]?.id;
    const second = await dial(`${two.url}/threads/${thread}/stream?last_event_id=${id}`);
    await (await get(`${two.url}/threads/${thread}/runs/${b}/join`)).text();
    const c = await run(two.url, "echo");
    await (await get(`${two.url}/threads/${thread}/runs/${c}/join`)).text();
    const expected = await all(two.url, thread, [a, b, c]);
    const frames = [...first.frames.slice(0, half + 1), ...second.frames];
    await second.until(() => half + 1 + second.frames.length >= expected.length);
    expect([...first.frames.slice(0, half + 1), ...second.frames]).toEqual(expected);
    expect(frames.length).toBeGreaterThan(20);
  });

  test("a read wakes no actor", async () => {
    const { address, run, ended, server } = await start();
    await ended(await run("echo"));
    const data = await directory();
    const one = await serve({ transport, data, graphs: { echo } });
    const thread = await newThread(one.url);
    const body = { assistant_id: "echo", input: { log: [] } };
    await postJson(`${one.url}/threads/${thread}/runs/wait`, body);
    await one.close(0);
    const two = await serve({ transport, data, graphs: { echo } });
    const socket = await dial(`${two.url}/threads/${thread}/stream?last_event_id=-1`);
    await socket.until(({ frames }) => frames.length >= 3);
    expect(two.system.counts.live).toBe(0);
    expect(server.system.counts.live).toBe(1);
    expect(address).toContain("/stream");
  });

  describe("commands", () => {
    test("run, resume and cancel, each acknowledged once, after it is stored", async () => {
      const { url, thread, address } = await start();
      const socket = await dial(address);
      const ran = await socket.ask({
        type: "run",
        id: "r1",
        assistant_id: "approval",
        input: { topic: "tea" },
      });
      expect(ran).toEqual({ type: "ack", id: "r1", run_id: expect.any(String) });
      const stored = await get(`${url}/threads/${thread}/runs/${ran.run_id}`);
      expect(stored.status).toBe(200);
      await socket.until(({ frames }) =>
        frames.some(({ data }) => JSON.stringify(data).includes("__interrupt__")),
      );
      await (await get(`${url}/threads/${thread}/runs/${ran.run_id}/join`)).text();
      const answered = await socket.ask({ type: "resume", id: 2, resume: { ok: true } });
      expect(answered).toEqual({ type: "ack", id: 2, run_id: expect.any(String) });
      await (await get(`${url}/threads/${thread}/runs/${answered.run_id}/join`)).text();
      const state = (await (await get(`${url}/threads/${thread}/state`)).json()) as { next: unknown[] };
      expect(state.next).toEqual([]);
      expect(await socket.ask({ type: "cancel", id: 3 })).toEqual({ type: "ack", id: 3, run_id: null });
      expect(socket.answers).toHaveLength(3);
    });

    test("cancel finds the run that was asked for just before it, and says which", async () => {
      const { url, thread, address } = await start();
      const socket = await dial(address);
      socket.send({ type: "run", id: 1, assistant_id: "held", input: { name: "x" } });
      socket.send({ type: "cancel", id: 2 });
      await socket.until(({ answers }) => answers.length >= 2);
      const [ran, cancelled] = socket.answers;
      expect(cancelled).toEqual({ type: "ack", id: 2, run_id: ran?.run_id });
      await (await get(`${url}/threads/${thread}/runs/${ran?.run_id}/join`)).text();
      const record = (await (await get(`${url}/threads/${thread}/runs/${ran?.run_id}`)).json()) as Run;
      expect(record.status).toBe("interrupted");
    });

    test("sent twice with one id, it is done and acknowledged once, and then refused by that id", async () => {
      const { url, thread, address } = await start();
      const socket = await dial(address);
      const command = {
        type: "run",
        assistant_id: "echo",
        input: { log: [] },
        multitask_strategy: "enqueue",
      };
      for (let i = 0; i < 15; i++) {
        socket.send({ ...command, id: i });
        socket.send({ ...command, id: i });
      }
      await socket.until(({ answers }) => answers.length >= 30);
      expect((await socket.ask({ type: "cancel", id: "last" })).type).toBe("ack");
      expect(socket.answers.map(({ type, id, detail }) => [type, id, detail])).toEqual([
        ...Array.from({ length: 15 }, (_, i) => [
          ["ack", i, undefined],
          ["error", i, `id ${i} is that of an earlier command on this socket`],
        ]).flat(),
        ["ack", "last", undefined],
      ]);
      const runs = (await (await get(`${url}/threads/${thread}/runs?limit=100`)).json()) as Run[];
      expect(runs).toHaveLength(15);
      const acknowledged = socket.answers.slice(0, 30).filter(({ type }) => type === "ack");
      expect(new Set(acknowledged.map(({ run_id }) => run_id))).toEqual(
        new Set(runs.map(({ run_id }) => run_id)),
      );
    });

    test("what is wrong is answered as over HTTP, and does no harm", async () => {
      const { url, thread, address } = await start();
      const socket = await dial(address);
      const run = { type: "run", assistant_id: "echo" };
      const bad: readonly (readonly [command: object, status: number, detail: RegExp])[] = [
        [{ ...run, assistant_id: "nobody" }, 404, /nobody/],
        [{ type: "run" }, 422, /assistant_id is required/],
        [{ ...run, stream_mode: ["nope"] }, 422, /stream_mode/],
        [{ ...run, multitask_strategy: "maybe" }, 422, /multitask_strategy/],
        [{ ...run, after_seconds: -5 }, 422, /after_seconds/],
        [{ ...run, on_disconnect: "cancel" }, 422, /on_disconnect/],
        [{ type: "resume", assistant_id: "echo" }, 422, /resume is required/],
        [
          { type: "resume", resume: 1 },
          422,
          /^assistant_id is required: .*no interrupt waits for an answer$/,
        ],
        [{ type: "cancel", run_id: NOBODY }, 404, /not found/],
        [{ type: "cancel", run_id: "x" }, 422, /run_id/],
        [{ type: "cancel", action: "kill" }, 422, /action/],
        [{ type: "cancel", wait: "yes" }, 422, /wait/],
        [{ type: "cancel", action: "rollback", reason: "why" }, 422, /reason/],
        [{ type: "sing" }, 422, /type must be one of/],
        [{}, 422, /type/],
      ];
      for (const [at, [command, status, detail]] of bad.entries()) {
        const told = await socket.ask({ id: at, ...command });
        expect(told, JSON.stringify(command)).toMatchObject({ type: "error", id: at, status });
        expect(told.detail).toMatch(detail);
      }
      for (const [text, status, detail] of [
        ["{", 400, /^Malformed JSON in the command$/],
        ["[]", 422, /^command must be a JSON object$/],
        ["[".repeat(70_000), 422, /^command is nested deeper than/],
        ['{"type":"run"}', 422, /^id must be/],
        ['{"type":"run","id":{}}', 422, /^id must be/],
        [`{"type":"run","id":"${"x".repeat(201)}"}`, 422, /^id must be/],
      ] as const) {
        const before = socket.answers.length;
        socket.send(text);
        await socket.until(({ answers }) => answers.length > before);
        expect(socket.answers.at(-1), text).toMatchObject({ type: "error", id: null, status });
        expect(socket.answers.at(-1)?.detail).toMatch(detail);
      }
      socket.socket.send(Buffer.from([1, 2, 3]));
      await socket.until(({ answers }) => answers.length >= bad.length + 7);
      expect(socket.answers.at(-1)).toMatchObject({ id: null, status: 422 });
      expect(await (await get(`${url}/threads/${thread}/runs`)).json()).toEqual([]);
      expect((await socket.ask({ ...run, id: "good" })).type).toBe("ack");
    });

    test("conflict is 409; more than can be done at once is 429, and may be sent again", async () => {
      const { address } = await start();
      const socket = await dial(address);
      await socket.ask({ type: "run", id: "a", assistant_id: "held", input: { name: "a" } });
      const refused = await socket.ask({ type: "run", id: "b", assistant_id: "held", input: { name: "b" } });
      expect(refused).toMatchObject({ type: "error", status: 409 });
      for (let i = 0; i < 200; i++) socket.send({ type: "cancel", id: i, run_id: NOBODY });
      await socket.until(({ answers }) => answers.length >= 202);
      const statuses = new Set(socket.answers.slice(2).map(({ status }) => status));
      expect([...statuses].every((status) => status === 404 || status === 429)).toBe(true);
      const busy = socket.answers.find(({ status }) => status === 429);
      if (busy !== undefined) {
        const before = socket.answers.length;
        socket.send({ type: "cancel", id: busy.id, run_id: NOBODY });
        await socket.until(({ answers }) => answers.length > before);
        expect(socket.answers.at(-1)).toMatchObject({ id: busy.id, status: 404 });
      }
      expect(await socket.ask({ type: "cancel", id: "end" })).toMatchObject({ type: "ack" });
    });

    test("one that is too long closes the socket, and says why", async () => {
      const { url } = await serve({ transport });
      const socket = await dial(`${url}/threads/${await newThread(url)}/stream`);
      socket.send({ type: "run", id: 1, assistant_id: "agent", input: "x".repeat(1024 * 1024) });
      expect(await socket.closed).toEqual({ code: 1009, reason: "A message has at most 1 MiB" });
    });

    test("with MessagePack the answers are packed too; commands are text", async () => {
      const { address } = await start();
      const socket = await dial(address, { packed: true });
      expect(socket.socket.protocol).toBe("heddle.msgpack");
      expect(
        await socket.ask({ type: "run", id: 1, assistant_id: "echo", input: { log: [] } }),
      ).toMatchObject({
        type: "ack",
      });
      await socket.until(({ frames }) => frames.length >= 3);
      expect(socket.odd).toBe(0);
    });
  });

  test("unknown and foreign threads are not there; keys and tokens open it", async () => {
    const { url } = await serve({ transport, graphs: { echo }, keys: ["one", "acme:two"] });
    const made = await fetch(`${url}/threads`, {
      method: "POST",
      headers: { "x-api-key": "two" },
      body: "{}",
    });
    const { thread_id } = (await made.json()) as { thread_id: string };
    const address = `${url}/threads/${thread_id}/stream`;
    const code = async (socket: Dialed) => (await socket.closed).code;
    expect(await code(await dial(address))).toBe(4401);
    expect(await code(await dial(address, { headers: { "x-api-key": "one" } }))).toBe(4404);
    const issued = await fetch(`${url}/auth/token`, { method: "POST", headers: { "x-api-key": "two" } });
    const { token } = (await issued.json()) as { token: string };
    const socket = await dial(`${address}?token=${encodeURIComponent(token)}`);
    expect(await socket.ask({ type: "run", id: 1, assistant_id: "echo", input: { log: [] } })).toMatchObject({
      type: "ack",
    });
    const other = await dial(`${url}/threads/${NOBODY}/stream`, { headers: { "x-api-key": "two" } });
    expect(await other.closed).toMatchObject({ code: 4404, reason: `Thread with ID ${NOBODY} not found` });
  });

  // Over both transports, whichever is asked for.
  test.skipIf(isAgain)("a thousand sockets on one run each get every event", async () => {
    const reached = latch();
    const burst = graph({
      state: {},
      nodes: {
        emit: async (_, ctx) => {
          await unlessAborted(reached.passed, ctx.signal);
          for (let i = 0; i < 50; i++) ctx.emit({ i });
        },
      },
      edges: { start: "emit" },
    });
    const { url } = await serve({ transport, graphs: { burst } });
    const thread = await newThread(url);
    const body = { assistant_id: "burst", input: {}, stream_mode: ["custom", "updates"] };
    const { run_id } = await postJson<Run>(`${url}/threads/${thread}/runs`, body);
    const path = `${url}/threads/${thread}`;
    const sockets: Dialed[] = [];
    for (let i = 0; i < 20; i++) {
      const some = Array.from({ length: 50 }, (_, n) =>
        dial(n % 2 === 0 ? `${path}/runs/${run_id}/stream` : `${path}/stream`),
      );
      sockets.push(...(await Promise.all(some)));
    }
    reached.pass();
    const expected = await shown(url, thread, run_id, 1);
    expect(expected.length).toBe(52);
    const every = await shown(url, thread, run_id, 1, `?stream_mode=${streamModes.join()}`);
    const ended = end(run_id, Number(every.at(-1)?.id));
    for (const [at, socket] of sockets.entries()) {
      const isOfThread = at % 2 === 1;
      await socket.until(({ frames }) => frames.length >= expected.length + (isOfThread ? 1 : 0));
      if (isOfThread) expectEqual(socket.frames, [...expected, ended]);
      else
        expectEqual(
          socket.frames.map(({ data }) => data),
          expected.map(({ data }) => data),
        );
    }
  });
});

/** The thread's first run. */
async function oldest(url: string, thread: string): Promise<string> {
  const runs = (await (await get(`${url}/threads/${thread}/runs?limit=100`)).json()) as Run[];
  return runs.at(-1)?.run_id ?? "";
}

import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { graph, list } from "../../src/index.ts";
import { streamModes, threadSocketModes } from "../../src/model/run.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { ALL_MODES, talking } from "./support/all-modes-graph.ts";
import { events, get, newThread, NOBODY, post } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

interface Mirrored {
  readonly frames: readonly unknown[];
  readonly code: number;
  readonly reason: string;
}

/** Reads a run's events from its WebSocket: `opened` resolves when it is open, `ended` with all messages. */
function mirror(url: string, path: string, query = "", headers: Record<string, string> = {}) {
  const socket = new WebSocket(`${url.replace("http", "ws")}${path}/stream${query}`, { headers });
  const frames: unknown[] = [];
  const opened = new Promise<void>((resolve, reject) => {
    socket.on("open", () => resolve());
    socket.on("error", reject);
  });
  opened.catch(() => undefined);
  const ended = new Promise<Mirrored>((resolve, reject) => {
    socket.on("message", (bytes, isBinary) => {
      expect(isBinary).toBe(false);
      frames.push(JSON.parse(String(bytes)));
    });
    socket.on("close", (code, reason) => resolve({ frames, code, reason: String(reason) }));
    socket.on("error", reject);
  });
  ended.catch(() => undefined);
  return { opened, ended };
}

describeOverEachTransport("the WebSocket mirror", (transport) => {
  const start = async () => {
    const talk = talking();
    const { url } = await serve({ transport, graphs: { talk: talk.talk, fails } });
    const thread = await newThread(url);
    const response = await post(`${url}/threads/${thread}/runs/stream`, {
      assistant_id: "talk",
      input: { log: [] },
      stream_mode: ALL_MODES,
    });
    const path = response.headers.get("content-location") ?? "";
    const sse = async (query = "", after?: string) => {
      const headers = after === undefined ? {} : { "last-event-id": after };
      const got = events(await (await get(`${url}${path}/stream${query}`, headers)).text());
      return got.map(({ id, event, data }) => ({ id, event, data }));
    };
    return { ...talk, url, thread, response, path, sse };
  };

  const whole = { code: 1000, reason: "The run has ended" };

  test("one frame an event, the same as the server-sent events, while the run goes on", async () => {
    const { url, path, response, waits, open, sse } = await start();
    await waits;
    const { opened, ended } = mirror(url, path);
    await opened;
    open();
    expect(await ended).toEqual({ ...whole, frames: await sse() });
    const created = events(await response.text());
    expect((await ended).frames).toEqual(created.map(({ id, event, data }) => ({ id, event, data })));
    expect(created.length).toBeGreaterThan(15);
  });

  test("the same after the run has ended", async () => {
    const { url, path, response, open, sse } = await start();
    open();
    await response.text();
    expect(await mirror(url, path).ended).toEqual({ ...whole, frames: await sse() });
  });

  test("resumed after any event, it brings what the server-sent events bring", async () => {
    const { url, path, response, open, sse } = await start();
    open();
    await response.text();
    const all = await sse();
    for (const [at, { id }] of all.entries()) {
      const { ended } = mirror(url, path, `?last_event_id=${id}`);
      expect(await ended).toEqual({ ...whole, frames: all.slice(at + 1) });
    }
    expect(all.slice(6)).toEqual(await sse("", all[5]?.id));
    expect((await mirror(url, path, "?last_event_id=-1").ended).frames).toEqual(all);
  });

  test("resumed while the run goes on, it brings what is missing and what is to come", async () => {
    const { url, path, waits, open, sse } = await start();
    await waits;
    const mirrors = [0, 3, 12].map((id) => ({ id, ...mirror(url, path, `?last_event_id=${id}`) }));
    await Promise.all(mirrors.map(({ opened }) => opened));
    open();
    for (const { id, ended } of mirrors) {
      expect((await ended).frames).toEqual(await sse("", String(id)));
    }
  });

  test.each<[query: string]>([
    ["?stream_mode=values"],
    ["?stream_mode=messages-tuple"],
    ["?stream_mode=custom&stream_mode=updates"],
    ["?stream_mode=custom,updates"],
    [`?stream_mode=${encodeURIComponent('["values","custom"]')}`],
  ])("filtered, it is the filtered stream: %s", async (query) => {
    const { url, path, response, open, sse } = await start();
    open();
    await response.text();
    const filtered = await sse(query);
    expect((await mirror(url, path, query).ended).frames).toEqual(filtered);
    const { id } = filtered[2] as { id: string };
    const resumed = await mirror(url, path, `${query}&last_event_id=${id}`).ended;
    expect(resumed.frames).toEqual(filtered.slice(3));
  });

  test("a failed run's mirror ends with the event error, and in good order", async () => {
    const { url, thread, open, response } = await start();
    open();
    await response.text();
    const failed = await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "fails",
      input: { log: [] },
    });
    await failed.text();
    const { frames, code } = await mirror(url, failed.headers.get("content-location") ?? "").ended;
    expect(frames.at(-1)).toMatchObject({ event: "error", data: { error: "TypeError", message: "kaboom" } });
    expect(code).toBe(1000);
  });

  test("what is wrong is told by the close code: 4404 unknown, 4422 not valid", async () => {
    const { url, thread, path, open } = await start();
    open();
    const run = (id: string, of = thread) => `/threads/${of}/runs/${id}`;
    for (const [at, query, code, reason] of [
      [run(NOBODY), "", 4404, "not found"],
      [run(NOBODY, NOBODY), "", 4404, "not found"],
      [run("nope"), "", 4422, "run_id"],
      [run(NOBODY, "nope"), "", 4422, "thread_id"],
      [path, "?last_event_id=x", 4422, "last_event_id"],
      [path, "?stream_mode=nope", 4422, "stream_mode"],
    ] as const) {
      const ended = await mirror(url, at, query).ended;
      expect(ended.code, `${at}${query}`).toBe(code);
      expect(ended.frames.filter((frame) => Object.hasOwn(frame as object, "event"))).toEqual([]);
      expect(ended.reason).toContain(reason);
    }
    await expect(mirror(url, "/nowhere").ended).rejects.toThrow("404");
  });

  test.each([false, true])(
    "an error too long for the close reason is sent as a message first, as text or packed (%s)",
    async (packed) => {
      const { url, thread, path, open } = await start();
      open();
      for (const [at, modes] of [
        [path, streamModes],
        [`/threads/${thread}`, threadSocketModes],
      ] as const) {
        const socket = await dial(`${url}${at}/stream?stream_mode=nope`, { packed });
        const { code, reason } = await socket.closed;
        const detail = `stream_mode "nope" must be one of ${modes.join(", ")}`;
        expect(socket.answers).toEqual([
          expect.objectContaining({ type: "error", id: null, status: 422, detail }),
        ]);
        expect([socket.frames, socket.odd, code]).toEqual([[], 0, 4422]);
        expect(reason).toMatch(/^stream_mode "nope" must be one of .*\.\.\.$/);
      }
    },
  );

  test("a mirror that goes away leaves run and server alone", async () => {
    const { url, path, waits, open } = await start();
    await waits;
    const socket = new WebSocket(`${url.replace("http", "ws")}${path}/stream`);
    await new Promise((resolve) => socket.once("message", resolve));
    socket.terminate();
    open();
    const values = await (await get(`${url}${path}/join`)).json();
    expect(values).toMatchObject({ log: ["spoke", "held", "left", "right"] });
    expect(await (await get(`${url}${path}`)).json()).toMatchObject({ status: "success" });
  });

  test("without a mode it shows the run's own, and goes on after the header Last-Event-ID", async () => {
    const { url, thread, response, open } = await start();
    open();
    await response.text();
    const created = await post(`${url}/threads/${thread}/runs/stream`, {
      assistant_id: "talk",
      input: { log: [] },
      stream_mode: ["updates", "debug"],
    });
    const own = events(await created.text()).map(({ id, event, data }) => ({ id, event, data }));
    expect(new Set(own.map(({ event }) => event))).toEqual(new Set(["metadata", "updates", "debug"]));
    const at = created.headers.get("content-location") ?? "";
    expect((await mirror(url, at).ended).frames).toEqual(own);
    const { id = "" } = own[4] ?? {};
    expect((await mirror(url, at, "", { "last-event-id": id }).ended).frames).toEqual(own.slice(5));
  });

  test.each([false, true])(
    "every mode, each alone and all at once, as text or packed (%s)",
    async (packed) => {
      const { url, thread, response, open } = await start();
      open();
      await response.text();
      const created = await post(`${url}/threads/${thread}/runs/stream`, {
        assistant_id: "talk",
        input: { log: [] },
        stream_mode: streamModes,
        stream_subgraphs: true,
      });
      await created.text();
      const at = created.headers.get("content-location") ?? "";
      for (const query of ["", ...streamModes.map((mode) => `?stream_mode=${mode}`)]) {
        const told = events(await (await get(`${url}${at}/stream${query}`)).text());
        const mirrored = await dial(`${url}${at}/stream${query}`, { packed });
        expect(await mirrored.closed).toMatchObject({ code: 1000 });
        expect(mirrored.frames, query).toEqual(told.map(({ id, event, data }) => ({ id, event, data })));
        expect([mirrored.odd, mirrored.socket.protocol]).toEqual([0, packed ? "heddle.msgpack" : ""]);
        const half = told[told.length >> 1]?.id ?? "";
        const resumed = await dial(`${url}${at}/stream${query}`, {
          packed,
          headers: { "last-event-id": half },
        });
        await resumed.closed;
        expect(resumed.frames).toEqual(mirrored.frames.slice((told.length >> 1) + 1));
      }
    },
  );

  test("a thread's socket leaves states out on request, and only them", async () => {
    const { url, thread, response, open } = await start();
    open();
    await response.text();
    const read = async (query: string) => {
      const socket = await dial(
        `${url}/threads/${thread}/stream?stream_mode=debug,tasks,checkpoints&last_event_id=-1${query}`,
      );
      await expect.poll(() => socket.frames.at(-1)?.event).toBe("run_done");
      socket.socket.close();
      return socket.frames;
    };
    const payloadOf = ({ event, data }: { readonly event: string; readonly data: unknown }) =>
      (event === "debug" ? (data as { payload: object }).payload : data) as Record<string, unknown>;
    const [all, some] = [await read(""), await read("&stream_states=false")];
    expect(all.filter((frame) => "values" in payloadOf(frame) || "input" in payloadOf(frame))).not.toEqual(
      [],
    );
    const withoutStates = all.map((frame) => {
      const { values: _, input: __, ...rest } = payloadOf(frame);
      return frame.event === "debug"
        ? { ...frame, data: { ...(frame.data as object), payload: rest } }
        : { ...frame, data: rest };
    });
    expect(some).toEqual(withoutStates);
    const refused = await dial(`${url}/threads/${thread}/stream?stream_states=maybe`);
    expect(await refused.closed).toMatchObject({ code: 4422 });
  });
});

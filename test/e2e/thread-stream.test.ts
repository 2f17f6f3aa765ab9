import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, NOBODY, post, postJson, Reading } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

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

const fails = graph({
  state: {},
  nodes: {
    fail: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "fail" },
});

const isEnd = ({ event }: { readonly event: string }) => event === "run_done";

async function start(transport?: "uws" | "node") {
  const { held, waits } = gated();
  const server = await serve({
    graphs: { echo, fails, held },
    ...(transport !== undefined && { transport }),
  });
  const thread = await newThread(server.url);
  const runs = `${server.url}/threads/${thread}/runs`;
  const begin = async (assistant_id: string, input: unknown) => {
    const body = { assistant_id, input, stream_mode: ["values", "custom", "updates"] };
    return (await postJson<{ run_id: string }>(runs, body)).run_id;
  };
  /** Runs a graph to its end. */
  const run = async (graphName = "echo") => {
    // LangGraph.js shows no values for an input without keys.
    const run_id = await begin(graphName, graphName === "echo" ? { log: [] } : {});
    await (await get(`${runs}/${run_id}/join`)).text();
    return run_id;
  };
  /** Cancels a run in its second node. */
  const cancelled = async () => {
    const run_id = await begin("held", { name: "a" });
    await waits("a");
    expect((await post(`${runs}/${run_id}/cancel?wait=1`)).status).toBe(204);
    return run_id;
  };
  return { ...server, thread, run, cancelled, address: `${server.url}/threads/${thread}/stream` };
}

/** The events of a run, in order. */
const ONE = ["metadata", "values", "custom", "updates", "values", "run_done"];
const A_RUN = ONE.length;

describeOverEachTransport("a thread's server-sent events", (transport) => {
  test("are what its socket brings, over stored runs and those to come, and stay open", async () => {
    const { address, run } = await start(transport);
    await run();
    const socket = await dial(`${address}?last_event_id=-1`);
    const response = await get(address, { "last-event-id": "-" });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("location")).toBe(new URL(address).pathname);
    const reading = new Reading(response);
    await run();
    const last = await run();
    await socket.until(({ frames }) => frames.length >= 3 * A_RUN);
    const sent = await reading.until(({ id }) => id === socket.frames.at(-1)?.id);
    expect(sent.map(({ id, event, data }) => ({ id, event, data }))).toEqual(
      socket.frames.map(({ id, event, data }) => ({ id, event, data })),
    );
    const again = new Reading(await get(address, { "last-event-id": sent[2 * A_RUN - 1]?.id ?? "" }));
    const rest = await again.until(({ id }) => id === sent.at(-1)?.id);
    expect(rest).toEqual(sent.slice(2 * A_RUN));
    expect(rest[0]?.data).toMatchObject({ run_id: last });
    const asked = new Reading(await get(`${address}?last_event_id=${sent[2 * A_RUN - 1]?.id}`));
    expect(await asked.until(({ id }) => id === sent.at(-1)?.id)).toEqual(rest);
    await Promise.all([asked.leave(), again.leave(), reading.leave()]);
  });
});

describeOverEachTransport("a thread's socket", (transport) => {
  test.each([
    ["stream_mode=lifecycle", 2],
    ["stream_mode=state_update", 3],
    ["stream_modes=run_modes", A_RUN],
    ["stream_modes=run_modes,lifecycle", A_RUN],
    ["stream_mode=lifecycle&stream_mode=state_update", 5],
    ["stream_mode=run_modes,lifecycle,state_update", A_RUN + 3],
  ])("takes the modes of a thread, as the server-sent events do: %s", async (query, perRun) => {
    const { address, run } = await start(transport);
    await run();
    const path = `${address}?${query}&last_event_id=-1`;
    const sockets = await Promise.all([false, true].map((packed) => dial(path, { packed })));
    const reading = new Reading(await get(path));
    await run();
    for (const socket of sockets) await socket.until(({ frames }) => frames.length >= 2 * perRun);
    const frames = sockets[0]?.frames ?? [];
    const sent = await reading.until(({ id }) => id === frames.at(-1)?.id);
    expect(frames.map(({ id, event, data }) => ({ id, event, data }))).toEqual(
      sent.map(({ id, event, data }) => ({ id, event, data })),
    );
    expect(sockets[1]?.frames).toEqual(frames);
    expect(sockets.map(({ odd }) => odd)).toEqual([0, 0]);
    await reading.leave();
  });

  test("reports each run's end with its status, also where it names the modes of the runs", async () => {
    const { address, run, cancelled: cancel } = await start(transport);
    const sockets = await Promise.all(
      ["", "?stream_mode=custom", "?stream_mode=lifecycle"].map((q) => dial(address + q)),
    );
    const done = await run();
    const failed = await run("fails");
    const cancelled = await cancel();
    for (const socket of sockets) {
      await socket.until(({ frames }) => frames.filter(isEnd).length >= 3);
      expect(socket.frames.filter(isEnd)).toEqual(
        [
          { run_id: done, status: "success" },
          { run_id: failed, status: "error" },
          { run_id: cancelled, status: "interrupted" },
        ].map((data) => ({
          id: expect.stringMatching(/^\d+$/),
          event: "run_done",
          data,
          run_id: data.run_id,
        })),
      );
    }
    const states = await dial(`${address}?stream_mode=state_update,custom&last_event_id=-1`);
    await states.until(({ frames }) => frames.filter(isEnd).length >= 3);
    expect(new Set(states.frames.map(({ event }) => event))).toEqual(
      new Set(["metadata", "custom", "state_update", "error", "run_done"]),
    );
  });
});

test("resumed after any event or end of a run, the WebSocket and the event stream send each missing event once", async () => {
  const { address, run } = await start();
  for (let i = 0; i < 3; i++) await run();
  // One reader stays: what the server has in memory about the last run is in use.
  const whole = await dial(`${address}?last_event_id=-1`);
  await whole.until(({ frames }) => frames.length >= 3 * A_RUN);
  expect(whole.frames.map(({ event }) => event)).toEqual([...ONE, ...ONE, ...ONE]);
  const resumed = await Promise.all(
    whole.frames.map(async ({ id }) => ({
      socket: await dial(`${address}?last_event_id=${id}`),
      reading: new Reading(await get(address, { "last-event-id": id })),
    })),
  );
  await run();
  await whole.until(({ frames }) => frames.length >= 4 * A_RUN);
  for (const [at, { socket, reading }] of resumed.entries()) {
    const missing = whole.frames.slice(at + 1);
    await socket.until(({ frames }) => frames.some(({ id }) => id === missing.at(-1)?.id));
    expect(socket.frames).toEqual(missing);
    const sent = await reading.until(({ id }) => id === missing.at(-1)?.id);
    expect(sent.map(({ id }) => id)).toEqual(missing.map(({ id }) => id));
    await reading.leave();
  }
});

test("what is not served is refused by name", async () => {
  const { url, address } = await start();
  for (const [query, detail] of [
    ["?stream_modes=lifecycle,updates", "must be one of"],
    ["?stream_mode=nope", "must be one of"],
  ] as const) {
    const response = await get(`${address}${query}`);
    expect(response.status).toBe(422);
    expect(((await response.json()) as { detail: string }).detail).toContain(detail);
  }
  expect((await get(`${url}/threads/${NOBODY}/stream`)).status).toBe(404);
  expect((await get(`${url}/threads/nope/stream`)).status).toBe(422);
  const head = await fetch(address, { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
});

test.each(lines)("threads.joinStream of %s follows the thread", async (_, connect) => {
  const { url, thread, run } = await start();
  const client = connect(url);
  await run();
  const leave = new AbortController();
  const got: string[] = [];
  const options = { lastEventId: "-", streamMode: "run_modes" as const, signal: leave.signal };
  const reading = (async () => {
    for await (const { event } of client.threads.joinStream(thread, options)) {
      got.push(event);
      if (got.length === 2 * A_RUN) leave.abort();
    }
  })().catch((cause: unknown) => {
    if (!leave.signal.aborted) throw cause;
  });
  await run();
  await reading;
  expect(got).toEqual([...ONE, ...ONE]);
});

test("shows when runs start and end, and the state whenever it changes, where that is asked for", async () => {
  const { url, thread, address, run } = await start();
  const first = await run();
  const read = async (query: string) => {
    const reading = new Reading(await get(`${address}?${query}`, { "last-event-id": "-" }));
    return reading;
  };
  const [lifecycle, states, both] = await Promise.all(
    ["stream_mode=lifecycle", "stream_mode=state_update", "stream_modes=run_modes,lifecycle"].map(read),
  );
  const second = await run();
  const ended = await lifecycle?.until(
    ({ event, data }) => event === "run_done" && (data as { run_id: string }).run_id === second,
  );
  expect(ended?.map(({ event, data }) => [event, data])).toEqual(
    [first, second].flatMap((run_id) => [
      ["metadata", expect.objectContaining({ run_id })],
      ["run_done", { run_id, status: "success" }],
    ]),
  );
  const last = await (await get(`${url}/threads/${thread}/state`)).json();
  const { checkpoint } = last as { checkpoint: { checkpoint_id: string } };
  const isLast = (data: unknown) =>
    (data as typeof last as { checkpoint: { checkpoint_id: string } }).checkpoint.checkpoint_id ===
    checkpoint.checkpoint_id;
  const told = (await states?.until(({ data }) => isLast(data))) ?? [];
  expect(new Set(told.map(({ event }) => event))).toEqual(new Set(["state_update"]));
  // The input, the step that it takes, and the node's: of each run.
  expect(told).toHaveLength(6);
  expect(told.at(-1)?.data).toMatchObject({ values: { log: ["said", "said"] }, next: [], checkpoint });
  const whole =
    (await both?.until(({ event, id }) => event === "run_done" && id === ended?.at(-1)?.id)) ?? [];
  expect(whole.map(({ event }) => event)).toEqual([...ONE, ...ONE]);
  expect(whole.map(({ id }) => Number(id))).toEqual(
    whole.map(({ id }) => Number(id)).toSorted((a, b) => a - b),
  );
  // What was seen is not told again.
  const rest = new Reading(
    await get(`${address}?stream_mode=lifecycle`, { "last-event-id": ended?.[1]?.id ?? "" }),
  );
  const again = await rest.until(({ event }) => event === "run_done");
  expect(again).toEqual(ended?.slice(2));
  await Promise.all([lifecycle, states, both, rest].map((reading) => reading?.leave()));
});

import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, NOBODY, postJson, Reading } from "./support/wire.ts";
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

async function start(transport?: "uws" | "node") {
  const server = await serve({ graphs: { echo }, ...(transport !== undefined && { transport }) });
  const thread = await newThread(server.url);
  const run = async () => {
    const body = { assistant_id: "echo", input: { log: [] }, stream_mode: ["values", "custom", "updates"] };
    const { run_id } = await postJson<{ run_id: string }>(`${server.url}/threads/${thread}/runs`, body);
    await (await get(`${server.url}/threads/${thread}/runs/${run_id}/join`)).text();
    return run_id;
  };
  return { ...server, thread, run, address: `${server.url}/threads/${thread}/stream` };
}

/** Five events a run: metadata, values, custom, updates, values. */
const A_RUN = 5;

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
  const one = ["metadata", "values", "custom", "updates", "values"];
  expect(got).toEqual([...one, ...one]);
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
  const one = ["metadata", "values", "custom", "updates", "values", "run_done"];
  expect(whole.map(({ event }) => event)).toEqual([...one, ...one]);
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

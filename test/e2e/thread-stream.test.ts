import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, NOBODY, postJson, Reading } from "./support/wire.ts";

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

describe.each(["uws", "node"] as const)("a thread's server-sent events over %s", (transport) => {
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
    ["?stream_mode=lifecycle", "not served yet"],
    ["?stream_modes=run_modes,state_update", "not served yet"],
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

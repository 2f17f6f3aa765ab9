import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { proxyTo } from "./support/proxy.ts";
import { differs, ours } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { ALL_MODES, eventsOf, type Mode, talking } from "./support/all-modes-graph.ts";
import { bytesOf, events, get, newThread, NOBODY, post, Reading, type Sent, UUID } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    good: async () => ({ log: ["good"] }),
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "good", good: "bad" },
});

const greeting = { content: "Hello there\n", type: "ai" };
const asItIs = { content: "as it is", type: "ai", id: "m1" };
const spoke = { log: ["spoke"], messages: [greeting] };
const ended = { log: ["spoke", "held", "left", "right"], messages: [greeting, asItIs] };

/** The output of a run of `talk` in each mode. */
const shown: { readonly [M in Mode]: readonly (readonly [event: string, data: unknown])[] } = {
  values: [
    ["values", { log: [], messages: [] }],
    ["values", spoke],
    ["values", { ...spoke, log: ["spoke", "held"] }],
    ["values", ended],
    ...ours("a step that writes nothing", ["values", ended] as const),
  ],
  updates: [
    ["updates", { speak: spoke }],
    ["updates", { hold: { log: ["held"] } }],
    ["updates", { left: { log: ["left"] } }],
    ["updates", { right: { log: ["right"], messages: [asItIs] } }],
    ["updates", { last: differs("a step that writes nothing") ? {} : null }],
  ],
  custom: [
    ["custom", { progress: 0.5, text: 'é\n"quoted"\u2028' }],
    ["custom", [1, null]],
    ["custom", "waiting"],
    ["custom", "going on"],
    ["custom", "left"],
  ],
  "messages-tuple": [
    ["messages", [{ content: "Hel", type: "ai" }, { langgraph_node: "speak" }]],
    ["messages", [{ content: "lo ", type: "ai" }, { langgraph_node: "speak" }]],
    ["messages", [{ content: "there\n", type: "ai" }, { langgraph_node: "speak" }]],
    ["messages", [asItIs, { langgraph_node: "right" }]],
  ],
};

/** The last event before runs of `talk` wait. */
const isWaiting = ({ data }: Sent) => data === "waiting";

describe.each(lines)("streams over %s", (_, connect) => {
  const start = async () => {
    const talk = talking();
    const server = await serve({ graphs: { talk: talk.talk, fails } });
    const client = connect(server.url);
    const { thread_id } = await client.threads.create();
    return { ...talk, client, thread_id, server };
  };

  test.each(ALL_MODES.map((mode) => [mode] as const))("%s alone, after metadata", async (mode) => {
    const { client, thread_id, open } = await start();
    open();
    const got: { id?: string; event: string; data: unknown }[] = [];
    for await (const part of client.runs.stream(thread_id, "talk", {
      input: { log: [] },
      streamMode: mode,
    })) {
      got.push(part);
    }
    const [run] = await client.runs.list(thread_id);
    expect(got[0]).toEqual({
      id: "0",
      event: "metadata",
      data: { run_id: run?.run_id, attempt: 1, thread_id },
    });
    expect(got.slice(1)).toMatchObject(shown[mode].map(([event, data]) => ({ event, data })));
  });

  test("a list of modes shows what each of them shows, with the same ids", async () => {
    const { client, thread_id, open } = await start();
    open();
    let run_id = "";
    const all: { id?: string; event: string; data: unknown }[] = [];
    for await (const part of client.runs.stream(thread_id, "talk", {
      input: { log: [] },
      streamMode: [...ALL_MODES],
      onRunCreated: (run) => (run_id = run.run_id),
    })) {
      all.push(part);
    }
    for (const mode of ALL_MODES) {
      const alone: unknown[] = [];
      for await (const part of client.runs.joinStream(thread_id, run_id, {
        lastEventId: "-1",
        streamMode: mode,
      })) {
        alone.push(part);
      }
      const names = eventsOf([mode]);
      expect(alone).toEqual(all.filter(({ event }) => names.has(event)));
      expect(alone).toHaveLength(1 + shown[mode].length);
    }
  });

  test("onRunCreated is told run and thread", async () => {
    const { client, thread_id, open } = await start();
    open();
    const told: unknown[] = [];
    const stream = client.runs.stream(thread_id, "talk", {
      input: { log: [] },
      onRunCreated: (run) => told.push(run),
    });
    await stream.next();
    const [run] = await client.runs.list(thread_id);
    expect(told).toEqual([{ run_id: run?.run_id, thread_id }]);
    for await (const _ of stream);
  });

  test("the tokens of one message have its id, and together are what is stored", async () => {
    const { client, thread_id, open } = await start();
    open();
    const chunks: { id: string; content: string }[] = [];
    for await (const { event, data } of client.runs.stream(thread_id, "talk", {
      input: { log: [] },
      streamMode: "messages-tuple",
    })) {
      if (event === "messages") chunks.push((data as unknown as [{ id: string; content: string }])[0]);
    }
    const { messages } = (
      await client.threads.getState<{ messages: { id: string; content: string }[] }>(thread_id)
    ).values;
    const text = (id: string | undefined) =>
      chunks
        .filter((chunk) => chunk.id === id)
        .map(({ content }) => content)
        .join("");
    expect(messages).toHaveLength(2);
    expect(messages.map(({ id }) => text(id))).toEqual(messages.map(({ content }) => content));
  });

  test("joinStream from the start is the stream that the creator read, while it runs and after", async () => {
    const { client, thread_id, waits, open } = await start();
    const input = { streamMode: [...ALL_MODES], input: { log: [] } };
    const { run_id } = await client.runs.create(thread_id, "talk", { ...input, streamResumable: true });
    await waits;
    const read = async (join: AsyncIterable<unknown>) => {
      const got: unknown[] = [];
      for await (const part of join) got.push(part);
      return got;
    };
    const joins = ["-1", "-", undefined].map((lastEventId) =>
      read(client.runs.joinStream(thread_id, run_id, lastEventId === undefined ? {} : { lastEventId })),
    );
    open();
    const [first, ...others] = await Promise.all(joins);
    expect(first).toHaveLength(1 + Object.values(shown).flat().length);
    for (const other of others) expect(other).toEqual(first);
    expect(await read(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" }))).toEqual(first);
  });

  test("a cancelled run's stream ends without another word", async () => {
    const { client, thread_id, waits } = await start();
    const stream = client.runs.stream(thread_id, "talk", { input: { log: [] }, streamMode: "updates" });
    const got = [(await stream.next()).value?.event];
    await waits;
    const [run] = await client.runs.list(thread_id);
    await client.runs.cancel(thread_id, run?.run_id ?? "", true);
    for await (const { event } of stream) got.push(event);
    expect(got).toEqual(["metadata", "updates"]);
  });

  test("after a cut connection it goes on by itself: nothing is missing, nothing comes twice", async () => {
    const { thread_id, waits, open, server } = await start();
    const proxy = await proxyTo(server.url);
    const got: unknown[] = [];
    let path = "";
    const cutOff = connect(proxy.url);
    for await (const part of cutOff.runs.stream(thread_id, "talk", {
      input: { log: [] },
      streamMode: [...ALL_MODES],
      onRunCreated: (run) => (path = `/threads/${thread_id}/runs/${run.run_id}/stream`),
    })) {
      if (got.push(part) > 1) continue;
      await waits;
      proxy.cut();
      open();
    }
    const [created, again] = proxy.requests.filter((head) => /^[A-Z]+ \S+\/stream/.test(head));
    expect(created).toMatch(/^POST /);
    expect(again?.split("\r\n")[0]).toBe(`GET ${path} HTTP/1.1`);
    expect(again).toMatch(/^last-event-id: 0\r$/im);
    const whole = events(await (await get(`${server.url}${path}`)).text());
    expect(got).toEqual(whole.map(({ id, event, data }) => ({ id, event, data })));
    expect(got).toHaveLength(1 + Object.values(shown).flat().length);
  });
});

describeOverEachTransport("streams, byte by byte,", (transport) => {
  const start = async (stream_mode: readonly Mode[] | Mode | null = ALL_MODES) => {
    const talk = talking();
    const held = gated();
    const { url } = await serve({ transport, graphs: { talk: talk.talk, held: held.held } });
    const thread = await newThread(url);
    const response = await post(`${url}/threads/${thread}/runs/stream`, {
      assistant_id: "talk",
      input: { log: [] },
      stream_mode,
    });
    const path = response.headers.get("content-location") ?? "";
    const join = (after?: string, query = "") =>
      get(`${url}${path}/stream${query}`, after === undefined ? {} : { "last-event-id": after });
    const joined = async (after?: string, query?: string) => events(await (await join(after, query)).text());
    return { ...talk, held, url, thread, response, path, join, joined };
  };

  /** A run that has ended, and all its events. */
  const finished = async () => {
    const started = await start();
    started.open();
    return { ...started, all: events(await started.response.text()) };
  };

  test("goes on after the id that the query names, as after the header's", async () => {
    const { all, joined, join } = await finished();
    const [, , third, , fifth] = all;
    const asked = `?last_event_id=${third?.id}`;
    expect(await joined(undefined, asked)).toEqual(all.slice(3));
    expect(await joined(fifth?.id, asked)).toEqual(all.slice(5));
    expect((await join(undefined, "?last_event_id=abc")).status).toBe(422);
  });

  test("the head says that it is a stream of events, and where run and stream are", async () => {
    const { thread, response, path, join, open } = await start();
    expect(path).toMatch(/^\/threads\/[^/]+\/runs\/[^/]+$/);
    const [, , of, , run] = path.split("/");
    expect(of).toBe(thread);
    expect(run).toMatch(UUID);
    for (const answer of [response, await join()]) {
      expect(answer.status).toBe(200);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        "content-type": "text/event-stream",
        "cache-control": expect.stringContaining("no-cache") as unknown,
        "content-location": path,
        location: `${path}/stream`,
      });
    }
    open();
  });

  test("every event is event, data on one line and id; ids are decimal and rise from 0", async () => {
    const { all } = await finished();
    // `events` has checked the framing.
    const ids = all.map(({ id }) => id);
    expect(ids[0]).toBe("0");
    expect(ids.map((id) => String(Number(id)))).toEqual(ids);
    for (const [at, id] of ids.slice(1).entries()) expect(Number(id)).toBeGreaterThan(Number(ids[at]));
  });

  test("events come as they happen: the first half is there while the run waits", async () => {
    const { response, waits, open } = await start("custom");
    const reading = new Reading(response);
    await waits;
    const half = await reading.until(isWaiting);
    expect(half.map(({ data }) => data).slice(1)).toEqual(shown.custom.slice(0, 3).map(([, data]) => data));
    open();
    const all = await reading.all();
    expect(bytesOf(all).startsWith(bytesOf(half))).toBe(true);
    expect(all).toHaveLength(6);
  });

  test("without a mode it is values; one mode is as good as a list of one", async () => {
    const names = async (modes: Mode | readonly Mode[] | null) => {
      const { response, open } = await start(modes);
      open();
      return events(await response.text()).map(({ event }) => event);
    };
    expect(await names(null)).toEqual(["metadata", ...shown.values.map(([event]) => event)]);
    expect(await names("updates")).toEqual(await names(["updates"]));
  });

  test("after any id, whether it was shown or not, the rest comes to the byte", async () => {
    const { all, joined } = await finished();
    const last = Number(all.at(-1)?.id);
    expect(all.length).toBeGreaterThan(15);
    for (let id = 0; id <= last; id++) {
      const missing = all.filter((event) => Number(event.id) > id);
      expect(bytesOf(await joined(String(id)))).toBe(bytesOf(missing));
    }
  });

  test("while the run goes on, too: after every event the missing ones, those to come included", async () => {
    const { response, join, waits, open } = await start();
    const creator = new Reading(response);
    await waits;
    const half = await creator.until(isWaiting);
    expect(half).toHaveLength(10);
    const joins = await Promise.all(half.map(({ id }) => join(id)));
    open();
    const all = await creator.all();
    expect(all.length).toBeGreaterThan(half.length);
    for (const [at, answer] of joins.entries()) {
      expect(bytesOf(events(await answer.text()))).toBe(bytesOf(all.slice(at + 1)));
    }
  });

  test.each([["-1"], ["-"], [undefined], [""], ["nonsense"], ["999999"]])(
    "after %j everything comes, to the byte",
    async (after) => {
      const { all, joined } = await finished();
      expect(bytesOf(await joined(after))).toBe(bytesOf(all));
    },
  );

  test("after the last event nothing comes, and the stream ends", async () => {
    const { all, joined } = await finished();
    expect(await joined(all.at(-1)?.id)).toEqual([]);
  });

  test.each<[query: string, modes: readonly Mode[]]>([
    ["?stream_mode=values", ["values"]],
    ["?stream_mode=messages-tuple", ["messages-tuple"]],
    ["?stream_mode=custom&stream_mode=updates", ["custom", "updates"]],
    ["?stream_mode=custom,updates", ["custom", "updates"]],
    [`?stream_mode=${encodeURIComponent('["values","custom"]')}`, ["values", "custom"]],
  ])("a join may choose modes: %s", async (query, modes) => {
    const { all, joined } = await finished();
    const names = eventsOf(modes);
    const chosen = all.filter(({ event }) => names.has(event));
    expect(chosen.length).toBeGreaterThan(3);
    expect(bytesOf(await joined("-1", query))).toBe(bytesOf(chosen));
    expect(bytesOf(await joined(chosen[1]?.id, query))).toBe(bytesOf(chosen.slice(2)));
  });

  test("a join may choose a mode that the run was not asked for", async () => {
    const { response, open, joined } = await start("updates");
    open();
    const updates = events(await response.text());
    const custom = await joined("-1", "?stream_mode=custom");
    expect(custom.map(({ data }) => data).slice(1)).toEqual(shown.custom.map(([, data]) => data));
    expect(custom[0]?.bytes).toBe(updates[0]?.bytes);
    expect(bytesOf(await joined("-1"))).toBe(bytesOf(updates));
  });

  test("many readers of one run all get all of it", async () => {
    const { response, join, waits, open } = await start();
    await waits;
    const joins = await Promise.all(Array.from({ length: 20 }, () => join("-1")));
    open();
    const all = await response.text();
    for (const answer of joins) expect(bytesOf(events(await answer.text()))).toBe(bytesOf(events(all)));
  });

  test("a run that nobody streamed has its events all the same", async () => {
    const { url, thread, held, open, response } = await start();
    open();
    await response.text();
    held.open("a");
    const waited = await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "a" },
      stream_mode: ["updates"],
    });
    await waited.text();
    const path = waited.headers.get("content-location") ?? "";
    const got: Sent[] = events(await (await get(`${url}${path}/stream`)).text());
    expect(got.map(({ event, data }) => [event, data]).slice(1)).toEqual([
      ["updates", { begin: { log: ["a began"] } }],
      ["updates", { hold: { log: ["a ended"] } }],
    ]);
  });

  test("a reader that leaves ends the run where it asked for that, and only there", async () => {
    const { url, thread, held, open, response } = await start();
    open();
    await response.text();
    for (const [cancel, status] of [
      ["1", "interrupted"],
      ["0", "success"],
    ] as const) {
      const created = await post(`${url}/threads/${thread}/runs`, {
        assistant_id: "held",
        input: { name: cancel },
      });
      await created.text();
      const at = `${url}${created.headers.get("content-location") ?? ""}`;
      const leaving = new AbortController();
      const read = await fetch(`${at}/stream?cancel_on_disconnect=${cancel}`, { signal: leaving.signal });
      await new Reading(read).until(({ event }) => event === "metadata");
      await held.waits(cancel);
      const joined = get(`${at}/join`);
      leaving.abort();
      if (cancel === "0") held.open(cancel);
      await (await joined).text();
      expect(await (await get(at)).json()).toMatchObject({ status });
    }
  });

  test("an unknown run is 404 before anything is streamed", async () => {
    const { url, thread, open, path } = await start();
    open();
    const other = await newThread(url);
    for (const at of [
      `/threads/${thread}/runs/${NOBODY}`,
      `/threads/${NOBODY}/runs/${NOBODY}`,
      path.replace(thread, other),
    ]) {
      const answer = await get(`${url}${at}/stream`);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/json"]);
      expect(await answer.json()).toMatchObject({ detail: expect.stringContaining("not found") as unknown });
    }
  });
});

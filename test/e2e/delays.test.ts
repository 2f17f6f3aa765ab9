import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";
import { isSharded } from "./support/suite-variant.ts";
import { aTime, get, newThread, post, postJson, twoThreads } from "./support/wire.ts";

const named = graph({
  state: { name: value(""), log: list<string>() },
  nodes: { work: async ({ name }) => ({ log: [name] }) },
  edges: { start: "work" },
});

describe.each(lines)("after_seconds over %s", (_, connect) => {
  const start = async () => {
    const { url } = await serve({ graphs: { named } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    return { url, client, thread_id };
  };

  test("the run is pending until then, and says when; the thread takes others meanwhile", async () => {
    const { client, thread_id } = await start();
    const create = (name: string, afterSeconds: number) =>
      client.runs.create(thread_id, "named", { input: { name }, afterSeconds });
    const far = await create("far", 3_600);
    expect(far).toMatchObject({ status: "pending", scheduled_for: aTime });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
    expect(await client.runs.wait(thread_id, "named", { input: { name: "now" } })).toMatchObject({
      log: ["now"],
    });
    expect(await client.runs.list(thread_id, { status: "pending" })).toMatchObject([{ run_id: far.run_id }]);
    const soon = await create("soon", 0.05);
    expect(await client.runs.join(thread_id, soon.run_id)).toMatchObject({ log: ["now", "soon"] });
    expect(await client.runs.get(thread_id, far.run_id)).toMatchObject({ status: "pending" });
    // In the order of their admission, whenever they begin.
    expect((await client.runs.list(thread_id)).map(({ run_id }) => run_id).at(-1)).toBe(far.run_id);
  });

  test("its stream is open and silent until it starts; a run without a thread may wait as well", async () => {
    const { client, thread_id } = await start();
    for (const thread of [thread_id, null] as const) {
      const events: string[] = [];
      const options = { input: { name: "late" }, afterSeconds: 0.1, streamMode: "updates" as const };
      const stream =
        thread === null
          ? client.runs.stream(null, "named", options)
          : client.runs.stream(thread, "named", options);
      for await (const { event } of stream) events.push(event);
      expect(events).toEqual(["metadata", "updates"]);
    }
  });

  test("who joins the thread's stream sees the runs in the order in which they began", async () => {
    const { url, client, thread_id } = await start();
    const create = (name: string, after_seconds: number) =>
      postJson<{ run_id: string }>(`${url}/threads/${thread_id}/runs`, {
        assistant_id: "named",
        input: { name },
        after_seconds,
        stream_mode: "updates",
      });
    const late = await create("late", 1.5);
    const soon = await create("soon", 0.05);
    await client.runs.wait(thread_id, "named", {
      input: { name: "now" },
      multitaskStrategy: "enqueue",
    });
    for (const { run_id } of [soon, late]) await client.runs.join(thread_id, run_id);
    const response = await get(`${url}/threads/${thread_id}/stream`, { "last-event-id": "-" });
    const names: string[] = [];
    let text = "";
    const decoder = new TextDecoder();
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(piece);
      names.length = 0;
      for (const [, id] of text.matchAll(/event: metadata\ndata: \{"run_id":"([^"]+)"/g))
        names.push(id as string);
      if (names.length >= 3) break;
    }
    expect(names.at(-1)).toBe(late.run_id);
    expect(names).toContain(soon.run_id);
  });
});

test("a delay outlives the server", async () => {
  const data = await directory();
  const first = await serve({ data, graphs: { named } });
  const thread = await newThread(first.url);
  const path = `/threads/${thread}/runs`;
  const body = { assistant_id: "named", input: { name: "late" }, after_seconds: 0.4 };
  const { run_id } = await postJson<{ run_id: string }>(first.url + path, body);
  await first.close();
  const { url } = await serve({ data, graphs: { named } });
  expect(await (await get(`${url}${path}/${run_id}/join`)).json()).toEqual({ name: "late", log: ["late"] });
});

describe("an idempotency key", () => {
  const send = (url: string, path: string, key: string, body: object) =>
    fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body),
    });
  const runOf = async (response: Response) => ((await response.json()) as { run_id: string }).run_id;
  const body = { assistant_id: "named", input: { name: "x" }, multitask_strategy: "enqueue" };

  test("starts one run, however often and however fast the request comes, also over a restart", async () => {
    const data = await directory();
    const first = await serve({ data, graphs: { named } });
    const thread = await newThread(first.url);
    const path = `/threads/${thread}/runs`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(first.url, path, "k", body)));
    const [run, ...others] = await Promise.all(answers.map(runOf));
    expect(new Set([run, ...others]).size).toBe(1);
    expect(await (await send(first.url, `${path}/wait`, "k", body)).json()).toMatchObject({ log: ["x"] });
    await first.close();
    const { url } = await serve({ data, graphs: { named } });
    expect(await runOf(await send(url, path, "k", body))).toBe(run);
    const stream = await (await send(url, `${path}/stream`, "k", body)).text();
    expect(stream).toContain(`"run_id":"${run}"`);
    expect(await (await get(url + path)).json()).toHaveLength(1);
    expect(await runOf(await send(url, path, "another", body))).not.toBe(run);
  });

  test("is refused for another request, or another thread", async () => {
    const { url } = await serve({ graphs: { named } });
    const [one, two] = await twoThreads(url);
    await send(url, `/threads/${one}/runs`, "k", body);
    for (const response of [
      await send(url, `/threads/${one}/runs`, "k", { ...body, input: { name: "y" } }),
      await send(url, `/threads/${two}/runs`, "k", body),
      // A run without a thread may be in another shard, which does not know the key.
      ...(isSharded ? [] : [await send(url, "/runs", "k", body)]),
    ]) {
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ code: "request.reused" });
    }
    const long = await send(url, `/threads/${one}/runs`, "k".repeat(256), body);
    expect(long.status).toBe(422);
  });

  test("of a run that is gone says so", async () => {
    const { url } = await serve({ graphs: { named } });
    const thread = await newThread(url);
    const path = `/threads/${thread}/runs`;
    const run = await runOf(await send(url, path, "k", body));
    await (await get(`${url}${path}/${run}/join`)).json();
    await fetch(`${url}${path}/${run}`, { method: "DELETE" });
    const gone = await send(url, path, "k", body);
    expect(gone.status).toBe(409);
    expect(await gone.json()).toMatchObject({ code: "request.gone" });
  });

  test("is kept by a request that was refused for nothing: it may come again", async () => {
    const { url } = await serve({ graphs: { named } });
    const thread = await newThread(url);
    const path = `/threads/${thread}/runs`;
    expect((await send(url, path, "k", { ...body, assistant_id: "nobody" })).status).toBe(404);
    expect((await send(url, path, "k", body)).status).toBe(200);
    expect((await post(`${url}${path}/cancel`)).status).toBe(202);
  });
});

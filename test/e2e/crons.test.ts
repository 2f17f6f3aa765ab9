import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { differs, ours } from "./support/suite-variant.ts";
import { shortlyBeforeAMinute } from "./support/minute-clock.ts";
import { directory, serve } from "./support/server.ts";
import { aTime, aUuid, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

const named = graph({
  state: { name: value(""), log: list<string>() },
  nodes: { work: async ({ name }) => ({ log: [name] }) },
  edges: { start: "work" },
});

describe.each(lines)("crons over %s", (_, connect) => {
  const start = async () => {
    const { url } = await serve({ graphs: { named } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    return { url, client, thread_id };
  };

  test("one is made without a thread, found, changed and deleted", async () => {
    const { url, client } = await start();
    const cron = await client.crons.create("named", {
      schedule: "0 9 * * MON",
      input: { name: "x" },
      metadata: { a: 1 },
      webhook: "https://example.com/hook",
    });
    expect(cron).toEqual({
      cron_id: aUuid,
      assistant_id: aUuid,
      thread_id: null,
      on_run_completed: "delete",
      schedule: "0 9 * * MON",
      timezone: null,
      end_time: null,
      next_run_date: aTime,
      enabled: true,
      payload: { input: { name: "x" }, webhook: "https://example.com/hook" },
      metadata: { a: 1 },
      user_id: null,
      created_at: aTime,
      updated_at: aTime,
    });
    expect(new Date((cron as unknown as { next_run_date: string }).next_run_date).getUTCDay()).toBe(1);
    expect(await (await get(`${url}/runs/crons/${cron.cron_id}`)).json()).toEqual(cron);
    const changed = await client.crons.update(cron.cron_id, {
      schedule: "0 10 * * *",
      metadata: { b: 2 },
      enabled: false,
    });
    expect(changed).toMatchObject({
      schedule: "0 10 * * *",
      metadata: { a: 1, b: 2 },
      enabled: false,
      next_run_date: null,
      payload: { input: { name: "x" } },
    });
    await client.crons.delete(cron.cron_id);
    await expect(client.crons.delete(cron.cron_id)).rejects.toMatchObject({ status: 404 });
    await expect(client.crons.update(cron.cron_id, { enabled: true })).rejects.toMatchObject({ status: 404 });
  });

  test("they are searched and counted", async () => {
    const { client, thread_id } = await start();
    const assistant = await client.assistants.create({ graphId: "named" });
    const on = await client.crons.createForThread(thread_id, "named", { schedule: "0 0 1 1 *" });
    const alone = await client.crons.create(assistant.assistant_id, {
      schedule: "* * * * *",
      enabled: false,
      metadata: { k: { v: 1 } },
    });
    const ids = async (query: object) => (await client.crons.search(query)).map(({ cron_id }) => cron_id);
    expect(await ids({})).toEqual([alone.cron_id, on.cron_id]);
    expect(await ids({ assistantId: "named" })).toEqual([on.cron_id]);
    expect(await ids({ assistantId: assistant.assistant_id })).toEqual([alone.cron_id]);
    expect(await ids({ threadId: thread_id })).toEqual([on.cron_id]);
    expect(await ids({ enabled: false })).toEqual([alone.cron_id]);
    expect(await ids({ limit: 1, offset: 1 })).toEqual([on.cron_id]);
    expect(await ids({ sortBy: "next_run_date", sortOrder: "asc" })).toEqual([on.cron_id, alone.cron_id]);
    expect(await client.crons.search({ select: ["cron_id", "enabled"], limit: 1 })).toEqual([
      { cron_id: alone.cron_id, enabled: false },
    ]);
    expect(await client.crons.count({})).toBe(2);
    expect(await client.crons.count({ threadId: thread_id })).toBe(1);
    // The assistant of the crons is deleted.
    await client.assistants.delete(assistant.assistant_id);
    expect(await ids({})).toEqual([on.cron_id]);
    await client.threads.delete(thread_id);
    expect(await ids({})).toEqual([]);
  });

  test("those of threads that are deleted with their assistant, or pruned, go with them", async () => {
    const { url, client, thread_id: pruned } = await start();
    const { assistant_id } = await client.assistants.create({ graphId: "named" });
    const { thread_id } = await client.threads.create({ metadata: { assistant_id } });
    const schedule = "0 0 1 1 *";
    for (const thread of [thread_id, pruned])
      await client.crons.createForThread(thread, "named", { schedule });
    const kept = await client.crons.create("named", { schedule });
    await client.assistants.delete(assistant_id, { deleteThreads: true });
    expect(await client.crons.count({ threadId: thread_id })).toBe(0);
    await postJson(`${url}/threads/prune`, { thread_ids: [pruned], strategy: "delete" });
    expect((await client.crons.search({})).map(({ cron_id }) => cron_id)).toEqual([kept.cron_id]);
  });
});

test("a cron fires on its thread, on a real server, and its runs are found by its name", async () => {
  const data = await directory();
  const clock = shortlyBeforeAMinute(1_500);
  const { url } = await serve({ graphs: { named }, clock, data });
  const thread = await newThread(url);
  const cron = await postJson<{ cron_id: string; next_run_date: string }>(
    `${url}/threads/${thread}/runs/crons`,
    {
      assistant_id: "named",
      schedule: "* * * * *",
      input: { name: "tick" },
      metadata: { of: "cron" },
    },
  );
  const runs = `${url}/threads/${thread}/runs?metadata=${encodeURIComponent(JSON.stringify({ cron_id: cron.cron_id }))}`;
  const found = async () =>
    (await (await get(runs)).json()) as { run_id: string; metadata: object; created_at: string }[];
  await expect.poll(found, { timeout: 30_000, interval: 50 }).toHaveLength(1);
  const [run] = await found();
  expect(run).toMatchObject({ metadata: { cron_id: cron.cron_id, of: "cron" } });
  expect(Date.parse(run?.created_at ?? "")).toBeGreaterThanOrEqual(Date.parse(cron.next_run_date));
  expect(await (await get(`${url}/threads/${thread}/runs/${run?.run_id}/join`)).json()).toEqual({
    name: "tick",
    log: ["tick"],
  });
  const byOrigin = await postJson<readonly { run_id: string }[]>(`${url}/runs/search`, { origin: "cron" });
  expect(byOrigin.map(({ run_id }) => run_id)).toEqual([run?.run_id]);
  const moved = (await (await get(`${url}/runs/crons/${cron.cron_id}`)).json()) as { next_run_date: string };
  expect(Date.parse(moved.next_run_date) - Date.parse(cron.next_run_date)).toBe(60_000);
});

describe("a preview of a schedule", () => {
  const preview = async (url: string, body: object) =>
    (await postJson<{ next_run_dates: string[] }>(`${url}/runs/crons/preview`, body)).next_run_dates;

  test("has the next three times, the first of which is that of a cron with the schedule", async () => {
    const { url } = await serve({ graphs: { named } });
    const times = { schedule: "0 9 1 1 *", timezone: "Asia/Tokyo" };
    const dates = await preview(url, times);
    expect(dates).toEqual([aTime, aTime, aTime]);
    expect(dates.map((date) => date.slice(4, 19))).toEqual(Array(3).fill("-01-01T00:00:00"));
    const cron = await postJson(`${url}/runs/crons`, { ...times, assistant_id: "named", input: {} });
    expect(cron).toMatchObject({ next_run_date: dates[0] });
    expect(await preview(url, { ...times, end_time: dates[1] })).toEqual(dates.slice(0, 2));
    expect(await preview(url, { ...times, end_time: "2020-01-01" })).toEqual([]);
    expect(await preview(url, { ...times, timezone: null, end_time: null })).toHaveLength(3);
    expect(await postJson(`${url}/runs/crons/count`)).toBe(1);
  });

  test.each([
    [{}, "schedule"],
    [{ schedule: "0 9 * *" }, "schedule"],
    [{ schedule: "0 0 30 2 *" }, "schedule"],
    [{ schedule: `${"0".repeat(200)} 9 * * *` }, "schedule"],
    [{ schedule: "* * * * *", timezone: "Mars/Olympus" }, "timezone"],
    [{ schedule: "* * * * *", timezone: "+14:00" }, "timezone"],
    [{ schedule: "* * * * *", end_time: "tomorrow" }, "end_time"],
  ])("of %j is refused, naming %s", async (body, at) => {
    const { url } = await serve({ graphs: { named } });
    const response = await post(`${url}/runs/crons/preview`, body);
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining(at), errors: [{ at }] });
  });
});

describe("what is wrong is refused by name", () => {
  const good = { assistant_id: "named", schedule: "* * * * *" };
  test.each([
    [{ ...good, schedule: "* * * * * *" }, 422, "schedule"],
    [{ ...good, schedule: 5 }, 422, "schedule"],
    [{ assistant_id: "named" }, 422, "schedule"],
    [{ schedule: "* * * * *" }, 422, "assistant_id"],
    [{ ...good, assistant_id: "nobody" }, 404, "nobody"],
    [{ ...good, timezone: "Mars/Olympus" }, 422, "timezone"],
    [{ ...good, end_time: "tomorrow" }, 422, "end_time"],
    [{ ...good, end_time: "2999-02-29T00:00:00Z" }, 422, "end_time"],
    [{ ...good, enabled: "yes" }, 422, "enabled"],
    [{ ...good, on_run_completed: "maybe" }, 422, "on_run_completed"],
    [{ ...good, multitask_strategy: "maybe" }, 422, "multitask_strategy"],
    [{ ...good, webhook: "http://127.0.0.1/" }, 422, "webhook"],
    [{ ...good, metadata: [] }, 422, "metadata"],
    [{ ...good, config: { recursion_limit: 0 } }, 422, "config.recursion_limit"],
  ])("%j: %d, naming %s", async (body, status, name) => {
    const { url } = await serve({ graphs: { named } });
    const response = await post(`${url}/runs/crons`, body);
    expect(response.status).toBe(status);
    expect(((await response.json()) as { detail: string }).detail).toContain(name);
    expect(await postJson(`${url}/runs/crons/count`)).toBe(0);
  });

  test("a thread or a cron that is not there", async () => {
    const { url } = await serve({ graphs: { named } });
    expect((await post(`${url}/threads/${NOBODY}/runs/crons`, good)).status).toBe(404);
    expect((await get(`${url}/runs/crons/${NOBODY}`)).status).toBe(404);
    expect((await get(`${url}/runs/crons/nope`)).status).toBe(422);
    expect((await post(`${url}/runs/crons/search`, { sort_by: "luck" })).status).toBe(422);
  });

  test("a thread is found by its id in capitals too", async () => {
    const { url } = await serve({ graphs: { named } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/crons`, good);
    const filter = { thread_id: thread.toUpperCase() };
    expect(await postJson(`${url}/runs/crons/count`, filter)).toBe(1);
    expect(await postJson(`${url}/runs/crons/search`, filter)).toMatchObject([{ thread_id: thread }]);
  });

  test("a null where something may be absent is as good as that; null ends an end and a time zone", async () => {
    const { url } = await serve({ graphs: { named } });
    const cron = await postJson<{ cron_id: string }>(`${url}/runs/crons`, {
      ...good,
      timezone: null,
      end_time: "2999-01-01T00:00:00",
      input: null,
    });
    expect(cron).toMatchObject({ end_time: "2999-01-01T00:00:00.000+00:00", timezone: null, payload: {} });
    const patch = (body: object) =>
      fetch(`${url}/runs/crons/${cron.cron_id}`, { method: "PATCH", body: JSON.stringify(body) }).then(
        (response) => response.json(),
      );
    expect(await patch({ enabled: null })).toMatchObject({
      enabled: true,
      end_time: "2999-01-01T00:00:00.000+00:00",
    });
    expect(await patch({ end_time: null })).toMatchObject({ end_time: null });
    expect(await patch({ timezone: "Asia/Tokyo", schedule: "0 12 * * *" })).toMatchObject({
      next_run_date: expect.stringContaining("T03:00:00"),
    });
    expect(await patch({ enabled: true })).toMatchObject({ timezone: "Asia/Tokyo" });
    expect(await patch({ timezone: null })).toMatchObject({
      timezone: null,
      next_run_date: expect.stringContaining("T12:00:00"),
    });
  });
});

test("crons of another tenant are not there", async () => {
  const { url } = await serve({ graphs: { named }, keys: ["one:a-key-of-one", "two:a-key-of-two"] });
  const as = (key: string, method: string, path: string, body?: object) =>
    fetch(url + path, { method, headers: { "x-api-key": key }, ...(body && { body: JSON.stringify(body) }) });
  const made = (await (
    await as("a-key-of-one", "POST", "/runs/crons", { assistant_id: "named", schedule: "* * * * *" })
  ).json()) as { cron_id: string };
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const response = await as(
      "a-key-of-two",
      method,
      `/runs/crons/${made.cron_id}`,
      method === "PATCH" ? {} : undefined,
    );
    expect(response.status, method).toBe(404);
  }
  expect(await (await as("a-key-of-two", "POST", "/runs/crons/count")).json()).toBe(0);
  expect(await (await as("a-key-of-two", "POST", "/runs/crons/search")).json()).toEqual([]);
  expect((await as("a-key-of-one", "GET", `/runs/crons/${made.cron_id}`)).status).toBe(200);
});

describe("what its runs would be refused for", () => {
  const strict = graph({
    context: z.object({ model: z.string().optional() }),
    state: { topic: z.string() },
    nodes: { work: async () => ({}) },
    edges: { start: "work" },
  });
  const good = { assistant_id: "strict", schedule: "* * * * *", input: { topic: "tea" } };
  const bad: readonly (readonly [part: object, field: string])[] = [
    ...ours(
      "what does not fit",
      [{ input: { topic: 1 } }, "input.topic"] as const,
      [{ interrupt_before: ["nope"] }, "interrupt_before"] as const,
      [{ interrupt_after: ["work", "nope"] }, "interrupt_after"] as const,
      [{ context: { model: 1 } }, "context.model"] as const,
    ),
    [{ config: { recursion_limit: 0 } }, "config.recursion_limit"],
    [{ config: { configurable: { checkpoint_id: NOBODY } } }, "config.configurable.checkpoint_id"],
  ];
  type Refused = { readonly detail: string; readonly errors: readonly { readonly at: string }[] };

  test.each(bad)("%j is told at once, by name, and nothing is kept", async (part, field) => {
    const { url } = await serve({ graphs: { strict } });
    const thread = await newThread(url);
    for (const path of ["/runs/crons", `/threads/${thread}/runs/crons`]) {
      const refused = await post(`${url}${path}`, { ...good, ...part });
      expect(refused.status).toBe(422);
      const { detail, errors } = (await refused.json()) as Refused;
      expect(detail).toContain(field);
      expect(errors.map(({ at }) => at)).toContain(field);
    }
    expect(await postJson(`${url}/runs/crons/count`)).toBe(0);

    const { cron_id } = await postJson<{ cron_id: string }>(`${url}/runs/crons`, good);
    const change = (body: object) =>
      fetch(`${url}/runs/crons/${cron_id}`, { method: "PATCH", body: JSON.stringify(body) });
    const refused = await change({ ...part, enabled: false });
    expect(refused.status).toBe(422);
    expect(((await refused.json()) as Refused).errors.map(({ at }) => at)).toContain(field);
    expect(await (await get(`${url}/runs/crons/${cron_id}`)).json()).toMatchObject({
      enabled: true,
      payload: { input: good.input },
    });
  });

  test.skipIf(differs("what does not fit"))(
    "what the state requires must come with the input; a thread may have it by then",
    async () => {
      const { url } = await serve({ graphs: { strict } });
      const empty = { ...good, input: {} };
      const refused = await post(`${url}/runs/crons`, empty);
      expect(refused.status).toBe(422);
      expect(((await refused.json()) as Refused).errors.map(({ at }) => at)).toContain("input.topic");
      expect((await post(`${url}/threads/${await newThread(url)}/runs/crons`, empty)).status).toBe(200);
    },
  );

  test("a cron whose graph takes its input no more can be switched off", async () => {
    const app = await serve({ graphs: { strict: named } });
    const { cron_id } = await postJson<{ cron_id: string }>(`${app.url}/runs/crons`, {
      ...good,
      input: { name: "x" },
    });
    app.replaceGraphs({ strict });
    const change = (body: object) =>
      fetch(`${app.url}/runs/crons/${cron_id}`, { method: "PATCH", body: JSON.stringify(body) });
    expect((await change({ enabled: false })).status).toBe(200);
    expect((await change({ interrupt_before: ["work"] })).status).toBe(422);
    expect((await change({ input: { topic: "tea" } })).status).toBe(200);
  });
});

// The statements of the guide about versions of the client.
test.each([
  ["1.15", 0, "Europe/Berlin"],
  ["2.0", 1, null],
] as const)("the time zone that is given to the client %s", async (_, line, timezone) => {
  const { url } = await serve({ graphs: { named } });
  const client = (lines[line] as (typeof lines)[number])[1](url);
  const asked = { schedule: "0 9 * * MON-FRI", timezone: "Europe/Berlin", input: { name: "x" } };
  expect(await client.crons.create("named", asked)).toMatchObject({ timezone });
});

import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { receiver } from "./support/receiver.ts";
import { directory, serve } from "./support/server.ts";
import { isAgain } from "./support/suite-variant.ts";
import { aTime, get, newThread, NOBODY, post, postJson } from "./support/wire.ts";

const within = { allow_internal: true } as const;

const work = graph({
  state: { log: list<string>() },
  nodes: {
    work: async () => ({ log: ["worked"] }),
    fail: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "work", work: (state) => (state.log.length > 1 ? "fail" : []) },
});

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
}
const deliveries = async (url: string, query = ""): Promise<readonly Delivery[]> =>
  (await get(`${url}/webhooks/deliveries${query}`)).json() as Promise<Delivery[]>;

/** Waits for a delivery that looks like that. */
async function untilDelivery(url: string, isIt: (one: Delivery) => boolean): Promise<Delivery> {
  for (;;) {
    const found = (await deliveries(url)).find(isIt);
    if (found !== undefined) return found;
  }
}

/** A port at which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("disabled webhooks are not sent, neither then nor once they are enabled again; the runs are executed", async () => {
  const hook = await receiver();
  const data = await directory();
  const run = async (isDisabled: boolean) => {
    const access = isDisabled ? { disabled: ["webhooks"] as const } : {};
    const config = { path: "", graphs: {}, env: {}, access };
    const { url, close } = await serve({ graphs: { work }, webhooks: within, config, data });
    const webhook = `${hook.url}/${isDisabled ? "disabled" : "enabled"}`;
    expect(await postJson(`${url}/runs/wait`, { assistant_id: "work", input: {}, webhook })).toEqual({
      log: ["worked"],
    });
    if (!isDisabled) await hook.until(1);
    await close();
  };
  await run(true);
  await run(false);
  expect(hook.told.map(({ path }) => path)).toEqual(["/enabled"]);
});

describe.each(lines)("a webhook over %s", (_, connect) => {
  test.each(["create", "wait", "stream"] as const)("is told of the end of a run: %s", async (how) => {
    const hook = await receiver();
    const { url } = await serve({ graphs: { work }, webhooks: within });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const options = { input: {}, metadata: { mine: 1 }, webhook: `${hook.url}/in?key=1` };
    if (how === "create") await client.runs.create(thread_id, "work", options);
    else if (how === "wait") await client.runs.wait(thread_id, "work", options);
    else for await (const part of client.runs.stream(thread_id, "work", options)) expect(part).toBeDefined();
    const [told] = await hook.until(1);
    const [run] = await client.runs.list(thread_id);
    expect(told?.path).toBe("/in?key=1");
    expect(told?.headers["content-type"]).toBe("application/json");
    expect(told?.json).toEqual({
      ...run,
      status: "success",
      run_started_at: aTime,
      run_ended_at: aTime,
      webhook_sent_at: aTime,
      values: { log: ["worked"] },
    });
    expect(run?.["kwargs" as keyof typeof run]).toMatchObject({ webhook: options.webhook });
    while ((await deliveries(url)).length > 0);
    expect(hook.told).toHaveLength(1);
  });

  test("is told of the end of a run without a thread of its own, which is gone by then", async () => {
    const hook = await receiver();
    const { url } = await serve({ graphs: { work }, webhooks: within });
    const client = connect(url);
    await client.runs.wait(null, "work", { input: {}, webhook: hook.url });
    const run = await client.runs.create(null, "work", { input: {}, webhook: hook.url });
    const told = await hook.until(2);
    expect(told[1]?.json).toMatchObject({
      run_id: run.run_id,
      thread_id: run.thread_id,
      status: "success",
      values: { log: ["worked"] },
    });
  });

  test("is told of a failure, with its message and the state", async () => {
    const hook = await receiver();
    const { url } = await serve({ graphs: { work }, webhooks: within });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "work", { input: {} });
    await client.runs.create(thread_id, "work", { input: {}, webhook: hook.url });
    const [told] = await hook.until(1);
    expect(told?.json).toMatchObject({
      status: "error",
      error: "kaboom",
      values: { log: ["worked", "worked"] },
    });
  });

  test("is told of a pause, with what is asked", async () => {
    const hook = await receiver();
    const { url } = await serve({ webhooks: within });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "approval", { input: { topic: "tea" }, webhook: hook.url });
    const [told] = await hook.until(1);
    expect(told?.json["status"]).toBe("success");
    expect(told?.json["interrupts"]).toMatchObject([{ id: expect.any(String), value: expect.anything() }]);
  });

  test("is told of runs that were stopped, also before they began, but not of one that was taken back", async () => {
    const hook = await receiver();
    const held = gated();
    const { url } = await serve({ graphs: { held: held.held }, webhooks: within });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const start = (name: string, multitaskStrategy: "enqueue" | "interrupt" | "rollback") =>
      client.runs.create(thread_id, "held", {
        input: { name },
        webhook: `${hook.url}/${name}`,
        multitaskStrategy,
      });
    const a = await start("a", "enqueue");
    await held.waits("a");
    const b = await start("b", "enqueue");
    const c = await start("c", "enqueue");
    await client.runs.cancel(thread_id, c.run_id);
    await start("d", "interrupt");
    await held.waits("d");
    await start("e", "rollback");
    await held.waits("e");
    held.open("e");
    const told = await hook.until(4);
    const byPath = Object.fromEntries(told.map(({ path, json }) => [path, json]));
    expect(Object.keys(byPath).toSorted()).toEqual(["/a", "/b", "/c", "/e"]);
    expect(byPath["/a"]).toMatchObject({
      run_id: a.run_id,
      status: "interrupted",
      values: { log: ["a began"] },
    });
    for (const [path, run] of [["/b", b] as const, ["/c", c] as const]) {
      expect(byPath[path]).toMatchObject({
        run_id: run.run_id,
        status: "interrupted",
        run_started_at: null,
        run_ended_at: aTime,
        values: null,
      });
    }
    expect(byPath["/e"]).toMatchObject({ status: "success" });
    while ((await deliveries(url)).length > 0);
    expect(hook.told).toHaveLength(4);
  });
});

test("is signed over time and body, and carries what the configuration adds", async () => {
  const hook = await receiver();
  const { url } = await serve({
    graphs: { work },
    webhooks: { ...within, secret: "s3cret", headers: { Authorization: "Bearer abc" } },
  });
  const run = { assistant_id: "work", input: {}, webhook: hook.url };
  await post(`${url}/threads/${await newThread(url)}/runs`, run);
  const [told] = await hook.until(1);
  if (told === undefined) throw new Error("nothing was told");
  const { headers, text, json } = told;
  const timestamp = headers["x-webhook-timestamp"];
  expect(headers["x-webhook-signature"]).toBe(
    `v1=${createHmac("sha256", "s3cret").update(`${timestamp}.${text}`).digest("hex")}`,
  );
  expect(headers["x-webhook-id"]).toBe(json["run_id"]);
  expect(headers["authorization"]).toBe("Bearer abc");
});

test("may be a path on this very server", async () => {
  const { url } = await serve({ graphs: { work } });
  const run = { assistant_id: "work", input: {}, metadata: { from: "hook" }, webhook: "/assistants/search" };
  await postJson(`${url}/threads/${await newThread(url)}/runs/wait`, run);
  // Whatever it does with it: it answers 200, and nothing is owed any more.
  while ((await deliveries(url)).length > 0);
  expect(await deliveries(url)).toEqual([]);
  await postJson(`${url}/threads/${await newThread(url)}/runs/wait`, { ...run, webhook: "/ok" });
  const failed = await untilDelivery(url, () => true);
  expect(failed).toMatchObject({ url: "/ok", thread_id: expect.any(String) });
});

test("one that fails is kept, listed, tried anew and deleted by hand", async () => {
  let status = 410;
  const hook = await receiver(() => status);
  const { url, complaints } = await serve({ graphs: { work }, webhooks: within });
  const run = { assistant_id: "work", input: {}, webhook: `${hook.url}/?token=hunter2` };
  const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${await newThread(url)}/runs`, run);
  const dead = await untilDelivery(url, (one) => one.status === "dead");
  expect(dead).toEqual({
    id: run_id,
    run_id,
    thread_id: expect.any(String),
    url: run.webhook,
    status: "dead",
    attempts: 1,
    created_at: aTime,
    next_attempt_at: null,
    expires_at: aTime,
    last_attempt_at: aTime,
    last_status: 410,
    last_error: "The receiver answered 410",
  });
  expect(await deliveries(url, "?status=pending")).toEqual([]);
  expect(await deliveries(url, "?status=dead&offset=1")).toEqual([]);
  expect(complaints.join()).not.toContain("hunter2");

  status = 500;
  const one = `${url}/webhooks/deliveries/${run_id}`;
  expect((await post(`${one}/retry`)).status).toBe(200);
  await hook.until(2);
  await untilDelivery(url, (now) => now.status === "pending" && now.attempts === 1);
  const gone = await fetch(one, { method: "DELETE" });
  expect([gone.status, await gone.text()]).toEqual([204, ""]);
  expect(await deliveries(url)).toEqual([]);
  for (const again of [await fetch(one, { method: "DELETE" }), await post(`${one}/retry`)]) {
    expect(again.status).toBe(404);
    expect(await again.json()).toMatchObject({ detail: "Delivery not found" });
  }
  expect((await post(`${url}/webhooks/deliveries/${NOBODY}/retry`)).status).toBe(404);
});

test("outlives a restart, and the thread that it tells of", async () => {
  const data = await directory();
  let status = 500;
  const hook = await receiver(() => status);
  const first = await serve({ data, graphs: { work }, webhooks: within });
  const thread = await newThread(first.url);
  const run = { assistant_id: "work", input: {}, webhook: hook.url };
  const { run_id } = await postJson<{ run_id: string }>(`${first.url}/threads/${thread}/runs`, run);
  await untilDelivery(first.url, (one) => one.attempts === 1);
  await first.close();
  const second = await serve({ data, graphs: { work }, webhooks: within });
  expect(await deliveries(second.url)).toMatchObject([{ id: run_id, status: "pending", attempts: 1 }]);
  status = 200;
  await post(`${second.url}/webhooks/deliveries/${run_id}/retry`);
  const told = await hook.until(2);
  expect(told[1]?.json).toMatchObject({ run_id, thread_id: thread, values: { log: ["worked"] } });
  expect(told[1]?.headers["x-webhook-id"]).toBe(told[0]?.headers["x-webhook-id"]);
});

test.skipIf(isAgain)("a thousand that nobody takes keep no run waiting", { timeout: 120_000 }, async () => {
  const { url } = await serve({ graphs: { work }, webhooks: within });
  const webhook = `http://127.0.0.1:${await closedPort()}/`;
  const run = { assistant_id: "work", input: {}, webhook, multitask_strategy: "enqueue" };
  const clients = Array.from({ length: 10 }, async () => {
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    let last = "";
    for (let n = 0; n < 100; n++) last = (await postJson<{ run_id: string }>(runs, run)).run_id;
    return `${runs}/${last}/join`;
  });
  const joins = await Promise.all(clients);
  // How soon is a row of the bench; here, that none of them waits for what may be tried for hours.
  for (let n = 0; n < 20; n++) {
    const body = { assistant_id: "work", input: {} };
    const ended = await postJson(`${url}/threads/${await newThread(url)}/runs/wait`, body);
    expect(ended).toEqual({ log: ["worked"] });
  }
  for (const join of joins) await (await get(join)).text();
  const owed = await deliveries(url, "?limit=1000");
  expect(owed).toHaveLength(1_000);
  for (const { status } of owed) expect(status).toBe("pending");
});

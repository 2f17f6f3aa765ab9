import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { responseSchemas } from "../../src/schemas/record-schemas.ts";
import { Compile } from "../../src/schemas/typebox.ts";
import { receiver } from "./support/receiver.ts";
import { directory, serve } from "./support/server.ts";
import { get, newThread, post, postJson } from "./support/wire.ts";

type Name = keyof typeof responseSchemas;

/** The differences between a response and its description. Undescribed members of records are differences too. */
function faults(name: Name, value: unknown): string[] {
  const schema = responseSchemas[name];
  const odd = Object.keys(value as object).filter((member) => !Object.hasOwn(schema.properties, member));
  const checked = Compile(schema as never);
  return [
    ...odd.map((member) => `${name}: ${member} is not described`),
    ...checked.Errors(value).map(({ instancePath, message }) => `${name}${instancePath}: ${message}`),
  ];
}

const all = async <T>(response: Promise<Response>) => (await (await response).json()) as readonly T[];

describe("answers are as they are described", () => {
  test("threads, states, runs", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    const fresh = await postJson(`${url}/threads`, { ttl: 5 });
    const empty = await (await get(`${url}/threads/${thread}/state`)).json();
    const run = await postJson<{ run_id: string }>(runs, { assistant_id: "approval", input: {} });
    await get(`${runs}/${run.run_id}/join`);
    const later = await postJson(runs, {
      assistant_id: "approval",
      multitask_strategy: "enqueue",
      after_seconds: 900,
    });
    const paused = await (await get(`${url}/threads/${thread}?include=ttl`)).json();
    const states = await all(get(`${url}/threads/${thread}/history?limit=100`));
    const stored = await (await get(`${url}/threads/${thread}/storage`)).json();
    expect(states.length).toBeGreaterThan(1);
    const found = [
      ...faults("Thread", fresh),
      ...faults("Thread", paused),
      ...faults("ThreadState", empty),
      ...faults("StoredSizes", stored),
      ...states.flatMap((state) => faults("ThreadState", state)),
      ...[run, later, ...(await all(get(runs)))].flatMap((one) => faults("Run", one)),
    ];
    expect(found).toEqual([]);
  });

  test("assistants, crons, items, webhooks, errors", async () => {
    const hook = await receiver(() => 500);
    const { url } = await serve({ webhooks: { allow_internal: true, attempts: 1 } });
    const assistant = await postJson<{ assistant_id: string }>(`${url}/assistants`, { graph_id: "agent" });
    const versions = await all(post(`${url}/assistants/${assistant.assistant_id}/versions`));
    const cron = await postJson(`${url}/runs/crons`, { assistant_id: "agent", schedule: "0 0 1 1 *" });
    const item = { namespace: ["a"], key: "k", value: { n: 1 } };
    await fetch(`${url}/store/items`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(item),
    });
    const { items } = await postJson<{ items: unknown[] }>(`${url}/store/items/search`);
    const kept = await (await get(`${url}/store/items?namespace=a&key=k`)).json();
    const thread = await newThread(url);
    await post(`${url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      input: {},
      webhook: hook.url,
    });
    await hook.until(1);
    const deliveries = `${url}/webhooks/deliveries`;
    await expect.poll(async () => (await all(get(`${deliveries}?status=dead`))).length).toBe(1);
    const refused = await (await post(`${url}/threads`, { metadata: 1 })).json();
    const found = [
      ...faults("Assistant", assistant),
      ...versions.flatMap((one) => faults("AssistantVersion", one)),
      ...faults("Cron", cron),
      ...[...items, kept].flatMap((one) => faults("StoreItem", one)),
      ...(await all(get(deliveries))).flatMap((one) => faults("Delivery", one)),
      ...faults("Error", refused),
    ];
    expect([versions.length, items.length]).toEqual([1, 1]);
    expect(found).toEqual([]);
  });
});

test("an answer without a body that is given instead of another is described", async () => {
  const { url } = await serve();
  const { paths } = (await (await get(`${url}/openapi.json`)).json()) as {
    readonly paths: { readonly [path: string]: { readonly [method: string]: { responses: object } } };
  };
  const described = (method: string, path: string) => Object.keys(paths[path]?.[method]?.responses ?? {});
  const thread = await newThread(url);
  const cancelled = await post(`${url}/threads/${thread}/runs/cancel?wait=true`);
  expect(described("post", "/threads/{thread_id}/runs/cancel")).toContain(String(cancelled.status));
  const { run_id } = await postJson<{ run_id: string }>(`${url}/threads/${thread}/runs`, {
    assistant_id: "agent",
    after_seconds: 900,
  });
  const one = await post(`${url}/threads/${thread}/runs/${run_id}/cancel?wait=true`);
  expect(described("post", "/threads/{thread_id}/runs/{run_id}/cancel")).toContain(String(one.status));
  const changed = await fetch(`${url}/threads/${thread}`, {
    method: "PATCH",
    headers: { "content-type": "application/json", prefer: "return=minimal" },
    body: "{}",
  });
  expect(described("patch", "/threads/{thread_id}")).toContain(String(changed.status));
});

test("with keys it says how to come in, and that nobody needs one for it; below a prefix, where that is", async () => {
  const { url } = await serve({ mount: "/api", keys: ["sesame"] });
  const answer = await get(`${url}/api/openapi.json`);
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(await answer.json()).toMatchObject({
    servers: [{ url: "/api" }],
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: {
      "/ok": { get: { security: [] } },
      "/metrics": { get: expect.not.objectContaining({ security: [] }) },
    },
  });
});

test("what the configuration has switched off is not described; without the group meta there is none", async () => {
  const write = async (http: object) => {
    const config = join(await directory(), "heddle.json");
    await writeFile(config, JSON.stringify({ graphs: {}, http }));
    return (await serve({ config })).url;
  };
  const store = await (await get(`${await write({ disable_store: true })}/openapi.json`)).json();
  const { paths } = store as { paths: object };
  expect(Object.keys(paths).filter((path) => path.startsWith("/store"))).toEqual([]);
  expect(paths).toHaveProperty("/threads");
  const bare = await write({ disable_meta: true });
  expect([(await get(`${bare}/openapi.json`)).status, (await get(`${bare}/docs`)).status]).toEqual([
    404, 404,
  ]);
});

import { expect, test } from "vitest";
import research from "../../src/demo/research.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { GatedKeyValueStore } from "../storage/gated-key-value-store.ts";
import { serve } from "./support/server.ts";
import { newThread, post, postJson } from "./support/wire.ts";

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test.each([
  [300, "input"],
  [20_000, "input"],
  [500_000, "input"],
])("a body nested %i deep is refused by its field, with an idempotency key too", async (levels, at) => {
  const { url, complaints } = await serve();
  const runs = `${url}/threads/${await newThread(url)}/runs`;
  for (const headers of [{}, { "idempotency-key": "k" }]) {
    const answer = await fetch(runs, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: `{"assistant_id":"agent","metadata":{"a":"\\"]"},"input":${nested(levels)}}`,
    });
    expect([answer.status, await answer.json()]).toEqual([
      422,
      expect.objectContaining({ errors: [expect.objectContaining({ at })] }),
    ]);
  }
  expect(complaints).toEqual([]);
});

test("the same request under one idempotency key starts one run, at the greatest depth that is stored", async () => {
  const { url } = await serve();
  const thread = await newThread(url);
  const ask = async () => {
    const answer = await fetch(`${url}/threads/${thread}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "k" },
      body: `{"assistant_id":"approval","multitask_strategy":"enqueue","metadata":{"deep":${nested(255)}},"input":{}}`,
    });
    return [answer.status, ((await answer.json()) as { run_id: string }).run_id];
  };
  const first = await ask();
  expect(first[0]).toBe(200);
  expect(await ask()).toEqual(first);
});

test.each(["1e20", "9007199254740992", "4294967296", "1e400"])(
  "an assistant has no version %s: no failure of the server",
  async (version) => {
    const { url, complaints } = await serve();
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, {
      graph_id: "agent",
    });
    const answer = await post(`${url}/assistants/${assistant_id}/latest`, `{"version":${version}}`);
    expect([404, 422]).toContain(answer.status);
    expect(await answer.json()).toHaveProperty("detail");
    expect(complaints).toEqual([]);
  },
);

test("a write that fails is told without the storage's own words; those are in the log", async () => {
  const kv = new GatedKeyValueStore();
  const deps = {
    scheduler: systemScheduler,
    clock: systemClock,
    failpoints: noFailpoints,
    logger: silentLogger,
  };
  const logged: string[] = [];
  const logger = {
    ...silentLogger,
    error: (_: string, fields?: object) => logged.push(JSON.stringify(fields)),
  };
  const storage = await openStorage({ kind: "key-value", store: kv }, { ...deps, logger });
  const { url } = await serve({ storage });
  kv.free = false;
  const asked = post(`${url}/threads`);
  await kv.pass(new Error("IO error: /srv/secret-place/000012.log: No space left on device"));
  const answer = await asked;
  const text = await answer.text();
  expect(answer.status).toBe(503);
  expect(text).toContain("The storage is not available");
  expect(text).not.toMatch(/secret-place|IO error/);
  expect(logged.join()).toContain("/srv/secret-place/000012.log: No space left on device");
  kv.free = true;
});

test("the demo's research splits a question of 100,000 dots at once", async () => {
  const { url } = await serve({ graphs: { research } });
  const began = performance.now();
  const question = `a${".".repeat(100_000)}b`;
  const answer = await post(`${url}/runs/wait`, { assistant_id: "research", input: { question } });
  expect(answer.status).toBe(200);
  expect(performance.now() - began).toBeLessThan(2_000);
});

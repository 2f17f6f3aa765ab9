import { expect, onTestFinished, test } from "vitest";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import { openStorage } from "../../src/storage/open.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { GatedKeyValueStore } from "../storage/gated-key-value-store.ts";
import { parse, Wire } from "../transport/wire.ts";
import { gated } from "./support/gate.ts";
import { serve } from "./support/server.ts";
import { newThread, postJson } from "./support/wire.ts";

const deps = {
  scheduler: systemScheduler,
  clock: systemClock,
  failpoints: noFailpoints,
  logger: silentLogger,
};

test("ready follows the storage; the server is alive all the while", async () => {
  const kv = new GatedKeyValueStore();
  const app = await serve({ storage: await openStorage({ kind: "key-value", store: kv }, deps) });
  const status = async (path: string) => (await fetch(`${app.url}${path}`)).status;
  const all = () => Promise.all(["/ready", "/ok?check_db=1", "/ok", "/live"].map(status));
  expect(await all()).toEqual([200, 200, 200, 200]);
  kv.free = false;
  const asked = fetch(`${app.url}/ready`);
  await kv.pass(new Error("no space left"));
  kv.probeError = new Error("still none");
  const answer = await asked;
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await answer.json()).toMatchObject({ code: "storage.unavailable" });
  expect(await all()).toEqual([503, 503, 200, 200]);
  kv.probeError = undefined;
  kv.free = true;
  await expect.poll(() => status("/ready"), { timeout: 30_000 }).toBe(200);
});

test("a server that stops is no longer ready, and says so to those who are connected", async () => {
  const { held, waits, open } = gated();
  const app = await serve({ graphs: { held } });
  const thread = await newThread(app.url);
  await postJson(`${app.url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "a" } });
  await waits("a");
  const wire = await Wire.open(app.address.port);
  onTestFinished(() => wire.destroy());
  wire.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const before = (await wire.until((text) => text.includes("}"))).length;
  const closed = app.close(10_000);
  wire.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const text = await wire.until((got) => got.slice(before).includes("}"));
  expect(parse(text.slice(before))).toMatchObject({
    status: 503,
    body: expect.stringContaining("server.draining"),
  });
  open("a");
  await closed;
});

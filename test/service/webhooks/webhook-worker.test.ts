import { expect, test } from "vitest";
import { signWebhook } from "../../../src/service/webhooks/signature.ts";
import { id } from "../../storage/samples.ts";
import { hangs, refuses, Rig } from "./rig.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test("what is owed is sent at once, to the address that was looked at, and is then gone", async () => {
  const rig = await Rig.start({ secret: "s3cret", headers: { Authorization: "Bearer x" } });
  rig.receivers.names.set("hooks.test", ["93.184.216.35"]);
  await rig.owe(1, "https://hooks.test/in?k=1#part");
  await rig.scheduler.settle();
  const [request, ...more] = rig.receivers.asked;
  expect(more).toEqual([]);
  expect(request?.address).toBe("93.184.216.35");
  expect(String(request?.url)).toBe("https://hooks.test/in?k=1");
  const body = request?.body ?? "";
  const timestamp = Math.floor(rig.clock.now() / 1000);
  expect(request?.headers).toEqual({
    "user-agent": "heddle/0.0.0",
    authorization: "Bearer x",
    "content-type": "application/json",
    "x-webhook-id": id(1),
    "x-webhook-attempt": "1",
    "x-webhook-timestamp": String(timestamp),
    "x-webhook-signature": signWebhook("s3cret", timestamp, body),
  });
  expect(JSON.parse(body)).toMatchObject({ run_id: id(1), status: "success", values: { n: 1 } });
  expect(await rig.deliveries()).toEqual([]);
  expect(await rig.storage.outbox.content(rig.key(1))).toBeUndefined();
  expect(rig.scheduler.timers).toBe(0);
});

test("while results cannot be stored nothing more is sent, and each delivery is repeated once at most", async () => {
  const rig = await Rig.start();
  const answers: (() => void)[] = [];
  rig.receivers.at("hooks.test", () => new Promise((resolve) => answers.push(() => resolve(200))));
  for (let n = 1; n <= 100; n++) await rig.owe(n, "https://hooks.test/");
  await rig.scheduler.settle();
  const sent = rig.receivers.asked.length;
  expect(sent).toBeLessThan(100);
  const { batch } = rig.kv;
  rig.kv.batch = () => Promise.reject(new Error("the disk is full"));
  rig.lines.length = 0;
  for (const answer of answers.splice(0)) answer();
  await rig.scheduler.advance(600_000);
  expect(rig.receivers.asked).toHaveLength(sent);
  expect(rig.lines).toHaveLength(1);
  rig.kv.batch = batch;
  rig.receivers.at("hooks.test", () => 200);
  await rig.scheduler.advance(60_000);
  expect(await rig.deliveries()).toEqual([]);
  expect(rig.receivers.asked).toHaveLength(sent + 100);
});

test("without a secret there is no signature", async () => {
  const rig = await Rig.start();
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(rig.receivers.asked[0]?.headers).not.toHaveProperty("x-webhook-signature");
});

test("a failed try is made again, further and further apart, under the same id, until it is taken", async () => {
  const rig = await Rig.start();
  const at: number[] = [];
  const start = rig.clock.now();
  rig.receivers.at("hooks.test", (_, nth) => {
    at.push(rig.clock.now() - start);
    return nth < 4 ? 503 : 200;
  });
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  const [waiting] = await rig.deliveries();
  expect(waiting).toMatchObject({ status: "pending", attempts: 1, last_status: 503, expires_at: null });
  await rig.scheduler.untilIdle(HOUR);
  expect(at).toHaveLength(4);
  for (const [nth, delay] of [10_000, 30_000, 90_000].entries()) {
    const gap = (at[nth + 1] ?? 0) - (at[nth] ?? 0);
    expect(gap).toBeGreaterThanOrEqual(delay * 0.8);
    expect(gap).toBeLessThanOrEqual(delay * 1.2 + 1);
  }
  expect(rig.receivers.asked.map(({ headers }) => headers["x-webhook-id"])).toEqual(Array(4).fill(id(1)));
  expect(rig.receivers.asked.map(({ headers }) => headers["x-webhook-attempt"])).toEqual([
    "1",
    "2",
    "3",
    "4",
  ]);
  expect(await rig.deliveries()).toEqual([]);
});

test("after eight tries over some hours it is given up, and a week later deleted", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", refuses);
  await rig.owe(1, "https://hooks.test/secret-path?token=hunter2");
  await rig.scheduler.advance(5 * HOUR);
  expect(rig.receivers.asked).toHaveLength(8);
  const [dead] = await rig.deliveries();
  expect(dead).toMatchObject({
    id: id(1),
    run_id: id(1),
    status: "dead",
    attempts: 8,
    next_attempt_at: null,
    last_status: null,
    last_error: "connect ECONNREFUSED",
  });
  expect(rig.lines.join()).toContain('"host":"hooks.test"');
  expect(rig.lines.join()).not.toMatch(/hunter2|secret-path/);
  await rig.scheduler.advance(7 * DAY);
  expect(await rig.deliveries()).toEqual([]);
  expect(await rig.storage.outbox.content(rig.key(1))).toBeUndefined();
  expect(rig.receivers.asked).toHaveLength(8);
  expect(rig.scheduler.timers).toBe(0);
});

test("the first refusal by a receiver is logged, with its host and status, until it has accepted again", async () => {
  const rig = await Rig.start();
  const refusals = () => rig.lines.filter((line) => line.startsWith("a webhook was refused"));
  let status = 401;
  rig.receivers.at("hooks.test", () => status);
  await rig.owe(1, "https://hooks.test/secret-path?token=hunter2");
  await rig.owe(2, "https://hooks.test/secret-path?token=hunter2");
  await rig.scheduler.advance(20_000);
  expect(rig.receivers.asked.length).toBeGreaterThan(2);
  expect(refusals()).toHaveLength(1);
  expect(refusals()[0]).toContain('"host":"hooks.test"');
  expect(refusals()[0]).toContain('"status":401');
  expect(rig.lines.join()).not.toMatch(/hunter2|secret-path/);
  status = 200;
  await rig.scheduler.advance(HOUR);
  status = 503;
  await rig.owe(3, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(refusals()).toHaveLength(2);
});

test("a refusal by this server names its own host", async () => {
  const rig = await Rig.start();
  rig.receivers.at("127.0.0.1:2024", () => 401);
  await rig.owe(1, "/own/path");
  await rig.scheduler.settle();
  expect(rig.lines.join()).toContain('"host":"127.0.0.1:2024"');
});

test.each([410, 400, 302])("an answer of %i is the last word", async (status) => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", () => status);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(await rig.deliveries("dead")).toMatchObject([{ attempts: 1, last_status: status }]);
  expect(rig.receivers.asked).toHaveLength(1);
});

test("a receiver that asks to be left alone is left alone", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", (_, nth) => (nth === 1 ? { status: 429, retryAfter: "600" } : 200));
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.advance(599_000);
  expect(rig.receivers.asked).toHaveLength(1);
  await rig.scheduler.advance(2_000);
  expect(rig.receivers.asked).toHaveLength(2);
});

test("a try that takes too long is cut off", async () => {
  const rig = await Rig.start({ timeout: 2 });
  rig.receivers.at("hooks.test", hangs);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.advance(1_900);
  expect(rig.receivers.open).toBe(1);
  await rig.scheduler.advance(200);
  expect(rig.receivers.open).toBe(0);
  expect(await rig.deliveries()).toMatchObject([{ attempts: 1, last_error: "It took too long" }]);
});

test.each([
  ["one", ["10.0.0.7"]],
  ["some", ["93.184.216.34", "10.0.0.7"]],
  ["an older one in a newer one", ["::ffff:127.0.0.1"]],
])("a name with addresses of which %s must not be reached is given up unasked", async (_, found) => {
  const rig = await Rig.start();
  rig.receivers.names.set("hooks.test", found);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(rig.receivers.asked).toEqual([]);
  const [dead] = await rig.deliveries("dead");
  expect(dead?.["last_error"]).toContain("not public");
  // A client that chooses a host name must not learn which internal address it has.
  expect(dead?.["last_error"]).not.toContain("10.0.0.7");
});

test("a name is looked at again for each try: it may lead elsewhere by then", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", () => 503);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  rig.receivers.names.set("hooks.test", ["127.0.0.1"]);
  await rig.scheduler.advance(13_000);
  expect(rig.receivers.asked).toHaveLength(1);
  expect(await rig.deliveries("dead")).toHaveLength(1);
});

test("a name without addresses is asked for again; of several addresses another one is taken", async () => {
  const rig = await Rig.start();
  rig.receivers.names.set("hooks.test", []);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(await rig.deliveries()).toMatchObject([{ status: "pending", attempts: 1 }]);
  rig.receivers.names.set("hooks.test", ["2606:4700:4700::1111", "93.184.216.34"]);
  rig.receivers.at("hooks.test", refuses);
  await rig.scheduler.advance(50_000);
  expect(rig.receivers.asked.map(({ address }) => address)).toEqual([
    "2606:4700:4700::1111",
    "93.184.216.34",
  ]);
});

test("a path leads to this very server", async () => {
  const rig = await Rig.start();
  await rig.owe(1, "/my-route?x=1");
  await rig.scheduler.settle();
  expect(rig.receivers.asked.map(({ url, address }) => [String(url), address])).toEqual([
    ["http://127.0.0.1:2024/my-route?x=1", "127.0.0.1"],
  ]);
});

test("a dead receiver slows no other, and no receiver is asked by too many at once", async () => {
  const rig = await Rig.start();
  for (let host = 0; host < 40; host++) rig.receivers.at(`dead${host}.test`, hangs);
  const owed: Promise<void>[] = [];
  for (let n = 0; n < 400; n++) owed.push(rig.oweSoon(n, `https://dead${n % 40}.test/`));
  await rig.do(Promise.all(owed));
  await rig.scheduler.settle();
  expect(rig.receivers.most).toBeLessThanOrEqual(64);
  // After each of them has failed, they share a quarter of the places.
  await rig.scheduler.advance(60_000);
  expect(rig.receivers.open).toBeLessThanOrEqual(16);
  rig.receivers.most = 0;
  const before = rig.receivers.open;
  for (let n = 1_000; n < 1_100; n++) owed.push(rig.oweSoon(n, "https://alive.test/"));
  await rig.do(Promise.all(owed));
  await rig.scheduler.settle();
  expect(rig.receivers.to("alive.test")).toHaveLength(100);
  expect(rig.receivers.most - before).toBeLessThanOrEqual(8);
});

test("many that are owed to one receiver all come, each once", async () => {
  const rig = await Rig.start();
  const owed = Array.from({ length: 500 }, (_, n) => rig.oweSoon(n, "https://hooks.test/"));
  await rig.do(Promise.all(owed));
  await rig.scheduler.settle();
  const ids = rig.receivers.asked.map(({ headers }) => headers["x-webhook-id"]);
  expect([ids.length, new Set(ids).size]).toEqual([500, 500]);
  expect(rig.receivers.most).toBe(8);
  expect(await rig.deliveries()).toEqual([]);
});

test("the next start takes up what is owed: what was on its way, and what waits for its time", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hangs.test", hangs);
  rig.receivers.at("later.test", (_, nth) => (nth === 1 ? 500 : 200));
  await rig.owe(1, "https://hangs.test/");
  await rig.owe(2, "https://later.test/");
  await rig.scheduler.settle();
  rig.kill();
  rig.receivers.at("hangs.test", () => 200);
  await rig.boot();
  await rig.scheduler.settle();
  expect(rig.receivers.to("hangs.test")).toHaveLength(2);
  expect(rig.receivers.to("later.test")).toHaveLength(1);
  await rig.scheduler.advance(13_000);
  expect(rig.receivers.to("later.test")).toHaveLength(2);
  expect(await rig.deliveries()).toEqual([]);
});

test("a stop gives what is on its way a moment; what is not through by then does not count as tried", async () => {
  const rig = await Rig.start();
  let answer: (status: number) => void = () => undefined;
  rig.receivers.at("slow.test", () => new Promise((resolve) => (answer = resolve)));
  rig.receivers.at("hangs.test", hangs);
  await rig.owe(1, "https://slow.test/");
  await rig.owe(2, "https://hangs.test/");
  await rig.scheduler.settle();
  const stopped = rig.worker.stop(1_000);
  await rig.owe(3, "https://new.test/");
  answer(200);
  await rig.scheduler.advance(1_100);
  await rig.do(stopped);
  expect(rig.receivers.to("new.test")).toEqual([]);
  const left = await rig.deliveries();
  expect(left.map(({ id, attempts }) => [id, attempts])).toEqual([
    [id(3), 0],
    [id(2), 0],
  ]);
});

test("by hand: one that was given up is tried anew, one that waits is tried at once", async () => {
  const rig = await Rig.start({ attempts: 2 });
  rig.receivers.at("hooks.test", () => 500);
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.advance(60_000);
  expect(await rig.deliveries("dead")).toHaveLength(1);
  const again = await rig.do(rig.webhooks.retry(rig.key(1)));
  expect(again).toMatchObject({ status: "pending", attempts: 0 });
  await rig.scheduler.settle();
  expect(rig.receivers.asked).toHaveLength(3);
  rig.receivers.at("hooks.test", () => 200);
  await rig.do(rig.webhooks.retry(rig.key(1)));
  await rig.scheduler.settle();
  expect(await rig.deliveries()).toEqual([]);
  await expect(rig.do(rig.webhooks.retry(rig.key(1)))).rejects.toMatchObject({ code: "delivery.not_found" });
});

test("by hand: one that is deleted is not tried again, also when it is on its way", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", () => 500);
  rig.receivers.at("hangs.test", hangs);
  await rig.owe(1, "https://hooks.test/");
  await rig.owe(2, "https://hangs.test/");
  await rig.scheduler.settle();
  await rig.do(rig.webhooks.remove(rig.key(1)));
  await rig.do(rig.webhooks.remove(rig.key(2)));
  await rig.scheduler.advance(DAY);
  expect(rig.receivers.asked).toHaveLength(2);
  expect(await rig.deliveries()).toEqual([]);
  await expect(rig.do(rig.webhooks.remove(rig.key(1)))).rejects.toMatchObject({ code: "delivery.not_found" });
  const other = { ...rig.key(2), tenant: "other" };
  await expect(rig.do(rig.webhooks.remove(other))).rejects.toMatchObject({ code: "delivery.not_found" });
});

test("what is told: the run as the API shows it, its times, the state, and what went wrong", async () => {
  const rig = await Rig.start();
  const error = { error: "Error", message: "kaboom" };
  await rig.owe(1, "https://hooks.test/", { status: "error", error, metadata: { a: 1 } });
  await rig.scheduler.settle();
  const told = JSON.parse(rig.receivers.asked[0]?.body ?? "") as Record<string, unknown>;
  expect(told).toEqual({
    run_id: id(1),
    thread_id: id(1),
    assistant_id: id(900),
    created_at: "1970-01-01T00:00:01.001+00:00",
    updated_at: "1970-01-01T00:00:01.001+00:00",
    metadata: { a: 1 },
    status: "error",
    kwargs: expect.objectContaining({ input: { n: 1 }, webhook: "https://hooks.test/" }),
    multitask_strategy: "enqueue",
    run_started_at: "1970-01-01T00:00:01.500+00:00",
    run_ended_at: "1970-01-01T00:00:02.000+00:00",
    webhook_sent_at: "2026-01-01T00:00:00.000+00:00",
    values: { n: 1 },
    error: "kaboom",
  });
});

test.each([
  ["back", -DAY],
  ["ahead", DAY],
])("a wall clock that is set %s while a try is waited for changes nothing about the wait", async (_, ms) => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", (_, nth) => (nth === 1 ? 503 : 200));
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  rig.clock.jump(ms);
  await rig.owe(2, "https://hooks.test/");
  await rig.scheduler.settle();
  expect(rig.receivers.asked.map(({ headers }) => headers["x-webhook-id"])).toEqual([id(1), id(2)]);
  await rig.scheduler.advance(7_000);
  expect(rig.receivers.asked).toHaveLength(2);
  await rig.scheduler.advance(6_000);
  expect(rig.receivers.asked).toHaveLength(3);
});

test("a delivery is not held by a clock that is behind after a restart", async () => {
  const rig = await Rig.start();
  rig.receivers.at("hooks.test", (_, nth) => (nth === 1 ? 503 : 200));
  await rig.owe(1, "https://hooks.test/");
  await rig.scheduler.settle();
  rig.kill();
  rig.clock.jump(-DAY);
  await rig.boot();
  await rig.scheduler.advance(13_000);
  expect(rig.receivers.asked).toHaveLength(2);
});

import { describe, expect, test } from "vitest";
import { gated, latch } from "./support/latches.ts";
import { streamOf, transports } from "./support/protocol.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { Following, get, newThread, openPost, post, postJson, Reading } from "./support/wire.ts";

const start = async () => {
  const held = gated();
  const { url, complaints } = await serve({ graphs: { held: held.held } });
  const thread = await newThread(url);
  const body = (name: string) => ({
    assistant_id: "held",
    input: { name },
    multitask_strategy: "enqueue",
    stream_mode: "updates",
  });
  const path = `${url}/threads/${thread}`;
  const begin = async (name: string) =>
    (await postJson<{ run_id: string }>(`${path}/runs`, body(name))).run_id;
  const remove = async () => expect((await fetch(path, { method: "DELETE" })).status).toBe(204);
  return { ...held, url, complaints, thread, path, body, begin, remove };
};

const GONE = "The thread was deleted";

describe("a client that waits for a run learns that its thread was deleted", () => {
  test.each(["the run in progress", "a queued run"])("in the answer of join, for %s", async (which) => {
    const { path, begin, waits, remove } = await start();
    const first = await begin("a");
    await waits("a");
    const run = which === "a queued run" ? await begin("b") : first;
    const joining = get(`${path}/runs/${run}/join`);
    // The server looks up the run before the thread is deleted.
    await get(`${path}/runs/${run}`);
    await remove();
    const answer = await joining;
    const read = (await answer.json()) as unknown;
    // If the deletion took long, the status has been sent before it.
    if (answer.status === 200) expect(read).toEqual({ __error__: { error: "ServiceError", message: GONE } });
    else {
      expect(answer.status).toBe(404);
      expect(read).toMatchObject({ code: "thread.not_found", detail: GONE });
    }
  });

  test("in the answer of wait whose head was sent already", async () => {
    const { path, body, waits, remove, complaints } = await start();
    const answer = await openPost(`${path}/runs/wait`, body("a"));
    await waits("a");
    expect(answer.status).toBe(200);
    await remove();
    expect(await answer.json()).toEqual({ __error__: { error: "ServiceError", message: GONE } });
    expect(complaints).toEqual([]);
  });

  test("by an error event, which ends the stream of the run", async () => {
    const { path, body, begin, waits, remove } = await start();
    const running = await post(`${path}/runs/stream`, body("a"));
    await waits("a");
    const queued = await get(`${path}/runs/${await begin("b")}/stream`);
    await remove();
    const last = `event: error\ndata: {"error":"ServiceError","message":"${GONE}"}\n\n`;
    expect(await running.text()).toMatch(new RegExp(`\nid: \\d+\n\n(: heartbeat\n)*${last}$`));
    expect(await queued.text()).toMatch(new RegExp(`^(: heartbeat\n)*${last}$`));
  });

  test("by an error event, which ends the stream of the thread", async () => {
    const { path, begin, waits, remove } = await start();
    const resting = await get(`${path}/stream`);
    const other = await get(`${path}/stream?stream_mode=run_modes`);
    await begin("a");
    await waits("a");
    await remove();
    const last = `event: error\ndata: {"error":"ServiceError","message":"${GONE}"}\n\n`;
    expect(await resting.text()).toMatch(new RegExp(`${last}$`));
    expect(await other.text()).toMatch(new RegExp(`${last}$`));
  });

  test("by the close code of each socket", async () => {
    const { path, begin, waits, remove } = await start();
    const run = await begin("a");
    await waits("a");
    const sockets = [
      await dial(`${path}/runs/${run}/stream`),
      await dial(`${path}/stream`),
      await dial(`${path}/stream/events`),
    ];
    await sockets[0]?.until(({ frames }) => frames.length > 0);
    await sockets[1]?.until(({ frames }) => frames.length > 0);
    await sockets[2]?.ask({ id: 1, method: "subscription.subscribe", params: { channels: ["values"] } });
    // The events come after the answer to the command.
    await sockets[2]?.until(({ texts }) => texts.length > 1);
    await remove();
    for (const socket of sockets) expect(await socket.closed).toEqual({ code: 4404, reason: GONE });
  });

  test("by the failed run in the thread protocol", async () => {
    const { path, begin, waits, remove } = await start();
    const answer = await post(`${path}/stream/events`, { channels: ["lifecycle"] });
    const following = new Following(answer);
    await begin("a");
    await waits("a");
    // A stream that has not seen the run yet cannot say that it failed.
    await following.until('"event":"running"');
    await remove();
    await following.end();
    const { text } = following;
    expect(text).toMatch(new RegExp(`"event":"failed".*${GONE}`));
    expect(text).toMatch(new RegExp(`event: error\ndata: .*"${GONE}"\\}\n\n$`));
  });

  test.each(transports)(
    "in the official client of the thread protocol, which waits no longer: %s",
    async (transport) => {
      const { url, thread: id, waits, remove } = await start();
      const { thread } = streamOf(url, transport, "held", id);
      const isRead = latch();
      const reading = (async () => {
        const read: unknown[] = [];
        for await (const one of thread.values as AsyncIterable<unknown>) {
          read.push(one);
          isRead.pass();
        }
        return read;
      })();
      await thread.run.start({ input: { name: "a" } });
      await Promise.all([waits("a"), isRead.passed]);
      await remove();
      expect(await reading).not.toContainEqual(expect.objectContaining({ log: ["a began", "a ended"] }));
    },
  );
});

test("a thread whose run is joined while the thread is deleted: both are told, and the id is free again", async () => {
  const { url, thread, path, body, begin, waits, open, remove } = await start();
  const run = await begin("a");
  await waits("a");
  const reading = new Reading(await get(`${path}/runs/${run}/stream`));
  await reading.until(({ event }) => event === "updates");
  await remove();
  await postJson(`${url}/threads`, { thread_id: thread });
  open("b");
  expect(await postJson(`${path}/runs/wait`, body("b"))).toEqual({ name: "b", log: ["b began", "b ended"] });
});

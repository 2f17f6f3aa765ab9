import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { graph, list } from "../../src/index.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, post, postJson } from "./support/wire.ts";

/**
 * The reply to an answer: `code` of a refusal if the API reports one; otherwise its status, or the protocol's name for
 * it.
 */
interface Reply {
  readonly isTaken: boolean;
  readonly refusal?: unknown;
}

interface Sending {
  readonly url: string;
  readonly thread: string;
  /** The question that waits for an answer. */
  readonly question: string;
  readonly strategy: string;
}

type Send = (sending: Sending, answer: string) => Promise<Reply>;

const overRest =
  (path: string, isById: boolean): Send =>
  async ({ url, thread, question, strategy }, answer) => {
    const response = await post(`${url}/threads/${thread}/runs${path}`, {
      assistant_id: "asks",
      command: { resume: isById ? { [question]: answer } : answer },
      multitask_strategy: strategy,
    });
    const text = await response.text();
    if (response.ok) return { isTaken: true };
    return { isTaken: false, refusal: (JSON.parse(text) as { code: string }).code };
  };

const overThreadSocket: Send = async ({ url, thread, strategy }, resume) => {
  const socket = await dial(`${url}/threads/${thread}/stream`);
  const { type, status } = await socket.ask({ type: "resume", id: 1, resume, multitask_strategy: strategy });
  return type === "ack" ? { isTaken: true } : { isTaken: false, refusal: status };
};

const respondWith = ({ question, strategy }: Sending, response: string) => ({
  id: 1,
  method: "input.respond",
  params: { interrupt_id: question, response, multitask_strategy: strategy },
});

const replyOf = ({ type, error }: { readonly type: string; readonly error?: string }): Reply =>
  type === "success" ? { isTaken: true } : { isTaken: false, refusal: error };

const overCommands: Send = async (sending, answer) =>
  replyOf(await postJson(`${sending.url}/threads/${sending.thread}/commands`, respondWith(sending, answer)));

const overProtocolSocket: Send = async (sending, answer) => {
  const socket = new WebSocket(
    `${sending.url.replace("http", "ws")}/threads/${sending.thread}/stream/events`,
  );
  await new Promise((resolve) => socket.once("open", resolve));
  const replied = new Promise<Reply>((resolve) => {
    socket.on("message", (bytes: Buffer) => {
      const message = JSON.parse(bytes.toString()) as { type: string; id?: number; error?: string };
      if (message.id === 1) resolve(replyOf(message));
    });
  });
  socket.send(JSON.stringify(respondWith(sending, answer)));
  return replied.finally(() => socket.close());
};

const faces: readonly (readonly [name: string, send: Send, conflict: unknown])[] = [
  ["/runs", overRest("", false), "resume.conflict"],
  ["/runs by id", overRest("", true), "resume.conflict"],
  ["/runs/wait", overRest("/wait", false), "resume.conflict"],
  ["/runs/wait by id", overRest("/wait", true), "resume.conflict"],
  ["/runs/stream", overRest("/stream", false), "resume.conflict"],
  ["/runs/stream by id", overRest("/stream", true), "resume.conflict"],
  ["the thread's socket", overThreadSocket, 409],
  ["input.respond", overCommands, "no_such_interrupt"],
  ["input.respond on a socket", overProtocolSocket, "no_such_interrupt"],
];

/** A graph that asks, and then works until it is released, with a thread of it that waits for an answer. */
async function asked() {
  const opened = latch();
  const asks = graph({
    state: { answers: list<unknown>() },
    nodes: {
      ask: async (_, ctx) => ({ answers: [await ctx.interrupt("what?")] }),
      work: async (_, ctx) => {
        await unlessAborted(opened.passed, ctx.signal);
        return { answers: ["worked"] };
      },
    },
    edges: { start: "ask", ask: "work" },
  });
  const { url, complaints } = await serve({ graphs: { asks } });
  const thread = await newThread(url);
  const runs = `${url}/threads/${thread}/runs`;
  const { __interrupt__ } = await postJson<{ __interrupt__: readonly { id: string }[] }>(`${runs}/wait`, {
    assistant_id: "asks",
    input: {},
  });
  const question = __interrupt__[0]?.id ?? "";
  const ended = async () => {
    const all = (await (await get(runs)).json()) as { run_id: string }[];
    for (const { run_id } of all) await (await get(`${runs}/${run_id}/join`)).text();
    return (await (await get(runs)).json()) as readonly { status: string }[];
  };
  const state = async () =>
    (await (await get(`${url}/threads/${thread}`)).json()) as { status: string; values: unknown };
  return { url, thread, runs, question, ended, state, complaints, open: () => opened.pass() };
}

describe.each(["reject", "enqueue"])("answers that come at once, %s", (strategy) => {
  test.each(faces)("%s: one of them is taken, and it is what the node gets", async (_, send) => {
    const { url, thread, question, ended, state, open } = await asked();
    open();
    const sending = { url, thread, question, strategy };
    const replies = await Promise.all(["0", "1", "2", "3"].map((answer) => send(sending, answer)));
    const taken = replies.flatMap(({ isTaken }, answer) => (isTaken ? [String(answer)] : []));
    expect(taken).toHaveLength(1);
    expect((await ended()).map((run) => run.status)).toEqual(["success", "success"]);
    expect(await state()).toMatchObject({ status: "idle", values: { answers: [taken[0], "worked"] } });
  });
});

test.each(faces)(
  "%s: a second answer is a conflict while the first one's run works",
  async (_, send, conflict) => {
    const { url, thread, runs, question, ended, state, open } = await asked();
    await postJson(runs, { assistant_id: "asks", command: { resume: "first" } });
    const sending = { url, thread, question, strategy: "enqueue" };
    expect(await send(sending, "second")).toEqual({ isTaken: false, refusal: conflict });
    open();
    expect((await ended()).map((run) => run.status)).toEqual(["success", "success"]);
    expect(await state()).toMatchObject({ status: "idle", values: { answers: ["first", "worked"] } });
  },
);

test("an answer that waits behind an answer of the same question is a conflict too", async () => {
  const { runs, ended, state, open } = await asked();
  const answer = (resume: string) =>
    post(runs, { assistant_id: "asks", command: { resume }, multitask_strategy: "enqueue" });
  const replies = [await answer("first"), await answer("second"), await answer("third")];
  expect(replies.map(({ status }) => status)).toEqual([200, 409, 409]);
  expect(await replies[1]?.json()).toEqual({
    detail: expect.stringContaining("is answered") as unknown,
    code: "resume.conflict",
  });
  open();
  await ended();
  expect(await state()).toMatchObject({ status: "idle", values: { answers: ["first", "worked"] } });
});

test("an answer takes the place of one that its strategy rolls back", async () => {
  const { runs, ended, state, open } = await asked();
  const answer = (resume: string, multitask_strategy: string) =>
    post(runs, { assistant_id: "asks", command: { resume }, multitask_strategy });
  expect((await answer("first", "enqueue")).status).toBe(200);
  expect((await answer("second", "rollback")).status).toBe(200);
  open();
  await ended();
  expect(await state()).toMatchObject({ status: "idle", values: { answers: ["second", "worked"] } });
});

test("an answer that finds no question at its turn fails alone: the thread rests as it did", async () => {
  const { runs, ended, state, open } = await asked();
  const enqueued = { assistant_id: "asks", multitask_strategy: "enqueue" };
  await postJson(runs, { ...enqueued, command: { resume: "first" } });
  // It is unknown which question will wait after the queued run.
  await postJson(runs, { ...enqueued, command: { goto: "work" } });
  await postJson(runs, { ...enqueued, command: { resume: "late" } });
  open();
  expect((await ended()).map((run) => run.status).sort()).toEqual(["error", "success", "success", "success"]);
  const thread = await state();
  expect(thread.status).toBe("idle");
  expect(thread).not.toHaveProperty("error");
});

describe("questions side by side", () => {
  const both = async () => {
    const opened = latch();
    const asks = graph({
      state: { answers: list<unknown>() },
      nodes: {
        left: async (_, ctx) => {
          const answer = await ctx.interrupt("left?");
          await unlessAborted(opened.passed, ctx.signal);
          return { answers: [answer] };
        },
        right: async (_, ctx) => ({ answers: [await ctx.interrupt("right?")] }),
      },
      edges: { start: ["left", "right"] },
    });
    const { url } = await serve({ graphs: { asks } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    const { __interrupt__ } = await postJson<{ __interrupt__: readonly { id: string; value: string }[] }>(
      `${runs}/wait`,
      { assistant_id: "asks", input: {} },
    );
    const id = (value: string) => __interrupt__.find((one) => one.value === value)?.id ?? "";
    const wait = async () => (await (await get(`${url}/threads/${thread}`)).json()) as { values: unknown };
    const joined = async (run: string) => (await get(`${runs}/${run}/join`)).text();
    return { url, thread, runs, left: id("left?"), right: id("right?"), wait, joined, opened };
  };

  test("one each by its id: both are taken, one after the other", async () => {
    const { url, thread, left, right, wait, joined, opened } = await both();
    const sending = { url, thread, strategy: "enqueue" };
    const command = (question: string, answer: string) =>
      postJson<{ type: string; result: { run_id: string } }>(
        `${url}/threads/${thread}/commands`,
        respondWith({ ...sending, question }, answer),
      );
    expect((await command(left, "L")).type).toBe("success");
    const second = await command(right, "R");
    expect(second.type).toBe("success");
    opened.pass();
    await joined(second.result.run_id);
    expect(await wait()).toMatchObject({ status: "idle", values: { answers: ["L", "R"] } });
  });

  test("a plain answer means the one that is left, and is a conflict once none is", async () => {
    const { runs, left, wait, joined, opened } = await both();
    const enqueued = { assistant_id: "asks", multitask_strategy: "enqueue" };
    await postJson(runs, { ...enqueued, command: { resume: { [left]: "L" } } });
    const plain = await postJson<{ run_id: string }>(runs, { ...enqueued, command: { resume: "R" } });
    expect((await post(runs, { ...enqueued, command: { resume: "none is left" } })).status).toBe(409);
    opened.pass();
    await joined(plain.run_id);
    expect(await wait()).toMatchObject({ status: "idle", values: { answers: ["L", "R"] } });
  });
});

test("an input to a thread whose question was answered meanwhile is an input", async () => {
  const { url, thread, ended, state, open } = await asked();
  open();
  const start = (id: number) =>
    postJson<{ type: string }>(`${url}/threads/${thread}/commands`, {
      id,
      method: "run.start",
      params: { assistant_id: "asks", input: { answers: [id] } },
    });
  const replies = await Promise.all([start(1), start(2)]);
  expect(replies.map(({ type }) => type)).toEqual(["success", "success"]);
  expect((await ended()).map((run) => run.status)).toEqual(["success", "success", "success"]);
  // One of them was the answer; the other question is asked again.
  expect(await state()).toMatchObject({ status: "interrupted" });
});

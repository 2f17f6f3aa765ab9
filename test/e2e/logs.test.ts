import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { events, get, newThread, post, type Sent } from "./support/wire.ts";

interface Line {
  readonly timestamp: string;
  readonly task: string;
  readonly node: string;
  readonly level: string;
  readonly message: string;
  readonly fields?: unknown;
  readonly stack?: string;
  readonly try?: number;
}

const inner = graph({
  state: { log: list<string>() },
  nodes: {
    deep: async (_, ctx) => {
      ctx.log.warn("from within");
      return { log: ["deep"] };
    },
  },
  edges: { start: "deep" },
});

const circular: Record<string, unknown> = {};
circular["itself"] = circular;

const talks = graph({
  state: { log: list<string>() },
  nodes: {
    speak: async (_, ctx) => {
      ctx.log.debug("not kept");
      ctx.log.info("begun", { words: 2 });
      ctx.log.warn("odd fields", circular as never);
      ctx.log.error("x".repeat(10_000), { long: "y".repeat(10_000) });
      return { log: ["spoke"] };
    },
    within: inner,
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "speak", speak: "within", within: "bad" },
});

const chatty = graph({
  state: { log: list<string>() },
  nodes: {
    chat: async (_, ctx) => {
      for (let i = 0; i < 1_500; i++) ctx.log.info(`line ${i}`);
      return { log: ["done"] };
    },
  },
  edges: { start: "chat" },
});

/** The events of a thread's only run, in the requested modes. */
async function runOf(url: string, assistant_id: string, modes: string): Promise<readonly Sent[]> {
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id, input: {}, stream_subgraphs: true });
  const [run] = (await (await get(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
  const stream = `${url}/threads/${thread}/runs/${run?.run_id}/stream?stream_mode=${modes}`;
  return events(await (await get(stream, { "last-event-id": "-1" })).text());
}

const OTHERS = "values,updates,messages,messages-tuple,custom,debug,tasks,checkpoints,events";

const linesOf = (sent: readonly Sent[]) =>
  sent.filter(({ event }) => event.startsWith("logs")).map(({ data }) => data as Line);

const HERE = "logs.test.ts";

test("clients are told what a node threw and, unless that was set, by no mode where", async () => {
  const { url } = await serve({ graphs: { talks } });
  const failed = linesOf(await runOf(url, "talks", "logs")).at(-1);
  expect(failed).toMatchObject({ node: "bad", level: "error", message: "TypeError: kaboom" });
  expect(failed).not.toHaveProperty("stack");
  expect(JSON.stringify(await runOf(url, "talks", `${OTHERS},logs`))).not.toContain(HERE);
});

test.skipIf(differs("log lines"))("a failed try of a node that may have several has its number", async () => {
  let tries = 0;
  const flaky = graph({
    state: { log: list<string>() },
    nodes: {
      call: {
        retry: { attempts: 3, initial: 1 },
        run: async () => {
          if (++tries < 3) throw new Error("overloaded");
          return { log: ["done"] };
        },
      },
    },
    edges: { start: "call" },
  });
  const { url } = await serve({ graphs: { flaky, talks } });
  const tried = async (name: string) =>
    linesOf(await runOf(url, name, "logs")).flatMap((line) => (line.level === "error" ? [line.try] : []));
  expect(await tried("flaky")).toEqual([1, 2]);
  expect((await tried("talks")).at(-1)).toBeUndefined();
});

test("what nodes log, and where one failed, is among a run's events for who asks for it, and for nobody else", async () => {
  const { url } = await serve({ graphs: { talks }, stacks: true });
  const sent = await runOf(url, "talks", "logs");
  const lines = linesOf(sent);
  const failed = lines.at(-1);
  expect(failed).toMatchObject({ node: "bad", level: "error", message: "TypeError: kaboom" });
  expect(failed?.stack).toMatch(/^TypeError: kaboom\n.*logs\.test\.ts/s);
  const others = await runOf(url, "talks", OTHERS);
  expect(JSON.stringify(others)).not.toContain(HERE);
  expect(linesOf(others)).toEqual([]);
  if (differs("log lines")) return expect(lines).toEqual([failed]);

  const [begun, odd, long, within, ...more] = lines;
  expect(more).toEqual([failed]);
  expect(begun).toMatchObject({ node: "speak", level: "info", message: "begun", fields: { words: 2 } });
  expect(begun?.timestamp).toMatch(/^\d{4}-\d\d-\d\dT/);
  expect(odd).toEqual({
    timestamp: odd?.timestamp,
    task: begun?.task,
    node: "speak",
    level: "warn",
    message: "odd fields",
  });
  expect(long?.message).toHaveLength(4_097);
  expect(long).not.toHaveProperty("fields");
  expect(within).toMatchObject({ node: "deep", level: "warn", message: "from within" });
  expect(sent.find(({ data }) => data === within)?.event).toMatch(/^logs\|within:/);
});

test.skipIf(differs("log lines"))(
  "of a task that never stops logging the first thousand lines are kept",
  async () => {
    const { url } = await serve({ graphs: { chatty } });
    const lines = linesOf(await runOf(url, "chatty", "logs"));
    expect(lines).toHaveLength(1_000);
    expect(lines.at(-1)?.message).toBe("line 999");
  },
);

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { graph, list, messages, reduce } from "../../src/index.ts";
import { z } from "zod";
import type { Effect } from "./effects.ts";
import { recorder } from "../fixtures/machines/recorder.ts";

interface Where {
  readonly threadId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly attempt: number;
}

/** Records that a body has begun, independently of Heddle's batches, checkpoints and events. */
const note = (node: string, { threadId, runId, taskId, attempt }: Where) =>
  write({ thread: threadId, run: runId, node, task: taskId, attempt });

function write(effect: Omit<Effect, "pid">): void {
  const file = process.env["HEDDLE_CHAOS_EFFECTS"];
  if (file === undefined) return;
  appendFileSync(file, `${JSON.stringify({ ...effect, pid: process.pid } satisfies Effect)}\n`);
}

/**
 * A graph with steps, parallel nodes, tokens, custom events and a question to a human. Every node appends
 * `<run>:<node>` to `log`, so the state itself shows whose work it contains.
 */
export const chaos = graph({
  state: {
    kind: z.string().default("work"),
    pace: z.number().default(5),
    log: list<string>(),
    total: reduce(z.number().default(0), (a, b) => a + b),
    messages: messages(),
  },
  nodes: {
    plan: async (state, ctx) => {
      note("plan", ctx);
      const message = ctx.message();
      for (let i = 0; i < 8; i++) {
        message.write(`t${i} `);
        await sleep(state.pace / 8);
      }
      return { log: [`${ctx.runId}:plan`], total: 1, messages: [message.end()] };
    },
    left: async (state, ctx) => {
      note("left", ctx);
      for (let i = 0; i < 4; i++) ctx.emit({ from: "left", i });
      await sleep(state.pace);
      return { log: [`${ctx.runId}:left`], total: 1 };
    },
    right: async (state, ctx) => {
      note("right", ctx);
      await sleep(state.pace * 2);
      ctx.emit({ from: "right" });
      return { log: [`${ctx.runId}:right`], total: 1 };
    },
    join: async (_, ctx) => {
      note("join", ctx);
      return { log: [`${ctx.runId}:join`], total: 1 };
    },
    ask: async (_, ctx) => {
      note("ask", ctx);
      const answer = await ctx.interrupt({ question: "go on?" });
      return { log: [`${ctx.runId}:ask:${String(answer)}`], total: 1 };
    },
  },
  edges: {
    start: (state) => (state.kind === "ask" ? "ask" : "plan"),
    plan: ["left", "right"],
    left: "join",
    right: "join",
    ask: "join",
  },
});

let attempts = 0;

/** A machine does not know its runs: its effects have its thread as their run, and the event as their task. */
export const machine = recorder({
  work: async ({ thread, n, ms }) => {
    const attempt = ++attempts;
    write({ thread, run: thread, node: "work", task: n, attempt });
    await sleep(ms);
    return `${n}/${process.pid}-${attempt}`;
  },
  note: (thread, n) => write({ thread, run: thread, node: "note", task: `note ${n}`, attempt: 1 }),
});

import { graph, messages } from "../src/index.ts";
import { setup } from "xstate";
import { z } from "zod";
import { customData } from "./servers/bodies.ts";

/** Yields to the event loop, as a node does while it reads the response of a model. */
const breathe = () => new Promise((resolve) => setImmediate(resolve));

/**
 * The number of events that a node emits before it yields to the event loop: about as many as one network read from a
 * fast model contains.
 */
const EVENTS_PER_BURST = 256;

/** The smallest graph: one node, which writes one small value. */
export const one = graph({
  state: { value: z.number().optional(), text: z.string().optional() },
  nodes: { work: async (state) => ({ value: (state.value ?? 0) + 1 }) },
  edges: { start: "work" },
});

/** The counterpart of {@link one} as an XState machine: its initial state is final. */
export const machine = setup({
  types: { context: {} as { value: number }, input: {} as { value: number } },
}).createMachine({
  id: "machine",
  context: ({ input }) => ({ value: input.value + 1 }),
  initial: "done",
  states: { done: { type: "final" } },
});

/** An XState machine that waits for an event, or for a timer of three days. */
export const waiting = setup({}).createMachine({
  id: "waiting",
  initial: "reviewing",
  states: {
    reviewing: { on: { APPROVE: "approved" }, after: { [3 * 24 * 60 * 60 * 1_000]: "expired" } },
    approved: { type: "final" },
    expired: { type: "final" },
  },
});

/** A conversation: each run adds a question and an answer to a list that is never shortened. */
export const chat = graph({
  state: { messages: messages(), topic: z.string().optional() },
  nodes: {
    answer: async () => ({ messages: [{ type: "ai", content: "y".repeat(200) }] }),
  },
  edges: { start: "answer" },
});

/** A node that emits `count` custom events, each with data of `size` bytes as JSON. */
export const emit = graph({
  state: { count: z.number(), size: z.number(), emitted: z.number().optional() },
  nodes: {
    emit: async (state, ctx) => {
      for (let i = 0; i < state.count; i++) {
        ctx.emit(customData(i, state.size));
        if (i % EVENTS_PER_BURST === EVENTS_PER_BURST - 1) await breathe();
      }
      return { emitted: state.count };
    },
  },
  edges: { start: "emit" },
});

/** A node that streams one message of `count` tokens. */
export const tokens = graph({
  state: { count: z.number(), messages: messages() },
  nodes: {
    speak: async (state, ctx) => {
      const message = ctx.message();
      for (let i = 0; i < state.count; i++) {
        message.write("word ");
        if (i % EVENTS_PER_BURST === EVENTS_PER_BURST - 1) await breathe();
      }
      return { messages: [message.end()] };
    },
  },
  edges: { start: "speak" },
});

/** A node that waits for 200 ms without using the CPU: for measurements with many concurrent runs. */
export const slow = graph({
  state: { value: z.number().optional() },
  nodes: {
    wait: async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { value: 1 };
    },
  },
  edges: { start: "wait" },
});

/** A node that computes for 300 ms without yielding to the event loop. */
export const busy = graph({
  state: { value: z.number().optional() },
  nodes: {
    compute: async () => {
      const since = performance.now();
      while (performance.now() - since < 300);
      return { value: 1 };
    },
  },
  edges: { start: "compute" },
});

/** A node that records `count` steps with `ctx.step`. */
export const steps = graph({
  state: { steps: z.number(), value: z.number().optional() },
  nodes: {
    work: async (state, ctx) => {
      let value = 0;
      for (let i = 0; i < state.steps; i++) value += await ctx.step(`step ${i}`, () => 1);
      return { value };
    },
  },
  edges: { start: "work" },
});

const add = async (state: { value?: number | undefined }) => ({ value: (state.value ?? 0) + 1 });

/** Three nodes in sequence, so that a run stores three synced checkpoints. */
export const three = graph({
  state: { value: z.number().optional() },
  nodes: { first: add, second: add, third: add },
  edges: { start: "first", first: "second", second: "third" },
});

/** A node that blocks its JavaScript thread for two milliseconds, as parsing, templates or small models do. */
export const burn = graph({
  state: { value: z.number().optional() },
  nodes: {
    burn: async () => {
      const end = performance.now() + 2;
      let value = 0;
      while (performance.now() < end) value++;
      return { value };
    },
  },
  edges: { start: "burn" },
});

import { graph, messages, value } from "heddle";
import { setup } from "xstate";

/** A conversation, to which each run appends an answer. */
export const chat = graph({
  state: { messages: messages() },
  nodes: { answer: async () => ({ messages: [{ type: "ai", content: "y".repeat(200) }] }) },
  edges: { start: "answer" },
});

/** Stores its input. */
export const keep = graph({
  state: { text: value(""), list: value<unknown>(null), more: value<unknown>(null) },
  nodes: { work: async () => ({}) },
  edges: { start: "work" },
});

/** Makes a text of `size` characters. */
export const make = graph({
  state: { size: value(0), text: value("") },
  nodes: { work: async ({ size }) => ({ text: "x".repeat(size) }) },
  edges: { start: "work" },
});

/** A machine with a timer that is due at a time (epoch milliseconds). */
export const alarm = setup({
  types: { context: {} as { at: number }, input: {} as { at: number } },
  delays: { left: ({ context }) => context.at - Date.now() },
}).createMachine({
  id: "alarm",
  context: ({ input }) => ({ at: input.at }),
  initial: "set",
  states: { set: { after: { left: "rung" } }, rung: { type: "final" } },
});

import { graph, messages, value } from "heddle";

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

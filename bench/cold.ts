import { graph, value } from "../src/index.ts";

/** For the cold start: a graph that brings no packages of its own along. */
export const cold = graph({
  state: { value: value<number>() },
  nodes: { work: async () => ({ value: 1 }) },
  edges: { start: "work" },
});

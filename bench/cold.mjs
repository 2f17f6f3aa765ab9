import { graph, value } from "heddle";

/** For the cold start: a graph that brings no packages of its own along. */
export const cold = graph({
  state: { value: value() },
  nodes: { work: async () => ({ value: 1 }) },
  edges: { start: "work" },
});

import { graph, value } from "heddle";

/** The graph for measuring a cold start: it imports no package besides Heddle. */
export const cold = graph({
  state: { value: value() },
  nodes: { work: async () => ({ value: 1 }) },
  edges: { start: "work" },
});

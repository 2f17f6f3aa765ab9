import { graph } from "heddle";
import { z } from "zod";

/** The graph `one` of `graphs.ts`, for servers that the command line starts. */
export const one = graph({
  state: { value: z.number().optional(), text: z.string().optional() },
  nodes: { work: async (state) => ({ value: (state.value ?? 0) + 1 }) },
  edges: { start: "work" },
});

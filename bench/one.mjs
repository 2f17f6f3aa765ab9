import { graph } from "heddle";
import { z } from "zod";

/** The same graph as `one` in `graphs.ts`, as a file of its own for servers that the command line starts. */
export const one = graph({
  state: { value: z.number().optional(), text: z.string().optional() },
  nodes: { work: async (state) => ({ value: (state.value ?? 0) + 1 }) },
  edges: { start: "work" },
});

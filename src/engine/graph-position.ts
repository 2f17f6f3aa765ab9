import type { Definition } from "../graph/definition.ts";
import type { Inward } from "../graph/interrupts.ts";
import type { Within } from "../model/run-start.ts";

/** Where a graph stands in its run. */
export interface Place {
  /** `""` for the root graph, else the namespace of the task that it runs in. */
  readonly ns: string;
  /** The nodes that lead to it, from the root down. */
  readonly path: readonly string[];
  /** The graph above it. */
  readonly above: Definition | null;
  /** The checkpoints above it, by their namespace. */
  readonly parents: { readonly [ns: string]: string };
  /** Answers to questions at its tasks and below, by id. */
  readonly answers: Inward;
  /** Does the graph above keep messages that a stop cuts off? Then it also wants those from here. */
  readonly keeps: boolean;
  /** Are tasks that wait to be run all the same? They ask again. */
  readonly again: boolean;
  /** Where it, and those within it, begin where they have not begun: see {@link PlannedTask.from}. */
  readonly from: readonly Within[];
}

export const ROOT: Place = {
  ns: "",
  path: [],
  above: null,
  parents: {},
  answers: {},
  keeps: true,
  again: false,
  from: [],
};

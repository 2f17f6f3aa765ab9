import type { GraphDefinition } from "../graph/definition.ts";
import type { SubgraphAnswers } from "../graph/interrupts.ts";
import type { SubgraphCheckpoint } from "../model/start-checkpoint.ts";

/** The position of a graph in its run: the root graph, or a subgraph within a task. */
export interface GraphPosition {
  /** `""` for the root graph, else the namespace of the task that runs the graph. */
  readonly ns: string;
  /** Names of the nodes from the root graph down to this graph. */
  readonly path: readonly string[];
  /** The parent graph; null for the root. */
  readonly parentGraph: GraphDefinition | null;
  /** The ids of the latest checkpoints of the graphs above, by namespace. */
  readonly parents: { readonly [ns: string]: string };
  /** The answers to interrupts of this graph's tasks and of the tasks in its subgraphs, by interrupt id. */
  readonly answers: SubgraphAnswers;
  /** True if the graphs above keep the partial messages of a stopped run. Only then may this graph keep its partial messages. */
  readonly keepsPartial: boolean;
  /** True if paused tasks run again, and raise their interrupts again. */
  readonly rerunPaused: boolean;
  /**
   * Checkpoints of another branch, from which this graph and the subgraphs within it start if they have no checkpoint
   * of their own yet; see {@link PlannedTask.from}.
   */
  readonly startFrom: readonly SubgraphCheckpoint[];
}

export const ROOT_POSITION: GraphPosition = {
  ns: "",
  path: [],
  parentGraph: null,
  parents: {},
  answers: {},
  keepsPartial: true,
  rerunPaused: false,
  startFrom: [],
};

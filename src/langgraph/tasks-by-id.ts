import type { JsonObject } from "../model/json.ts";
import { taskNamespace } from "../graph/interrupts.ts";

/** A task of a run, from LangGraph's stream. */
export interface StreamedTask {
  readonly id: string;
  readonly name: string;
  readonly ns: string;
  readonly checkpoint: string;
  readonly triggers: readonly string[];
  readonly path: readonly (string | number)[];
  readonly sent?: { readonly value: unknown };
}

const UNKNOWN = { name: "", ns: "", checkpoint: null, triggers: [], path: [] };

export class TasksById extends Map<string, StreamedTask> {
  /** The namespace of the graphs that the task's node function calls. */
  innerNs(task: string): string {
    const { ns, name } = this.get(task) ?? UNKNOWN;
    return taskNamespace(ns, name, task);
  }

  /** Whether a task belongs to a graph that the node function of the task `outer` calls, at any depth. */
  isWithin(task: string, outer: string): boolean {
    const { ns } = this.get(task) ?? UNKNOWN;
    const own = this.innerNs(outer);
    return ns === own || ns.startsWith(`${own}|`);
  }

  /** The metadata of the task for the events of its messages. `step`: the number of the task's step. */
  messageMetadata(task: string, step: number): JsonObject {
    const { name, triggers, path } = this.get(task) ?? UNKNOWN;
    const own = this.innerNs(task);
    return {
      langgraph_step: step,
      langgraph_node: name,
      langgraph_triggers: triggers,
      langgraph_path: path,
      langgraph_checkpoint_ns: own,
      checkpoint_ns: own,
    };
  }
}

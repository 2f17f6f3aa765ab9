import type { PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import {
  parseStoredAnswer,
  interruptId,
  MAX_INTERRUPTS,
  unpackSubgraphAnswers,
  packSubgraphAnswers,
  taskNamespace,
  type StoredAnswer,
  type SubgraphAnswers,
} from "../graph/interrupts.ts";
import type { SuperstepState } from "./superstep-state.ts";

/**
 * Adds answers, given by interrupt id, to the pending writes of tasks: of the task that raised the interrupt, or of the
 * task whose subgraph raised it. Skips answers to interrupts that are not open. Returns the changed writes, and the
 * tasks to run.
 */
export function addAnswers(
  superstep: SuperstepState,
  answers: SubgraphAnswers,
): { readonly stored: PendingTaskWrites[]; readonly rerun: Set<string> } {
  const stored: PendingTaskWrites[] = [];
  const rerun = new Set<string>();
  for (const task of superstep.head?.next ?? []) {
    const writes = superstep.pendingWrites.get(task.id);
    if (writes === undefined) continue;
    const { interrupts } = writes;
    const answered = interrupts.filter(({ id }) => Object.hasOwn(answers, id));
    if (answered.length === 0) continue;
    let resumes = [...writes.resumes];
    const inward: Record<string, StoredAnswer> = {};
    for (const { id, ns } of answered) {
      const given = answers[id] as StoredAnswer;
      if (ns.length > superstep.graphPosition.path.length + 1) inward[id] = given;
      else put(resumes, interruptIndex(superstep, task, id), given);
    }
    for (const _ in inward) {
      resumes = [...packSubgraphAnswers({ ...unpackSubgraphAnswers(resumes), ...inward })];
      break;
    }
    const rest = interrupts.filter(({ id }) => !Object.hasOwn(answers, id));
    stored.push({ ...writes, interrupts: rest, answered, resumes, error: null });
    rerun.add(task.id);
  }
  return { stored, rerun };
}

function put(resumes: unknown[], index: number, given: StoredAnswer): void {
  while (resumes.length < index) resumes.push(null);
  resumes[index] = given;
}

/** The index of the task's interrupt with this id. @throws ServiceError `resume.invalid` */
function interruptIndex(superstep: SuperstepState, task: PlannedTask, id: string): number {
  const ns = taskNamespace(superstep.ns, task.name, task.id);
  for (let index = 0; index < MAX_INTERRUPTS; index++) if (interruptId(ns, index) === id) return index;
  throw new ServiceError("resume.invalid", `Interrupt ${id} is not one of node "${task.name}"`);
}

/** True if this run gave at least one of these answers. */
export function hasAnswerOf(run: string, resumes: readonly unknown[]): boolean {
  return (
    resumes.some((one) => parseStoredAnswer(one)?.run === run) ||
    Object.values(unpackSubgraphAnswers(resumes)).some((answer) => answer.run === run)
  );
}

/** The ids of tasks with answers for their subgraph. These tasks have to run, because only the subgraph knows whether it has used the answers. */
export function tasksWithSubgraphAnswers(superstep: SuperstepState): ReadonlySet<string> {
  const tasks = new Set<string>();
  for (const { task, resumes } of superstep.pendingWrites.values()) {
    for (const _ in unpackSubgraphAnswers(resumes)) tasks.add(task);
  }
  return tasks;
}

/**
 * Removes the answers to interrupts of a task's subgraph that are in `waiting`: these interrupts are open again,
 * because a schema has refused their answers. Answers to interrupts of the task itself stay.
 */
export function withoutOpenAnswers(resumes: readonly unknown[], waiting: readonly { readonly id: string }[]) {
  const inward = unpackSubgraphAnswers(resumes);
  const ids = new Set(waiting.map(({ id }) => id));
  if (!Object.keys(inward).some((id) => ids.has(id))) return resumes;
  return packSubgraphAnswers(Object.fromEntries(Object.entries(inward).filter(([id]) => !ids.has(id))));
}

import type { JsonObject } from "./json.ts";

/** A question that a paused node asks a person. */
export interface Interrupt {
  readonly value: unknown;
  /** 32 lower-case hex digits, derived from the task and the index of the interrupt in it, so that the id is the same on every replay. */
  readonly id: string;
  readonly resumable: true;
  /** The task's namespace, as a list of segments `<node>:<task uuid>`. */
  readonly ns: readonly string[];
  readonly when: "during";
}

/**
 * Interrupts that wait for an answer, by the id of a task: the task that raised them, or the task in whose subgraph they were raised. In
 * the record of a thread, these are tasks of the root graph.
 */
export type InterruptsByTask = { readonly [task: string]: readonly Interrupt[] };

/** JSON Schemas of the answers, by interrupt id, for interrupts whose schema is known. */
export type AnswerSchemas = { readonly [interrupt: string]: JsonObject };

/** Interrupts that wait for an answer, with the schemas of the answers. */
export interface PendingInterrupts {
  readonly interrupts: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
}

import type { JsonObject } from "./json.ts";

/** A question of a paused node to a human. `ns` is the task's namespace, in segments `<node>:<task uuid>`. */
export interface Interrupt {
  readonly value: unknown;
  /** 32 lower-case hex digits, derived from the task and the index of the interrupt in it: the same on every replay. */
  readonly id: string;
  readonly resumable: true;
  readonly ns: readonly string[];
  readonly when: "during";
}

/** Interrupts that wait for an answer, by the id of the root task that raised them. */
export type Interrupts = { readonly [task: string]: readonly Interrupt[] };

/** JSON Schemas of the answers, by interrupt id, for interrupts whose schema is known. */
export type AnswerSchemas = { readonly [interrupt: string]: JsonObject };

/** Interrupts that wait for an answer, with the schemas of the answers. */
export interface PendingInterrupts {
  readonly interrupts: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
}

import type { JsonObject } from "./json.ts";

/** What a paused node asks of a human. `ns` is the task's namespace, segments of the form `<node>:<task uuid>`. */
export interface Interrupt {
  readonly value: unknown;
  /** 32 lower-case hex digits, from the task and the place of the interrupt in it: the same on every replay. */
  readonly id: string;
  readonly resumable: true;
  readonly ns: readonly string[];
  readonly when: "during";
}

/** Interrupts that wait for an answer, by the id of the root task that raised them. */
export type Interrupts = { readonly [task: string]: readonly Interrupt[] };

/** What answers interrupts take, as JSON Schemas by the interrupts' ids, where that is known. */
export type AnswerSchemas = { readonly [interrupt: string]: JsonObject };

/** Questions that wait. */
export interface Asking {
  readonly interrupts: readonly Interrupt[];
  readonly schemas?: AnswerSchemas;
}

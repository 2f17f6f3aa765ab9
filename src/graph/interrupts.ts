import { md5Hex } from "../model/ids.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";

/** An answer to an interrupt, with the run that gave it. */
export interface StoredAnswer {
  readonly value: unknown;
  readonly run: string;
}

/** The most interrupts that one task may raise. */
export const MAX_INTERRUPTS = 65_536;

/**
 * The most characters of a JSON Schema that is sent with an interrupt, for clients to build forms. A longer schema is
 * left out.
 */
export const MAX_SCHEMA_LENGTH = 32_768;

/**
 * The error that `ctx.interrupt` throws to leave the node's function. It is not exported to users. If a function
 * catches the error, the run pauses all the same, because the engine has recorded the interrupt before.
 */
export class PauseSignal extends Error {
  override readonly name = "Paused";
  constructor() {
    super("The run pauses here until the interrupt is answered; do not catch this");
  }
}

/** True for a {@link PauseSignal}. Compares the name, because a graph file may have loaded its own copy of the class. */
export function isPause(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "Paused";
}

const ID = /^[0-9a-f]{32}$/;

/** The namespace of a task: the namespace of its graph, `|` and `node:task`; in the root graph, only `node:task`. */
export function taskNamespace(ns: string, name: string, task: string): string {
  return `${ns === "" ? "" : `${ns}|`}${name}:${task}`;
}

/** The id of the interrupt at `index` (from 0) among those of a task. It is the same on every replay. */
export function interruptId(taskNamespace: string, index: number): string {
  return md5Hex(`${taskNamespace}|${index}`);
}

export function toInterrupt(taskNamespace: string, index: number, value: unknown): Interrupt {
  const id = interruptId(taskNamespace, index);
  return { value, id, resumable: true, ns: taskNamespace.split("|"), when: "during" };
}

/** Reads an answer from its stored form; null if there is none. */
export function parseStoredAnswer(stored: unknown): StoredAnswer | null {
  return isObject(stored) && Object.hasOwn(stored, "value") ? (stored as unknown as StoredAnswer) : null;
}

/** Answers to interrupts of a subgraph, by interrupt id. They are stored with the task that runs the subgraph. */
export type SubgraphAnswers = { readonly [id: string]: StoredAnswer };

/** Reads the answers for a subgraph from those of the task that runs it. (The task itself has no interrupts.) */
export function unpackSubgraphAnswers(resumes: readonly unknown[]): SubgraphAnswers {
  const [first] = resumes;
  return isObject(first) && isObject(first["inward"]) ? (first["inward"] as SubgraphAnswers) : {};
}

export function packSubgraphAnswers(inward: SubgraphAnswers): readonly unknown[] {
  for (const _ in inward) return [{ inward }];
  return [];
}

/** True if the command answers interrupts. `resume: null` is an answer only if the command has no `update` and no `goto`. */
export function isResume(command: Command): boolean {
  if (!Object.hasOwn(command, "resume") || command.resume === undefined) return false;
  return command.resume !== null || ((command.update ?? null) === null && (command.goto ?? null) === null);
}

/**
 * The answers by interrupt id, if `resume` is an object and all its keys are ids; undefined if `resume` itself is the
 * answer.
 */
export function answersById(resume: unknown): ReadonlyMap<string, unknown> | undefined {
  if (!isObject(resume)) return undefined;
  const keys = Object.keys(resume);
  return keys.length > 0 && keys.every((key) => ID.test(key)) ? new Map(Object.entries(resume)) : undefined;
}

/** The reason to refuse a resume, given the ids of the open interrupts; null if it is valid. */
export function resumeRefusal(
  resume: unknown,
  pending: readonly string[],
): { readonly code: "resume.ambiguous" | "resume.invalid"; readonly message: string } | null {
  if (pending.length === 0) {
    return {
      code: "resume.invalid",
      message:
        "Nothing waits for an answer or an event; go on from a breakpoint or an error with input null and no resume",
    };
  }
  const byId = answersById(resume);
  if (byId === undefined) {
    if (pending.length === 1) return null;
    return {
      code: "resume.ambiguous",
      message:
        `${pending.length} interrupts wait for an answer (${pending.join(", ")}); ` +
        `say which one is meant: resume must be an object of answers by interrupt id`,
    };
  }
  for (const id of byId.keys()) {
    if (!pending.includes(id)) {
      return {
        code: "resume.invalid",
        message: `No interrupt ${id} waits for an answer; waiting: ${pending.join(", ")}`,
      };
    }
  }
  return null;
}

import { hex32 } from "../model/ids.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { isObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";

/** An answer to an interrupt, with the run that gave it; null in the place of one that has not been answered. */
export interface Answer {
  readonly value: unknown;
  readonly run: string;
}

/** Places for questions of one task, and for their answers. */
export const MOST_QUESTIONS = 65_536;

/**
 * What `ctx.interrupt` throws to leave the body. Users do not get it, so that nobody builds on it; whether the body lets it
 * through or swallows it makes no difference: that a question was asked is remembered apart from it.
 */
export class Paused extends Error {
  override readonly name = "Paused";
  constructor() {
    super("The run pauses here until the interrupt is answered; do not catch this");
  }
}

/** By name: a graph file may have loaded its own copy of the class. */
export function isPause(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "Paused";
}

const ID = /^[0-9a-f]{32}$/;

/** The namespace of a task: `node:task`, below the graph's own. */
export function taskNs(ns: string, name: string, task: string): string {
  return `${ns === "" ? "" : `${ns}|`}${name}:${task}`;
}

/** The n-th question of a task: its id is the same on every replay. */
export function interruptId(taskNamespace: string, index: number): string {
  return hex32(`${taskNamespace}|${index}`);
}

export function toInterrupt(taskNamespace: string, index: number, value: unknown): Interrupt {
  const id = interruptId(taskNamespace, index);
  return { value, id, resumable: true, ns: taskNamespace.split("|"), when: "during" };
}

/** The stored form of an answer, read back. */
export function asAnswer(stored: unknown): Answer | null {
  return isObject(stored) && Object.hasOwn(stored, "value") ? (stored as unknown as Answer) : null;
}

/** Answers to questions of a subgraph, kept by the task whose node it is, by the question's id. */
export type Inward = { readonly [id: string]: Answer };

/** A subgraph's task asks nothing itself: what stands among its answers is all for the tasks within. */
export function readInward(resumes: readonly unknown[]): Inward {
  const [first] = resumes;
  return isObject(first) && isObject(first["inward"]) ? (first["inward"] as Inward) : {};
}

export function storeInward(inward: Inward): readonly unknown[] {
  for (const _ in inward) return [{ inward }];
  return [];
}

/** A null in the place of an answer is one only when the command asks for nothing else. */
export function resumes(command: Command): boolean {
  if (!Object.hasOwn(command, "resume") || command.resume === undefined) return false;
  return command.resume !== null || ((command.update ?? null) === null && (command.goto ?? null) === null);
}

/** A resume that answers by id: an object with nothing but ids for keys. Everything else is one plain answer. */
export function answersById(resume: unknown): ReadonlyMap<string, unknown> | undefined {
  if (!isObject(resume)) return undefined;
  const keys = Object.keys(resume);
  return keys.length > 0 && keys.every((key) => ID.test(key)) ? new Map(Object.entries(resume)) : undefined;
}

/** Why a resume cannot be taken, given the ids that wait; null when it can. */
export function refusal(
  resume: unknown,
  pending: readonly string[],
): { readonly code: "resume.ambiguous" | "resume.invalid"; readonly message: string } | null {
  if (pending.length === 0) {
    return {
      code: "resume.invalid",
      message:
        "Nothing waits for an answer; go on from a breakpoint or an error with input null and no resume",
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

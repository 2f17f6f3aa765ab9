import { plainError, type PlainError } from "../model/errors.ts";
import type { Interrupt } from "../model/interrupt.ts";
import { toStorable } from "../model/json.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { Ctx } from "../graph/context.ts";
import { asAnswer, taskNs, toInterrupt } from "../graph/interrupts.ts";
import { describe, validate, type Schema } from "../graph/schema.ts";

/**
 * What `ctx.interrupt` throws to leave the body. Not exported, so that nobody builds on it; whether the body lets it through
 * or swallows it makes no difference: that a question was asked is remembered apart from it.
 */
class Paused extends Error {
  override readonly name = "Paused";
  constructor() {
    super("The run pauses here until the interrupt is answered; do not catch this");
  }
}

/** The questions that one attempt of a task asks. The n-th gets the n-th answer. */
export class Questions {
  readonly #call: NodeCall;
  readonly #ns: string;
  /** Those without an answer, or with one that was refused, in the order in which they were asked. */
  readonly #waiting: Interrupt[] = [];
  readonly #refused: number[] = [];
  #error: PlainError | undefined;
  #asked = 0;

  constructor(call: NodeCall) {
    this.#call = call;
    this.#ns = taskNs(call.ns, call.node, call.task);
  }

  readonly ask: Ctx["interrupt"] = (value, options) => {
    const answered = new Promise<never>((resolve, reject) => {
      try {
        resolve(this.#answer(value, options?.schema) as never);
      } catch (thrown) {
        reject(thrown);
      }
    });
    // A body that forgets to await it must not end the process.
    answered.catch(() => undefined);
    return answered;
  };

  #answer(value: unknown, schema: Schema | undefined): unknown {
    const place = this.#asked++;
    const answer = asAnswer(this.#call.resumes[place]);
    const question = toInterrupt(this.#ns, place, toStorable(value, "interrupt"));
    if (answer === null) {
      this.#waiting.push(question);
      throw new Paused();
    }
    const checked = accept(answer.value, schema);
    if (checked.ok) return checked.value;
    this.#waiting.push(question);
    this.#refused.push(place);
    this.#error ??= {
      error: "InvalidResumeError",
      message: `The answer to interrupt ${question.id} of node "${this.#call.node}" was refused: ${checked.why}`,
    };
    throw new Paused();
  }

  /** How the attempt ends because of its questions; undefined when none of them waits. */
  outcome(): TaskOutcome | undefined {
    if (this.#waiting.length === 0) return undefined;
    const interrupts = this.#waiting;
    if (this.#error === undefined) return { kind: "interrupted", interrupts };
    return { kind: "failed", error: this.#error, refused: { interrupts, places: this.#refused } };
  }
}

/** The answer as the node gets it, or why it does not. A schema that throws refuses: no answer may cost the question. */
function accept(
  answer: unknown,
  schema: Schema | undefined,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string } {
  try {
    // A copy: the node may change what it gets.
    const value = toStorable(answer, "resume");
    if (schema === undefined) return { ok: true, value };
    const result = validate(schema, value, "resume");
    return result.ok ? result : { ok: false, why: describe(result.fields) };
  } catch (thrown) {
    return { ok: false, why: plainError(thrown).message };
  }
}

export function failure(thrown: unknown): TaskOutcome {
  return { kind: "failed", error: plainError(thrown) };
}

import { toPlainError, type PlainError } from "../model/errors.ts";
import type { AnswerSchemas, Interrupt } from "../model/interrupt.ts";
import { type JsonObject, toStorable } from "../model/json.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { Ctx } from "../graph/node-context.ts";
import {
  parseStoredAnswer,
  MAX_INTERRUPTS,
  MAX_SCHEMA_LENGTH,
  PauseSignal,
  taskNamespace,
  toInterrupt,
} from "../graph/interrupts.ts";
import { jsonSchemaOf } from "../graph/json-schema-conversion.ts";
import { describeFieldErrors, validate, type Schema } from "../graph/standard-schema.ts";

/**
 * A counter for the interrupts of a node function. Functions that the node runs in parallel (the calls of `runTools`) have
 * counters of their own, whose numbers do not overlap. So the interrupt to which an answer belongs does not depend on which
 * function asks first.
 */
interface Scope {
  readonly base: number;
  readonly stride: number;
  asked: number;
}

/** The interrupts of one attempt of a task. The n-th interrupt gets the n-th answer. */
export class TaskInterrupts {
  readonly #call: NodeCall;
  readonly #ns: string;
  /** The interrupts without an accepted answer, in the order in which they were raised. */
  readonly #open: Interrupt[] = [];
  readonly #refused: number[] = [];
  #schemas: Record<string, JsonObject> | undefined;
  #error: PlainError | undefined;
  readonly #root: Scope = { base: 0, stride: 1, asked: 0 };
  /** Scopes of parallel functions, by their `interrupt` function. Undefined while there are none. */
  #scopes: WeakMap<Ctx["interrupt"], Scope> | undefined;

  constructor(call: NodeCall) {
    this.#call = call;
    this.#ns = taskNamespace(call.ns, call.node, call.task);
  }

  readonly ask: Ctx["interrupt"] = (value, options) => this.#ask(this.#root, value, options?.schema);

  /**
   * Makes an `interrupt` function for each of `count` parallel functions; the caller MUST call `join` when all of them
   * have ended.
   */
  parallelScopes(
    asker: Ctx["interrupt"],
    count: number,
  ): { readonly asks: readonly Ctx["interrupt"][]; join(): void } {
    const parent = this.#scopes?.get(asker) ?? this.#root;
    const { base, stride, asked } = parent;
    const scopes: readonly Scope[] = Array.from({ length: count }, (_, i) => ({
      base: base + stride * (asked + i),
      stride: stride * count,
      asked: 0,
    }));
    return {
      asks: scopes.map((scope) => this.#asker(scope)),
      join: () => {
        parent.asked = asked + count * Math.max(0, ...scopes.map((scope) => scope.asked));
      },
    };
  }

  #asker(scope: Scope): Ctx["interrupt"] {
    const ask: Ctx["interrupt"] = (value, options) => this.#ask(scope, value, options?.schema);
    (this.#scopes ??= new WeakMap()).set(ask, scope);
    return ask;
  }

  #ask(scope: Scope, value: unknown, schema: Schema | undefined): Promise<never> {
    const answered = new Promise<never>((resolve, reject) => {
      try {
        const index = scope.base + scope.stride * scope.asked++;
        resolve(this.#answer(index, value, schema) as never);
      } catch (thrown) {
        reject(thrown);
      }
    });
    // Prevents an unhandled rejection, which would end the process, if the node function does not await the promise.
    answered.catch(() => undefined);
    return answered;
  }

  #answer(index: number, value: unknown, schema: Schema | undefined): unknown {
    if (index >= MAX_INTERRUPTS) throw new RangeError(`A task asks at most ${MAX_INTERRUPTS} questions`);
    const answer = parseStoredAnswer(this.#call.resumes[index]);
    const question = toInterrupt(this.#ns, index, toStorable(value, "interrupt"));
    if (answer === null) {
      this.#addOpen(question, schema);
      throw new PauseSignal();
    }
    const checked = validateAnswer(answer.value, schema);
    if (checked.ok) return checked.value;
    this.#addOpen(question, schema);
    this.#refused.push(index);
    this.#error ??= {
      error: "InvalidResumeError",
      message: `The answer to interrupt ${question.id} of node "${this.#call.node}" was refused: ${checked.why}`,
    };
    throw new PauseSignal();
  }

  #addOpen(question: Interrupt, schema: Schema | undefined): void {
    this.#open.push(question);
    const described = schema === undefined ? null : jsonSchemaOf(schema, "input");
    if (described === null || JSON.stringify(described).length > MAX_SCHEMA_LENGTH) return;
    (this.#schemas ??= {})[question.id] = described;
  }

  /** The outcome of the task's attempt if an interrupt is open, else undefined. */
  outcome(): TaskOutcome | undefined {
    if (this.#open.length === 0) return undefined;
    const interrupts = this.#open;
    const schemas: { schemas?: AnswerSchemas } =
      this.#schemas === undefined ? {} : { schemas: this.#schemas };
    if (this.#error === undefined) return { kind: "interrupted", interrupts, ...schemas };
    return { kind: "failed", error: this.#error, refused: { interrupts, places: this.#refused, ...schemas } };
  }
}

/** Validates an answer. A schema that throws counts as a refusal, so that the interrupt stays open. */
function validateAnswer(
  answer: unknown,
  schema: Schema | undefined,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string } {
  try {
    // Makes a copy, because the node may change the answer.
    const value = toStorable(answer, "resume");
    if (schema === undefined) return { ok: true, value };
    const result = validate(schema, value, "resume");
    return result.ok ? result : { ok: false, why: describeFieldErrors(result.fields) };
  } catch (thrown) {
    return { ok: false, why: toPlainError(thrown).message };
  }
}

export function failedOutcome(thrown: unknown): Extract<TaskOutcome, { kind: "failed" }> {
  return { kind: "failed", error: toPlainError(thrown) };
}

import type { PlannedTask, PendingTaskWrites } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type {
  Backoff,
  Emission,
  Execution,
  Subgraph,
  NodeCall,
  Plan,
  CheckpointWithState,
  SettledTask,
  EngineStep,
  StreamedFact,
  TaskOutcome,
} from "../ports/engine.ts";
import { subgraphOf } from "../graph/definition.ts";
import type { RetryRule } from "../graph/node.ts";
import { chooseTargets, normalizeReturn, type NodeResult } from "../graph/node-return.ts";
import { parse } from "../graph/standard-schema.ts";
import { applyUpdates, type StoredTarget } from "../graph/superstep.ts";
import { withoutOpenAnswers } from "./resume-answers.ts";
import { planFirstStep, planFirstSubgraphStep } from "./first-step.ts";
import { commitStep, toClientError } from "./commit-step.ts";
import { addCompleteEvents } from "./complete-message-events.ts";
import {
  makePartialOutputStep,
  findPartialMessagesKey,
  type PartialMessagesChannel,
} from "./keep-partial-messages.ts";
import { SuperstepState } from "./superstep-state.ts";
import { errorFromPlain, subgraphOutcome, subgraphPositionOf, subgraphInput } from "./subgraph-task.ts";
import { messageMetadata } from "./message-metadata.ts";
import { isRetryable } from "./retryable-errors.ts";

/** The task of the parent graph that runs a subgraph. */
interface SubgraphEntry {
  readonly input: unknown;
  /** The name of the task's node in the parent graph. */
  readonly node: string;
  readonly retry: RetryRule | undefined;
}

/** The plain data of a retry policy, without its `when` function, which stays with the node's function. */
function backoffOf({ initial, factor, max, jitter }: RetryRule): Backoff {
  return { initial, factor, max, jitter };
}

type Returned = Extract<TaskOutcome, { kind: "returned" }>;
type Interrupted = Extract<TaskOutcome, { kind: "interrupted" }>;
type Failed = Extract<TaskOutcome, { kind: "failed" }>;
type Refused = NonNullable<Failed["refused"]>;

/** One attempt of a run of a graph made by `graph()`. */
export class NativeExecution implements Execution {
  readonly #superstep: SuperstepState;
  readonly #edition: number;
  readonly #partialKey: PartialMessagesChannel | undefined;
  /** The task that runs this subgraph; null for the root graph. */
  readonly #entry: SubgraphEntry | null;
  #context: JsonObject = {};
  /** The plan that the last step made; null before the first step. */
  #plan: Plan | null = null;
  #isRefused = false;

  constructor(superstep: SuperstepState, edition: number, entry: SubgraphEntry | null = null) {
    this.#superstep = superstep;
    this.#edition = edition;
    this.#partialKey = superstep.graphPosition.keepsPartial
      ? findPartialMessagesKey(superstep.definition)
      : undefined;
    this.#entry = entry;
  }

  begin(): EngineStep {
    const step = this.#entry === null ? this.#begin(planFirstStep) : this.#beginInner(this.#entry);
    this.#plan = step.plan;
    return step;
  }

  #beginInner({ input, node }: SubgraphEntry): EngineStep {
    try {
      const { definition } = this.#superstep;
      return this.#begin((superstep) =>
        planFirstSubgraphStep(superstep, subgraphInput(definition, input, superstep.graphPosition)),
      );
    } catch (thrown) {
      return this.#superstep.failed(toClientError(thrown, node));
    }
  }

  #begin(first: (superstep: SuperstepState) => EngineStep): EngineStep {
    const { definition, run } = this.#superstep;
    const { context } = run.kwargs;
    const checked =
      definition.context === undefined ? context : parse(definition.context, context, "context");
    this.#context = isObject(checked) ? checked : context;
    return first(this.#superstep);
  }

  call(task: string): NodeCall {
    const { run, pendingWrites, step, definition, tries, ns, source } = this.#superstep;
    const planned = this.#task(task);
    const { name } = planned;
    const node = definition.nodes.get(name);
    const input = this.#inputOf(planned);
    const writes = pendingWrites.get(task);
    const next = (tries.get(task) ?? 0) + 1;
    tries.set(task, next);
    return {
      graph: run.graph_id,
      engine: "native",
      edition: this.#edition,
      node: name,
      task,
      ns,
      run: run.run_id,
      thread: run.thread_id,
      tenant: source.tenant,
      assistant: run.assistant_id,
      attempt: run.attempt,
      try: next,
      subgraph: node !== undefined && node.graph !== null,
      tries: node?.retry.attempts ?? 1,
      ...(node !== undefined && node.retry.attempts > 1 && { backoff: backoffOf(node.retry) }),
      timeout: node?.timeout ?? null,
      step,
      input,
      config: run.kwargs.config,
      context: this.#context,
      resumes: writes?.resumes ?? [],
      steps: writes?.steps ?? {},
      meta: messageMetadata(this.#superstep, planned),
      ...(this.#partialKey !== undefined && { keepsPartial: true }),
    };
  }

  settle(id: string, outcome: TaskOutcome): SettledTask {
    const task = this.#task(id);
    switch (outcome.kind) {
      case "interrupted":
        return this.#interrupted(task, outcome);
      case "failed":
        return outcome.refused === undefined
          ? this.#failed(task, outcome.error, outcome)
          : this.#refused(task, outcome.error, outcome.refused);
      case "returned":
        return this.#returned(task, outcome);
    }
  }

  apply(): EngineStep {
    const step = commitStep(this.#superstep);
    this.#plan = step.plan;
    return step;
  }

  cut(streamed: ReadonlyMap<string, readonly StreamedFact[]>): EngineStep | null {
    if (this.#partialKey === undefined) return null;
    return makePartialOutputStep(this.#superstep, this.#partialKey, streamed, (task) =>
      messageMetadata(this.#superstep, task),
    );
  }

  abandon(): void {
    this.#superstep.definition.machine?.runEnded(this.#superstep.run.run_id);
  }

  enter(id: string): Subgraph {
    const task = this.#task(id);
    const superstep = this.#superstep;
    const node = superstep.definition.nodes.get(task.name);
    const definition = subgraphOf(node);
    if (definition === null) throw new TypeError(`Node "${task.name}" is no graph`);
    const graphPosition = subgraphPositionOf(superstep, task);
    const { run, source } = superstep;
    const entry = { input: this.#inputOf(task), node: task.name, retry: node?.retry };
    const open = (position: CheckpointWithState) =>
      new NativeExecution(
        new SuperstepState(definition, run, position, source, graphPosition),
        this.#edition,
        entry,
      );
    return { ns: graphPosition.ns, from: graphPosition.startFrom[0] ?? null, open };
  }

  outcome(failure: PlainError | null): TaskOutcome {
    const outcome = subgraphOutcome(this.#superstep, this.#plan, failure, this.#isRefused);
    const retry = this.#entry?.retry;
    if (outcome.kind !== "failed" || retry === undefined || retry.attempts < 2) return outcome;
    return isRetryable(retry, errorFromPlain(outcome.error)) ? outcome : { ...outcome, final: true };
  }

  /**
   * The input with which a task's node runs: the input of the `send` that planned the task; otherwise the state, parsed
   * by the node's `input` schema if there is one.
   */
  #inputOf({ name, input }: PlannedTask): unknown {
    if (input !== undefined) return input.value;
    const { definition, state } = this.#superstep;
    const schema = definition.nodes.get(name)?.input;
    return schema === undefined ? state : parse(schema, state, `the input of node "${name}"`);
  }

  #interrupted(task: PlannedTask, { interrupts, schemas }: Interrupted): SettledTask {
    const { pausedTasks, pendingWrites } = this.#superstep;
    if (interrupts.length === 0) pausedTasks.set(task.id, true);
    const resumes = withoutOpenAnswers(pendingWrites.get(task.id)?.resumes ?? [], interrupts);
    return this.#settled(task, "interrupted", { interrupts, resumes, ...(schemas && { schemas }) }, []);
  }

  /**
   * Settles a task that returned commands for the parent graph. These commands are stored instead of the
   * task's `goto`.
   */
  #toParent(task: PlannedTask, leaves: readonly unknown[]): SettledTask {
    if (this.#entry === null) {
      const message = `Node "${task.name}": to.parent(...) leaves a subgraph; this graph has none above it`;
      return this.#failed(task, { error: "InvalidUpdateError", message });
    }
    const facts = this.#superstep.resultFacts(task, { update: null, interrupts: [] });
    return this.#settled(task, "done", { result: { value: null, goto: [{ leaves }] } }, facts);
  }

  #returned(task: PlannedTask, { value, cached, streamed: named }: Returned): SettledTask {
    const superstep = this.#superstep;
    const { definition, values } = superstep;
    const { id, name } = task;
    const emissions: Emission[] = [];
    let reading: NodeResult;
    let goto: readonly StoredTarget[];
    try {
      reading = normalizeReturn(definition, value, id);
      if (reading.parentCommands !== undefined) return this.#toParent(task, reading.parentCommands);
      // The messages of a subgraph are not emitted again: its tasks have already emitted them.
      if (definition.nodes.get(name)?.graph === null)
        addCompleteEvents(superstep, task, reading.update, named, emissions);
      const { update, untracked } = reading;
      const chosen = chooseTargets(definition, name, () => {
        const applied = applyUpdates(definition, values, [update]);
        superstep.precomputed = { task: id, applied };
        return superstep.withUntracked(applied.values, { ...superstep.untracked, ...untracked });
      });
      goto = chosen.length === 0 ? reading.goto : [...reading.goto, ...chosen];
    } catch (thrown) {
      return this.#failed(task, toClientError(thrown, name));
    }
    const { update, untracked } = reading;
    if (untracked !== null) superstep.untrackedWrites.set(id, untracked);
    emissions.push(
      ...superstep.resultFacts(
        task,
        cached === true ? { update, cached, interrupts: [] } : { update, interrupts: [] },
      ),
    );
    const result = goto.length === 0 ? { value: update } : { value: update, goto };
    return this.#settled(task, "done", { result }, emissions);
  }

  #failed(
    task: PlannedTask,
    error: PlainError,
    { waiting: interrupts = [], at }: Pick<Failed, "waiting" | "at"> = {},
  ): SettledTask {
    const resumes = withoutOpenAnswers(this.#superstep.pendingWrites.get(task.id)?.resumes ?? [], interrupts);
    const facts = this.#superstep.resultFacts(task, { error, interrupts, ...(at !== undefined && { at }) });
    return { error, ...this.#settled(task, "failed", { error, interrupts, resumes }, facts) };
  }

  /** Settles a task whose answers were refused by schemas. Those answers are removed, and their interrupts are open again. */
  #refused(task: PlannedTask, error: PlainError, { interrupts, places, schemas }: Refused): SettledTask {
    this.#isRefused = true;
    const given = withoutOpenAnswers(this.#superstep.pendingWrites.get(task.id)?.resumes ?? [], interrupts);
    const keptAnswers: unknown[] = given.map((one, index) => (places.includes(index) ? null : one));
    while (keptAnswers.length > 0 && keptAnswers.at(-1) === null) keptAnswers.pop();
    const facts = this.#superstep.resultFacts(task, { error, interrupts });
    const changes = { error, interrupts, resumes: keptAnswers, ...(schemas && { schemas }) };
    return { error, ...this.#settled(task, "failed", changes, facts) };
  }

  #settled(
    task: PlannedTask,
    kind: SettledTask["kind"],
    changes: Partial<PendingTaskWrites>,
    emissions: readonly Emission[],
  ): SettledTask {
    const { head, pendingWrites, ns } = this.#superstep;
    const before = pendingWrites.get(task.id);
    const { interrupts = [], resumes = before?.resumes ?? [], error = null, result, schemas } = changes;
    const checkpoint = head?.id ?? "";
    const { id, name } = task;
    const steps = before?.steps ?? {};
    const { answered } = before ?? {};
    const bare = { ns, checkpoint, task: id, name, interrupts, resumes, steps, error };
    let writes: PendingTaskWrites = bare;
    if (result !== undefined)
      writes = { ns, checkpoint, task: id, name, interrupts, resumes, steps, error, result };
    else if (schemas !== undefined) writes = { ...bare, schemas };
    if (answered !== undefined && interrupts.length === 0) writes = { ...writes, answered };
    pendingWrites.set(task.id, writes);
    return { kind, writes, emissions };
  }

  #task(id: string): PlannedTask {
    const task = this.#superstep.tasks.get(id);
    if (task === undefined) throw new TypeError(`There is no task ${id} in this step`);
    return task;
  }
}

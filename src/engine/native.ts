import type { PlannedTask, TaskWrites } from "../model/checkpoint.ts";
import type { PlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type {
  Backoff,
  Emission,
  Engine,
  Execution,
  NodeCall,
  Position,
  Settled,
  Source,
  Step,
  StreamedFact,
  TaskOutcome,
} from "../ports/engine.ts";
import type { Definition } from "../graph/definition.ts";
import { taskNs } from "../graph/interrupts.ts";
import type { Message, RemoveMessage } from "../graph/message.ts";
import type { RetryRule } from "../graph/node.ts";
import type { GraphRegistry } from "../graph/registry.ts";
import { readEdge, readReturn, type Reading } from "../graph/returned.ts";
import { parse } from "../graph/schema.ts";
import { applyUpdates, own, type Move } from "../graph/superstep.ts";
import { begin } from "./begin.ts";
import { commitStep, errorOf } from "./commit.ts";
import { cutStep, keeperOf, type Keeper } from "./cut.ts";
import { Frame, ROOT } from "./frame.ts";
import { refusalOf } from "./refusals.ts";
import { isStreamed, streamedIds } from "./streamed.ts";

/** Heddle's own engine: graphs made by `graph()`, in supersteps. Pure; every execution stands alone. */
export function nativeEngine(registry: GraphRegistry): Engine {
  return {
    has: (graph) => registry.has(graph),
    graphs: () => registry.names(),
    open: (run, position, source) => {
      const { definition, edition } = registry.current(run.graph_id);
      return new NativeExecution(definition, edition, run, position, source);
    },
    output: (graph) => (registry.has(graph) ? registry.get(graph).output : null),
    refuses: (run, interrupts, blank = false) =>
      registry.has(run.graph_id) ? refusalOf(registry.get(run.graph_id), run, interrupts, blank) : null,
  };
}

/** The part of a policy that is data: its function stays with the node's body. */
function backoffOf({ initial, factor, max, jitter }: RetryRule): Backoff {
  return { initial, factor, max, jitter };
}

type Returned = Extract<TaskOutcome, { kind: "returned" }>;
type Refused = NonNullable<Extract<TaskOutcome, { kind: "failed" }>["refused"]>;

class NativeExecution implements Execution {
  readonly #frame: Frame;
  readonly #edition: number;
  readonly #keeper: Keeper | undefined;
  #context: JsonObject = {};

  constructor(definition: Definition, edition: number, run: RunRecord, position: Position, source: Source) {
    this.#edition = edition;
    this.#keeper = keeperOf(definition);
    this.#frame = new Frame(definition, run, position, source);
  }

  begin(): Step {
    const { definition, run } = this.#frame;
    const { context } = run.kwargs;
    const checked =
      definition.context === undefined ? context : parse(definition.context, context, "context");
    this.#context = isObject(checked) ? checked : context;
    return begin(this.#frame);
  }

  call(task: string): NodeCall {
    const { run, left, step, definition, tries, source } = this.#frame;
    const planned = this.#task(task);
    const { name } = planned;
    const node = definition.nodes.get(name);
    let input: unknown = planned.input === undefined ? this.#frame.state : planned.input.value;
    if (planned.input === undefined && node?.input !== undefined) {
      input = parse(node.input, input, `the input of node "${name}"`);
    }
    const writes = left.get(task);
    const next = (tries.get(task) ?? 0) + 1;
    tries.set(task, next);
    return {
      graph: run.graph_id,
      edition: this.#edition,
      node: name,
      task,
      ns: ROOT,
      run: run.run_id,
      thread: run.thread_id,
      tenant: source.tenant,
      assistant: run.assistant_id,
      attempt: run.attempt,
      try: next,
      tries: node?.retry.attempts ?? 1,
      ...(node !== undefined && node.retry.attempts > 1 && { backoff: backoffOf(node.retry) }),
      timeout: node?.timeout ?? null,
      step,
      input,
      config: run.kwargs.config,
      context: this.#context,
      resumes: writes?.resumes ?? [],
      steps: writes?.steps ?? {},
      meta: this.#meta(planned),
      ...(this.#keeper !== undefined && { keepsPartial: true }),
    };
  }

  settle(id: string, outcome: TaskOutcome): Settled {
    const task = this.#task(id);
    switch (outcome.kind) {
      case "interrupted":
        return this.#left(task, "interrupted", { interrupts: outcome.interrupts }, []);
      case "failed":
        return outcome.refused === undefined
          ? this.#failed(task, outcome.error)
          : this.#refused(task, outcome.error, outcome.refused);
      case "returned":
        return this.#returned(task, outcome);
    }
  }

  apply(): Step {
    return commitStep(this.#frame);
  }

  cut(streamed: ReadonlyMap<string, readonly StreamedFact[]>): Step | null {
    if (this.#keeper === undefined) return null;
    return cutStep(this.#frame, this.#keeper, streamed, (task) => this.#meta(task));
  }

  #returned(task: PlannedTask, { value, cached, streamed: named }: Returned): Settled {
    const frame = this.#frame;
    const { definition, values } = frame;
    const { id, name } = task;
    const emissions: Emission[] = [];
    let reading: Reading;
    let goto: readonly Move[];
    try {
      reading = readReturn(definition, value, id);
      this.#complete(task, reading.update, emissions, named);
      const { update, untracked } = reading;
      const chosen = readEdge(definition, name, () => {
        const applied = applyUpdates(definition, values, [update]);
        frame.fresh = { task: id, applied };
        return frame.withLoose(applied.values, { ...frame.untracked, ...untracked });
      });
      goto = chosen.length === 0 ? reading.goto : [...reading.goto, ...chosen];
    } catch (thrown) {
      return this.#failed(task, errorOf(thrown, name));
    }
    const { update, untracked } = reading;
    if (untracked !== null) frame.loose.set(id, untracked);
    const fact = frame.resultFact(task, { update, interrupts: [], ...(cached === true && { cached }) });
    emissions.push({ fact });
    const result = goto.length === 0 ? { value: update } : { value: update, goto };
    return this.#left(task, "done", { result }, emissions);
  }

  #failed(task: PlannedTask, error: PlainError): Settled {
    const fact = this.#frame.resultFact(task, { error, interrupts: [] });
    return { ...this.#left(task, "failed", { error }, [{ fact }]), error };
  }

  /** Answers were refused by their schemas: the questions wait again, without them. */
  #refused(task: PlannedTask, error: PlainError, { interrupts, places }: Refused): Settled {
    const given = this.#frame.left.get(task.id)?.resumes ?? [];
    const kept: unknown[] = given.map((one, place) => (places.includes(place) ? null : one));
    while (kept.length > 0 && kept.at(-1) === null) kept.pop();
    const fact = this.#frame.resultFact(task, { error, interrupts });
    return { ...this.#left(task, "failed", { error, interrupts, resumes: kept }, [{ fact }]), error };
  }

  #left(
    task: PlannedTask,
    kind: Settled["kind"],
    leavings: Partial<TaskWrites>,
    emissions: readonly Emission[],
  ): Settled {
    const { head, left } = this.#frame;
    const before = left.get(task.id);
    const writes: TaskWrites = {
      ns: ROOT,
      checkpoint: head?.id ?? "",
      task: task.id,
      name: task.name,
      interrupts: [],
      resumes: before?.resumes ?? [],
      steps: before?.steps ?? {},
      error: null,
      ...leavings,
    };
    left.set(task.id, writes);
    return { kind, writes, emissions };
  }

  /** Tells of the messages in an update that are new to the state. */
  #complete(
    task: PlannedTask,
    update: JsonObject | null,
    emissions: Emission[],
    named: readonly string[] | undefined,
  ): void {
    const { definition, values, run, tries } = this.#frame;
    let ids: string | undefined;
    for (const key in update) {
      const rule = definition.rules.get(key);
      if (rule?.holds === undefined) continue;
      for (const message of update[key] as readonly (Message | RemoveMessage)[]) {
        ids ??= streamedIds(task.id, run.attempt, tries.get(task.id) ?? 1);
        const streamed = isStreamed(ids, message.id) || named?.includes(message.id) === true;
        if (!streamed && message.type !== "remove" && rule.holds(own(values, key), message.id)) continue;
        const shown = message as unknown as JsonObject;
        emissions.push({
          fact: { t: "complete", message: shown, streamed, ns: ROOT, meta: this.#meta(task) },
        });
      }
    }
  }

  /** What the events of a task's messages say about where they come from. */
  #meta({ id, name, path, triggers }: PlannedTask): JsonObject {
    const ns = taskNs(ROOT, name, id);
    return {
      langgraph_step: this.#frame.step,
      langgraph_node: name,
      langgraph_triggers: triggers,
      langgraph_path: path,
      langgraph_checkpoint_ns: ns,
      checkpoint_ns: ns,
    };
  }

  #task(id: string): PlannedTask {
    const task = this.#frame.tasks.get(id);
    if (task === undefined) throw new TypeError(`There is no task ${id} in this step`);
    return task;
  }
}

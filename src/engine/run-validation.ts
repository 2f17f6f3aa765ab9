import { type FieldError, ServiceError, toPlainError } from "../model/errors.ts";
import type { InterruptsByTask } from "../model/interrupt.ts";
import { MAX_REPORTED_FIELDS } from "../model/json-schema-errors.ts";
import { isSameJson, type JsonObject, toStorable } from "../model/json.ts";
import {
  type Breakpoints,
  type Command,
  graphCommandOf,
  graphInputOf,
  type RunKwargs,
} from "../model/run.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { UnadmittedRun, RunRefusal } from "../ports/engine.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { withTimeLimit } from "../ports/with-time-limit.ts";
import { subgraphOf, type GraphDefinition } from "../graph/definition.ts";
import { answersById, resumeRefusal, isResume } from "../graph/interrupts.ts";
import { describeFieldErrors, parse, type SchemaResult, toFieldErrors } from "../graph/standard-schema.ts";
import { isGiven, normalizeCommandUpdate, normalizeGoto } from "./command-input.ts";
import { checkRequiredKeys, normalizeInput } from "./graph-input.ts";

/**
 * The longest time in milliseconds that a machine's schema may take. Until then the request waits, and so do requests with the same
 * idempotency key.
 */
const MAX_SCHEMA_MS = 10_000;

/** A fixed namespace for the ids of messages without an id. The input is only validated here and then dropped, so the ids do not matter. */
const NO_NAMESPACE = "00000000-0000-0000-0000-000000000000";

/**
 * Validates the request of a run before the run is admitted: finds unknown node names, and values that the graph's schemas refuse.
 * `interrupts`: the open interrupts of the thread; null: they are not known yet, and answers are checked when the run starts. `blank`: the
 * thread has no state yet. Returns null if nothing is wrong.
 */
export function validateRun(
  definition: GraphDefinition,
  run: UnadmittedRun,
  interrupts: InterruptsByTask | null,
  blank: boolean,
): RunRefusal | null {
  const { kwargs } = run;
  const command = graphCommandOf(kwargs);
  const input = graphInputOf(kwargs);
  const breakpoints =
    unknownNode(definition, kwargs.interrupt_before, "interrupt_before") ??
    unknownNode(definition, kwargs.interrupt_after, "interrupt_after");
  if (breakpoints !== null) return breakpoints;
  const { context } = definition;
  if (context !== undefined) {
    const refused = refusalBy("context", () => parse(context, kwargs.context, "context"));
    if (refused !== null) return refused;
  }
  if (command !== null && (isResume(command) || isGiven(command.update) || isGiven(command.goto))) {
    return (
      refusalBy("command.goto", () => normalizeGoto(definition, command.goto)) ??
      refusalBy("command.update", () => normalizeCommandUpdate(definition, command.update, NO_NAMESPACE)) ??
      machineWriteRefusal(definition, command.update) ??
      (isResume(command) && interrupts !== null ? validateResume(definition, run, interrupts) : null)
    );
  }
  if (!isGiven(input)) {
    if (!blank) return null;
    const why = definition.machine?.whyNeedsInput();
    if (why !== undefined)
      return { code: "validation.failed", message: `input ${why}`, fields: [{ at: "input", message: why }] };
    // Refuses a first run without an input if the state requires a value, as for an empty input. Otherwise the run is admitted. Unless the
    // graph is a machine, the run then fails with `EmptyInputError`, as in LangGraph.
    return refusalBy("input", () => checkRequiredKeys(definition, {}, null));
  }
  const whyNot = definition.machine?.whyNotInput(input);
  if (whyNot !== undefined)
    return {
      code: "validation.failed",
      message: `input ${whyNot}`,
      fields: [{ at: "input", message: whyNot }],
    };
  return refusalBy("input", () => {
    const { update } = normalizeInput(definition, input, NO_NAMESPACE);
    if (blank) checkRequiredKeys(definition, {}, update);
  });
}

/** The refusal of a command's write to a key that a machine keeps for itself; null if there is none. */
function machineWriteRefusal(definition: GraphDefinition, given: unknown): RunRefusal | null {
  if (definition.machine === undefined) return null;
  const { update } = normalizeCommandUpdate(definition, given, NO_NAMESPACE);
  const fault = update === null ? undefined : definition.machine.writeFault(update, () => ({}));
  if (fault === undefined) return null;
  const { message } = fault;
  const at = `command.update.${fault.key}`;
  return { code: "validation.failed", message: `${at} ${message}`, fields: [{ at, message }] };
}

function validateResume(
  { machine }: GraphDefinition,
  { kwargs }: UnadmittedRun,
  interrupts: InterruptsByTask,
): RunRefusal | null {
  // If the run names a checkpoint to resume from, the interrupts at that checkpoint are not known here.
  if (typeof kwargs.config.configurable["checkpoint_id"] === "string") return null;
  const open = Object.values(interrupts).flat();
  const resume = graphCommandOf(kwargs)?.resume;
  const pending = open.map(({ id }) => id);
  const refused = resumeRefusal(resume, pending);
  if (refused !== null || machine === undefined) return refused;
  const byId = answersById(resume);
  for (const { id, value } of open) {
    const answer = byId === undefined ? resume : byId.get(id);
    const why = answer === undefined ? undefined : machine.refusesAnswer(answer, value);
    if (why === undefined) continue;
    const at = byId === undefined ? "command.resume" : `command.resume.${id}`;
    return { code: "validation.failed", message: `${at} ${why}`, fields: [{ at, message: why }] };
  }
  return null;
}

/**
 * Validates the input of a machine's run, or the events with which the run answers, by the schemas that the machine declares. Resolves with
 * the run's arguments, where `parsed` has the values that the schemas returned. Returns undefined if there is nothing to validate.
 * @param values reads the values from which the run will start; null if there are none
 * @param scheduler limits the time of each call of a schema to {@link MAX_SCHEMA_MS}
 */
export function parseMachineRun(
  { machine }: GraphDefinition,
  { kwargs }: UnadmittedRun,
  values: () => Eventually<JsonObject | null>,
  scheduler: Scheduler,
): Promise<RunKwargs> | undefined {
  const schemas = machine?.schemas;
  if (schemas === undefined) return undefined;
  const { command, input } = kwargs;
  const withParsed = (parsed: Command) => ({ ...kwargs, parsed: { command: parsed } });
  if (command !== null && isResume(command)) {
    return (async () => {
      const { resume } = command;
      const state = schemas.areByVersion ? await values() : null;
      const parseAnswer = (answer: unknown, at: string) =>
        parseBy(() => schemas.parseEvent(answer, state), at, scheduler);
      const byId = answersById(resume);
      if (byId === undefined) {
        const parsed = await parseAnswer(resume, "command.resume");
        return isSameJson(parsed, resume) ? kwargs : withParsed({ ...command, resume: parsed });
      }
      const parsed: Record<string, unknown> = {};
      for (const [id, answer] of byId) parsed[id] = await parseAnswer(answer, `command.resume.${id}`);
      return isSameJson(parsed, resume) ? kwargs : withParsed({ ...command, resume: parsed });
    })();
  }
  if (command !== null && (isGiven(command.update) || isGiven(command.goto))) return undefined;
  const { input: schema } = schemas;
  if (schema === null || !isGiven(input)) return undefined;
  return parseBy(() => schema["~standard"].validate(input), "input", scheduler).then((parsed) =>
    isSameJson(parsed, input) ? kwargs : { ...kwargs, parsed: { input: parsed } },
  );
}

/**
 * Calls `validate`, and resolves with a storable copy of the schema's output.
 * @throws ServiceError `validation.failed`, `value.unstorable`; `graph.invalid` if the schema itself fails, or takes too long
 */
async function parseBy(
  validate: () => Eventually<SchemaResult<unknown>>,
  at: string,
  scheduler: Scheduler,
): Promise<unknown> {
  let fields: readonly FieldError[];
  try {
    const result = await withTimeLimit(scheduler, MAX_SCHEMA_MS, validate);
    if (result.issues === undefined) return toStorable(result.value, at);
    // An empty list of issues is a refusal too.
    const issues = result.issues.length > 0 ? [...result.issues] : [{ message: "" }];
    fields = toFieldErrors(at, issues.slice(0, MAX_REPORTED_FIELDS));
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw new ServiceError("graph.invalid", `${at}: its schema failed: ${toPlainError(cause).message}`, {
      cause,
    });
  }
  throw new ServiceError("validation.failed", describeFieldErrors(fields), { fields });
}

function unknownNode(root: GraphDefinition, points: Breakpoints | null, at: string): RunRefusal | null {
  if (points === null || points === "*") return null;
  for (const name of points) {
    const unknown = graphWithout(root, name);
    if (unknown === null) continue;
    const shown = JSON.stringify(name.slice(0, 128));
    const message = `names ${shown}, which is no node; the nodes are ${[...unknown.nodes.keys()].join(", ")}`;
    return { code: "validation.failed", message: `${at} ${message}`, fields: [{ at, message }] };
  }
  return null;
}

/** The graph that lacks the node of a breakpoint (`node`, or `node|node of its subgraph`); null if the node exists. */
function graphWithout(root: GraphDefinition, point: string): GraphDefinition | null {
  const [name = "", ...above] = point.split("|").reverse();
  let graph = root;
  for (const node of above.reverse()) {
    const inner = subgraphOf(graph.nodes.get(node));
    if (inner === null) return graph;
    graph = inner;
  }
  return graph.nodes.has(name) || (name === "*" && graph !== root) ? null : graph;
}

/**
 * Runs `read`. If `read` throws the error of an invalid request, returns it as a refusal of the request; otherwise
 * null.
 */
function refusalBy(at: string, read: () => unknown): RunRefusal | null {
  try {
    read();
    return null;
  } catch (thrown) {
    // An error of a schema that throws or is asynchronous is not the client's fault, so the request is accepted. The run
    // will fail with this error.
    if (!isRefusal(thrown)) return null;
    const fields: readonly FieldError[] =
      thrown.fields.length > 0 ? thrown.fields : [{ at, message: thrown.message }];
    return { code: "validation.failed", message: thrown.message, fields };
  }
}

/** True for the error of an invalid request. Compares the name, because a graph file may have loaded its own copy of the class. */
function isRefusal(thrown: unknown): thrown is ServiceError {
  if (!(thrown instanceof Error) || thrown.name !== "ServiceError") return false;
  const { code } = thrown as ServiceError;
  return code === "state.invalid" || code === "value.unstorable";
}

import type { Command as LangGraphCommand, Pregel } from "@langchain/langgraph";
import { answersById, resumeRefusal, isResume } from "../graph/interrupts.ts";
import { checkpointMetadataOfRun } from "../graph/run-checkpoint-metadata.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Command, RunKwargs, RunRecord, StreamMode } from "../model/run.ts";
import { rootCheckpointOf } from "../model/start-checkpoint.ts";
import type { CheckpointWithState } from "../ports/engine.ts";
import { branchStartOf } from "./branch-from-checkpoint.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import type { CheckpointRunData } from "./graph-progress.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- the type of the graph's state is not known here
type StreamOptions = NonNullable<Parameters<Pregel<any, any>["stream"]>[1]>;

/** Keys of `configurable` that are not copied: {@link placeOf} decides from which checkpoint a run starts. */
const CHECKPOINT_KEYS: ReadonlySet<string> = new Set([
  "checkpoint_id",
  "checkpoint_ns",
  "checkpoint_map",
  "thread_id",
]);

/** The input with which the graph is run; null if it continues from its last checkpoint. */
export function langGraphInput(
  library: LangGraphLibrary,
  run: RunRecord,
  position: CheckpointWithState,
): unknown {
  const { command, input } = run.kwargs;
  // An earlier attempt has made a checkpoint, which contains the input or the answers.
  if (run.attempt > 1 && position.head?.run_id === run.run_id) return null;
  if (command === null) return input ?? null;
  return toLangGraphCommand(library, command, pendingInterruptIds(position));
}

/** The data of the run that is stored with each of its checkpoints. */
export function checkpointRunDataOf(run: RunRecord, graph: string): CheckpointRunData {
  const { command, input } = run.kwargs;
  const goesOn = command === null ? (input ?? null) === null : isResume(command);
  return { run: run.run_id, metadata: checkpointMetadataOfRun(run), graph, goesOn };
}

/** The ids of the interrupts at a checkpoint that wait for an answer, each once. */
export function pendingInterruptIds({ head, writes }: CheckpointWithState): readonly string[] {
  const left = new Map(writes.map((each) => [each.task, each]));
  const all = (head?.next ?? []).flatMap(({ id }) => {
    const task = left.get(id);
    return task === undefined || task.result !== undefined ? [] : task.interrupts.map((asked) => asked.id);
  });
  // Several tasks of a step may wait at the same interrupt of a subgraph, so an id may occur more than once.
  return [...new Set(all)];
}

/** Converts a command to a LangGraph `Command`. `pending`: the ids of the pending interrupts. */
export function toLangGraphCommand(
  library: LangGraphLibrary,
  command: Command,
  pending: readonly string[],
): LangGraphCommand {
  const { Command: LangCommand, Send } = library.langgraph;
  const { update, goto, resume } = command;
  const asked = goto === undefined || goto === null ? [] : Array.isArray(goto) ? goto : [goto];
  const targets = asked.map((target: unknown) =>
    isObject(target) ? new Send(String(target["node"]), target["input"] ?? null) : String(target),
  );
  return new LangCommand({
    ...(update !== undefined && update !== null && { update: update as Record<string, unknown> }),
    ...(targets.length > 0 && { goto: targets }),
    ...(isResume(command) && { resume: answersOf(resume, pending) }),
  });
}

/**
 * The reason to refuse an answer (`command.resume`), given the ids of the pending interrupts; null if it is accepted. `unfinished`: nodes
 * have yet to run. If no interrupt is pending then, LangGraph gives the answer to the first node that interrupts; with `strict_resume`, the
 * answer is refused.
 */
export function answerRefusal(
  { command, strict_resume }: Pick<RunKwargs, "command" | "strict_resume">,
  pending: readonly string[],
  unfinished: boolean,
): ReturnType<typeof resumeRefusal> {
  const resume = command?.resume;
  const isLeftOpen = unfinished && pending.length === 0 && strict_resume !== true;
  return isLeftOpen && answersById(resume) === undefined ? null : resumeRefusal(resume, pending);
}

/**
 * Converts an answer to LangGraph's form. If only one interrupt is pending, the answers null, false, 0 and "" are passed with the
 * interrupt's id, because LangGraph would ignore them otherwise.
 */
function answersOf(resume: unknown, pending: readonly string[]): unknown {
  if (answersById(resume) !== undefined) return resume;
  const [only] = pending;
  if (only === undefined || pending.length > 1) return resume;
  return isFalsy(resume) ? { [only]: resume } : resume;
}

const isFalsy = (value: unknown): boolean => value === null || value === false || value === 0 || value === "";

/**
 * The keys of `configurable` that name the checkpoint from which the run's configuration says to start. Empty if the configuration names no
 * checkpoint, or once the run has made a checkpoint.
 */
function placeOf(run: RunRecord, position: CheckpointWithState): JsonObject {
  const { configurable } = run.kwargs.config;
  const { head } = position;
  if (head === null || rootCheckpointOf(configurable) !== head.id) return {};
  if (branchStartOf(run, position) === null) return { checkpoint_id: head.id };
  const { checkpoint_id, checkpoint_ns, checkpoint_map } = configurable;
  // Keeps only namespaces without task ids, which are the same on every branch. `CheckpointBranch` handles the others, because a branch has
  // new task ids.
  const places = Object.entries(isObject(checkpoint_map) ? checkpoint_map : {});
  const lasting = Object.fromEntries(places.filter(([ns]) => !ns.includes(":")));
  return { checkpoint_id, checkpoint_ns, checkpoint_map: lasting };
}

/** LangGraph's modes that every run streams, because its checkpoints and most facts are made of them. */
const MODES = ["values", "updates", "checkpoints", "tasks", "custom"] as const;

/**
 * What LangGraph has to produce for each of Heddle's stream modes: its `modes` ({@link MODES}), its `tokens`, LangChain's `events`, the
 * calls of `tools`, or `nothing`, because nodes of LangGraph have no such output.
 */
const SOURCES = {
  values: "modes",
  updates: "modes",
  messages: "tokens",
  "messages-tuple": "tokens",
  custom: "modes",
  debug: "modes",
  tasks: "modes",
  checkpoints: "modes",
  events: "events",
  tools: "tools",
  logs: "nothing",
} as const satisfies Record<StreamMode, string>;

/**
 * Whether the run requests tokens. Only then does LangGraph stream tokens, because streaming them costs a handler for every call within the
 * nodes.
 */
function wantsMessages({ kwargs }: RunRecord): boolean {
  return kwargs.stream_mode.some((mode) => SOURCES[mode] === "tokens");
}

/**
 * Whether the run requests LangChain's events. Only then are they recorded, because each event contains the full input or output of a
 * runnable.
 */
export const requestsLangChainEvents = ({ kwargs }: RunRecord): boolean =>
  kwargs.stream_mode.some((mode) => SOURCES[mode] === "events");

/**
 * Whether the run requests the calls of tools. Only then does LangGraph stream them, because each contains the full input and output of a
 * tool.
 */
const requestsTools = ({ kwargs }: RunRecord): boolean =>
  kwargs.stream_mode.some((mode) => SOURCES[mode] === "tools");

export function streamOptionsOf(
  run: RunRecord,
  position: CheckpointWithState,
  signal: AbortSignal,
): StreamOptions {
  const { kwargs, run_id: runId } = run;
  const { config, context } = kwargs;
  const { tags, recursion_limit, max_concurrency } = config;
  const before = breakpoints(kwargs.interrupt_before);
  const after = breakpoints(kwargs.interrupt_after);
  const options = {
    streamMode: [
      ...MODES,
      ...(wantsMessages(run) ? (["messages"] as const) : []),
      ...(requestsTools(run) ? (["tools"] as const) : []),
    ],
    subgraphs: true,
    signal,
    runId,
    // Also `async` for a run with Heddle's durability `exit`: the run's actor combines the steps and stores them at the end of the run.
    durability: "async" as const,
    configurable: configurableOf(run, placeOf(run, position)),
    metadata: { ...checkpointMetadataOfRun(run) },
    // Set even if the context is empty, because nodes read `runtime.context.key` without checking whether the run has a context.
    context,
    ...(Array.isArray(tags) && { tags: tags.map(String) }),
    ...(typeof recursion_limit === "number" && { recursionLimit: recursion_limit }),
    ...(typeof max_concurrency === "number" && { maxConcurrency: max_concurrency }),
    ...(before !== null && { interruptBefore: before }),
    ...(after !== null && { interruptAfter: after }),
  };
  return options as unknown as StreamOptions;
}

function configurableOf(run: RunRecord, place: JsonObject): JsonObject {
  const own = Object.entries(run.kwargs.config.configurable).filter(([key]) => !CHECKPOINT_KEYS.has(key));
  return {
    ...Object.fromEntries(own),
    thread_id: run.thread_id,
    ...place,
  };
}

const breakpoints = (asked: readonly string[] | "*" | null) =>
  asked === null || asked === "*" || asked.length > 0 ? asked : null;

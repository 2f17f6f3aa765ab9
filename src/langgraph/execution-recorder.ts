import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { PUSH_KIND } from "../graph/superstep.ts";
import type { NewCheckpoint } from "../model/checkpoint.ts";
import type { Interrupt, InterruptsByTask } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { earlierRunTaskResultsOf } from "../model/earlier-run-task-results.ts";
import { stringifyJson } from "../model/stringify-json.ts";
import type { Emission, CheckpointWithState, ExecutionServices } from "../ports/engine.ts";
import { PendingWrites, type TaskKey } from "./pending-writes.ts";
import {
  type CheckpointPayload,
  isInterruptPayload,
  isWholeState,
  GraphProgress,
  type CheckpointRunData,
  taskPathOf,
  toStateObject,
} from "./graph-progress.ts";
import type { SaverCheckpoint, SaverWrites } from "./saver-inputs.ts";
import { isEqualData, serialise } from "./serialisation.ts";
import { TasksById } from "./tasks-by-id.ts";
import { CheckpointIdMap } from "./checkpoint-id-map.ts";
import type { MessageRecorder } from "./message-recorder.ts";
import { isPauseOfTool, toolEventText, toolNamespace } from "./tool-events.ts";
import { streamPayloadWithoutKeys } from "./untracked-channels.ts";

interface TaskPayload {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly triggers: readonly string[];
}

interface ResultPayload {
  readonly id: string;
  readonly name: string;
  readonly result: unknown;
}

interface Parts {
  readonly source: Pick<ExecutionServices, "now" | "checkpointId">;
  readonly position: CheckpointWithState;
  readonly marks: CheckpointRunData;
  readonly input: JsonObject | null;
  readonly messages: MessageRecorder;
  /** The version of the graph's LangGraph.js. */
  readonly version: string;
  readonly showsEarlierRunTaskResults: boolean;
  /** The keys of the state that are neither stored nor shown to clients, for the graph at a namespace. */
  hidden(ns: string): ReadonlySet<string>;
  /** Called when a task has ended and all of its events are recorded. */
  ended(task: string): void;
}

/**
 * Recorder of an attempt. It converts LangGraph's events to checkpoints, pending writes and events of the run, in order, and keeps them
 * until they are passed to the run's actor, which stores them.
 */
export class ExecutionRecorder {
  readonly ids: CheckpointIdMap;
  readonly pendingWrites = new PendingWrites();
  readonly tasks = new TasksById();
  checkpoints: NewCheckpoint[] = [];
  emissions: Emission[] = [];
  /** True if the root graph has made a checkpoint since the last step was passed to the run's actor. */
  hasAdvanced = false;
  /** The graph that has just streamed its state, if it has made no checkpoint yet; otherwise null. */
  #shown: GraphProgress | null = null;
  readonly #parts: Parts;
  readonly #loops = new Map<string, GraphProgress>();
  /** When the node functions of tasks threw, in epoch milliseconds, by task id. */
  readonly #failures = new Map<string, number>();
  /** Stored checkpoints of subgraphs that were read in this attempt, by namespace. */
  readonly #read = new Map<string, CheckpointWithState>();
  /**
   * True if {@link forgetPastSteps} may have something to forget: a graph has made a checkpoint since the last call, or the last call had
   * to keep a task that was in use.
   */
  #hasPastSteps = false;
  /** Checkpoints that were put to the saver but have not been streamed yet, by namespace and id. */
  readonly #raws = new Map<string, SaverCheckpoint>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.ids = new CheckpointIdMap(parts.source);
    this.pendingWrites.addStored(parts.position.writes);
    this.root.input = parts.input;
  }

  get root(): GraphProgress {
    return this.loop("");
  }

  get isEmpty(): boolean {
    return this.checkpoints.length === 0 && this.emissions.length === 0 && this.pendingWrites.isEmpty;
  }

  /** The graphs that have stopped at a checkpoint whose next tasks LangGraph has not streamed. */
  get graphsWithUnknownNext(): readonly GraphProgress[] {
    return [...this.#loops.values()].filter(({ isNextUnknown: unknown }) => unknown);
  }

  loop(ns: string): GraphProgress {
    const known = this.#loops.get(ns);
    if (known !== undefined) return known;
    const at = ns === "" ? this.#parts.position : (this.#read.get(ns) ?? null);
    const loop = new GraphProgress(ns, at, this.#parts.marks, this.#parts.hidden(ns));
    this.#loops.set(ns, loop);
    return loop;
  }

  /** True if the graph at this namespace has made a checkpoint, or has continued from one. */
  hasCheckpoint(ns: string): boolean {
    return (this.#loops.get(ns)?.id ?? null) !== null;
  }

  // --- LangGraph's events ---

  read(ns: string, position: CheckpointWithState): void {
    if (!this.#loops.has(ns)) this.#read.set(ns, position);
    this.pendingWrites.addStored(position.writes);
  }

  put(raw: SaverCheckpoint): void {
    this.#raws.set(`${raw.ns} ${raw.id}`, raw);
    // Serialises the values now. Later events contain parts of them, which then need not be serialised again.
    void raw.values;
  }

  /**
   * Checks that the graph still has the nodes of its planned tasks.
   * @throws Error `GraphChangedError` if a node is missing, so that the run cannot continue
   */
  checkNodes(path: readonly string[], mode: string, data: unknown): void {
    if (mode !== "checkpoints") return;
    const loop = this.loop(path.join("|"));
    const payload = data as CheckpointPayload;
    // Skips other payloads that LangGraph streams in this mode, which have no config and no tasks.
    if (payload.config === undefined) return;
    const id = this.ids.storedIdOfPayload(payload);
    loop.checkNodes(id, payload, this.#raws.get(`${loop.ns} ${id}`));
  }

  putWrites(raw: SaverWrites): void {
    this.pendingWrites.add(raw, this.tasks.get(raw.task)?.name);
  }

  chunk(path: readonly string[], mode: string, data: unknown): void {
    const ns = path.join("|");
    if (mode === "messages")
      return this.#parts.messages.receive(path, data as Parameters<MessageRecorder["receive"]>[1]);
    if (mode === "tools") return this.#tool(path, data);
    const loop = this.loop(ns);
    if (mode !== "checkpoints") this.#unkept();
    const payload = streamPayloadWithoutKeys(mode, data, loop.hidden);
    switch (mode) {
      case "values": {
        this.#between(loop);
        if (isInterruptPayload(payload)) this.#pause(loop, payload.__interrupt__);
        else loop.streamedState = toStateObject(payload);
        if (loop.id === null) this.#shown = loop;
        return;
      }
      case "updates":
        return this.#update(loop, payload as JsonObject);
      case "checkpoints":
        return this.#checkpoint(loop, payload as CheckpointPayload);
      case "tasks":
        if ("triggers" in (payload as object)) this.#taskStarts(loop, payload as TaskPayload);
        else this.#taskEnds(loop, payload as ResultPayload);
        return;
      case "custom":
        this.emissions.push({ fact: { t: "custom", ns, json: stringifyJson(serialise(payload)) } });
    }
  }

  #tool(path: readonly string[], data: unknown): void {
    if (isPauseOfTool(data)) return;
    this.#unkept();
    const ns = toolNamespace(path, this.#parts.version).join("|");
    this.emissions.push({ fact: { t: "tool", ns, json: toolEventText(data) } });
  }

  event(event: StreamEvent): void {
    this.emissions.push({ fact: { t: "event", json: eventText(event) } });
  }

  /** Ends a batch of events. `over`: whether it was the last batch. */
  close(over: boolean): void {
    for (const loop of this.#loops.values()) this.#between(loop);
    if (over) for (const raw of this.#raws.values()) this.#untold(this.loop(raw.ns), raw);
  }

  #checkpoint(loop: GraphProgress, payload: CheckpointPayload): void {
    const id = this.ids.storedIdOfPayload(payload);
    const key = `${loop.ns} ${id}`;
    const [emission, made] = loop.checkpoint(id, payload, this.#raws.get(key));
    this.#raws.delete(key);
    this.#made(
      loop,
      made,
      emission && this.#parts.showsEarlierRunTaskResults
        ? this.#withTasks(loop, payload, emission)
        : emission,
    );
  }

  #withTasks({ ns, id, next }: GraphProgress, { tasks }: CheckpointPayload, emission: Emission): Emission {
    const known = earlierRunTaskResultsOf(
      next,
      (task) => this.pendingWrites.get({ ns, checkpoint: id ?? "", task }),
      (task) => isObject(tasks.find((each) => each.id === task.id)?.state),
    );
    if (known === undefined || emission.fact.t !== "checkpoint") return emission;
    return { ...emission, fact: { ...emission.fact, tasks: known } };
  }

  #made({ ns }: GraphProgress, made: NewCheckpoint | undefined, emission: Emission | undefined): void {
    if (ns === "") this.hasAdvanced = true;
    this.#hasPastSteps = true;
    if (made !== undefined) this.checkpoints.push(made);
    if (emission !== undefined) this.emissions.push(emission);
  }

  /** Emits the streamed state of a graph that has made no checkpoint. Other graphs emit their state together with a checkpoint. */
  #unkept(): void {
    const loop = this.#shown;
    this.#shown = null;
    if (loop === null || loop.id !== null) return;
    for (const raw of this.#raws.values()) if (raw.ns === loop.ns) return;
    this.#between(loop);
  }

  /** Emits a state that a graph has streamed and for which no checkpoint has been streamed. */
  #between(loop: GraphProgress): void {
    if (loop.streamedState === undefined) return;
    for (const raw of this.#raws.values()) if (raw.ns === loop.ns) return this.#untold(loop, raw);
    const emission = loop.stateWithoutCheckpoint();
    if (emission !== undefined) this.emissions.push(emission);
  }

  #untold(loop: GraphProgress, raw: SaverCheckpoint): void {
    this.#raws.delete(`${raw.ns} ${raw.id}`);
    const [emission, made] = loop.unstreamedCheckpoint(raw);
    this.#made(loop, made, emission);
  }

  #update(loop: GraphProgress, payload: JsonObject): void {
    if (isInterruptPayload(payload)) return;
    const update = serialise(payload) as JsonObject;
    const { __metadata__: about } = update;
    if (!isObject(about) || about["cached"] !== true) {
      loop.endingUpdate = update;
      return;
    }
    // A cached update contains results of tasks that ended earlier, or results from LangGraph's cache.
    for (const [name, value] of Object.entries(update)) {
      if (name === "__metadata__") continue;
      loop.addUpdate(name, value);
      const id = loop.next.find((task) => task.name === name)?.id ?? "";
      const taskKey = { id, name, ns: loop.ns, checkpoint: loop.id ?? "" };
      const cached = {
        at: this.#parts.source.now(),
        update: value,
        cached: true,
        again: true,
        interrupts: [],
      } as const;
      this.emissions.push({ fact: { t: "result", ...taskKey, ...cached } });
    }
  }

  #pause({ ns, id, visibleState: shown }: GraphProgress, asked: readonly unknown[]): void {
    const interrupts = asked.flat().map((each) => this.pendingWrites.withOrigin(each));
    this.emissions.push({ fact: { t: "interrupt", ns, checkpoint: id ?? "", interrupts }, values: shown });
  }

  #taskStarts(loop: GraphProgress, { id, name, triggers, input }: TaskPayload): void {
    const path = loop.next.find((task) => task.id === id)?.path ?? taskPathOf(undefined, name);
    const given = serialise(input);
    const sent =
      path[0] === PUSH_KIND || !isWholeState(given, loop.visibleState) ? { value: given } : undefined;
    loop.taskStarted(id, triggers, sent);
    const { ns } = loop;
    const checkpoint = loop.id ?? "";
    const at = this.#parts.source.now();
    // LangGraph streams the start of all tasks of the step from which a run continues, including tasks that have ended and do not run
    // again. Members are listed one by one, because an object literal that begins with a spread costs a microsecond for each member.
    const hasEnded = this.pendingWrites.get({ ns, checkpoint, task: id })?.result !== undefined;
    if (hasEnded) {
      this.tasks.set(id, { id, name, ns, checkpoint, triggers, path, ...(sent && { sent }) });
      const fact = { t: "task", id, name, ns, checkpoint, triggers, at, again: true } as const;
      this.emissions.push({ fact: sent === undefined ? fact : { ...fact, input: sent } });
    } else if (sent === undefined) {
      this.tasks.set(id, { id, name, ns, checkpoint, triggers, path });
      this.emissions.push({ fact: { t: "task", id, name, ns, checkpoint, triggers, at } });
    } else {
      this.tasks.set(id, { id, name, ns, checkpoint, triggers, path, sent });
      this.emissions.push({ fact: { t: "task", id, name, ns, checkpoint, triggers, at, input: sent } });
    }
  }

  /** Notes when the node function of a task threw. LangGraph streams the task's end later or, if the attempt is retried, never. */
  noteFailure(task: string, at: number): void {
    this.#failures.set(task, at);
  }

  #taskEnds(loop: GraphProgress, { id, name, result }: ResultPayload): void {
    const { ns } = loop;
    const checkpoint = this.tasks.get(id)?.checkpoint ?? loop.id ?? "";
    const left = this.pendingWrites.get({ ns, checkpoint, task: id });
    const interrupts = left?.interrupts ?? [];
    const thrown = this.#failures.get(id);
    this.#failures.delete(id);
    const at = (left?.error ? thrown : undefined) ?? this.#parts.source.now();
    const base = { t: "result", id, name, ns, checkpoint, at, interrupts } as const;
    if (left?.error) this.emissions.push({ fact: { ...base, error: left.error } });
    else if (interrupts.length > 0) this.emissions.push({ fact: base });
    else {
      const shown = serialise(result);
      const update =
        loop.endingUpdate !== undefined && Object.hasOwn(loop.endingUpdate, name)
          ? loop.endingUpdate[name]
          : shown;
      loop.endingUpdate = undefined;
      loop.addUpdate(name, update);
      if (left?.result !== undefined)
        this.pendingWrites.set({ ...left, result: { ...left.result, value: update } });
      for (const fact of this.#parts.messages.completed(ns, update, loop.visibleState, () =>
        this.#metaOf(loop, id),
      ))
        this.emissions.push({ fact });
      const fact = { t: "result", id, name, ns, checkpoint, at, interrupts, update } as const;
      this.emissions.push({ fact: isEqualData(shown, update) ? fact : { ...fact, written: shown } });
    }
    this.#parts.ended(id);
  }

  #metaOf({ head }: GraphProgress, task: string): JsonObject {
    return this.tasks.messageMetadata(task, (head?.step ?? -1) + 1);
  }

  // --- tasks ---

  place(task: string): TaskKey & { readonly name: string } {
    const { ns, checkpoint, name } = this.tasks.get(task) ?? {
      ns: "",
      checkpoint: this.root.id ?? "",
      name: "",
    };
    return { ns, checkpoint, task, name };
  }

  /**
   * Forgets tasks of past steps, their writes, and the graphs that their node functions called, so that a run of many steps does not keep
   * all of them in memory. A step is past when its graph has made the next checkpoint. The caller MUST have passed everything recorded to
   * the run's actor.
   * @param isInUse whether a task has not been settled yet
   */
  forgetPastSteps(isInUse: (task: string) => boolean): void {
    if (!this.#hasPastSteps) return;
    this.#hasPastSteps = false;
    const isPast = (ns: string, checkpoint: string) => {
      const loop = this.#loops.get(ns);
      return loop !== undefined && checkpoint !== (loop.id ?? "");
    };
    const over = new Set<string>();
    for (const [id, { ns, checkpoint }] of this.tasks) {
      if (!isPast(ns, checkpoint)) continue;
      if (isInUse(id)) this.#hasPastSteps = true;
      else over.add(this.tasks.innerNs(id));
    }
    const isOver = (ns: string) => over.size > 0 && isWithinAny(ns, over);
    this.pendingWrites.forget(
      ({ ns, checkpoint, task }) => !isInUse(task) && (isOver(ns) || isPast(ns, checkpoint)),
    );
    for (const [id, { ns, checkpoint }] of this.tasks) {
      if (isInUse(id) || !(isOver(ns) || isPast(ns, checkpoint))) continue;
      this.tasks.delete(id);
      this.#failures.delete(id);
    }
    for (const ns of this.#loops.keys()) if (isOver(ns)) this.#loops.delete(ns);
    for (const ns of this.#read.keys()) if (isOver(ns)) this.#read.delete(ns);
  }

  /** The pending interrupts of the root graph, by task id. */
  pendingInterrupts(): InterruptsByTask {
    const { next, id } = this.root;
    const all: Record<string, readonly Interrupt[]> = {};
    for (const { id: task } of next) {
      const left = this.pendingWrites.get({ ns: "", checkpoint: id ?? "", task });
      if (left !== undefined && left.result === undefined && left.interrupts.length > 0)
        all[task] = left.interrupts;
    }
    return all;
  }
}

/** Whether a namespace is in `all`, or within a namespace in `all`. */
function isWithinAny(ns: string, all: ReadonlySet<string>): boolean {
  for (let end = ns.indexOf("|"); end >= 0; end = ns.indexOf("|", end + 1))
    if (all.has(ns.slice(0, end))) return true;
  return all.has(ns);
}

/** An event as JSON text. Runnables may have any input and output: data that cannot be stored is left out, instead of failing the run. */
function eventText(event: StreamEvent): string {
  try {
    return stringifyJson(serialise(event));
  } catch {
    return stringifyJson(serialise({ ...event, data: {} }));
  }
}

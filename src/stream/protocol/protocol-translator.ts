import type { JsonText } from "../../codec/large-json.ts";
import type { CheckpointHead } from "../../model/checkpoint.ts";
import { type Fact, eventCountOf } from "../../model/run-event.ts";
import { uuid6Time } from "../../model/ids.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import type { ChildMachineStatus } from "../../model/machine-child.ts";
import type { RunRecord } from "../../model/run.ts";
import { andThen, type Eventually } from "../../ports/eventually.ts";
import { type FactOf, json, outputOf, type RenderContext, taskNs } from "../render-context.ts";
import { tasksModeResult, tasksModeTask } from "../checkpoint-and-task-modes.ts";
import type { RenderDataLoader } from "../render-data-loader.ts";
import { OUTPUT_CHARACTERS_PER_PASS, type ChunkSlice } from "../rendering.ts";
import { EventNumbering, type ProtocolEvent } from "./protocol-event.ts";
import { MessageEvents, objectsIn } from "./message-events.ts";

/** Lifecycle events for the end of a run, a subgraph or a child machine. */
type Terminal = "completed" | "failed" | "interrupted";

/**
 * Translates one run into protocol events. The caller MUST pass all of the run's facts, in order, because the events of a message or a
 * subgraph depend on earlier facts. The same run always gives the same events.
 */
export class ProtocolTranslator {
  readonly #run: RunRecord;
  readonly #numbers = new EventNumbering();
  readonly #messages: MessageEvents;
  /** The namespaces of subgraphs that have started but not ended. */
  readonly #children = new Set<string>();
  /**
   * The namespaces in `#children` that belong to child machines. A child machine ends with a checkpoint or with a pause of the run, not
   * with the result of a task.
   */
  readonly #machines = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #toolStarts = new ToolCallEvents();
  readonly #toolEnds = new ToolCallEvents();
  #at: number;
  #paused = false;
  /** The number of characters in the events of the current slice so far. */
  #size = 0;
  /**
   * Where the translation of a large chunk stopped: `place` is the index of the next fact, `seq` its event number. Undefined if the chunk
   * was translated to its end.
   */
  #stopped: { readonly first: number; readonly place: number; readonly seq: number } | undefined;

  constructor(run: RunRecord) {
    this.#run = run;
    this.#at = run.started_at ?? run.created_at;
    this.#messages = new MessageEvents((ns, node, data) => this.#put("messages", ns, json(data), node));
  }

  /**
   * Translates a slice. If its events become large, translates only a part, and sets `slice.memo.stoppedAt`. The caller then MUST pass the
   * same chunk again.
   */
  read(slice: ChunkSlice): Eventually<readonly ProtocolEvent[]> {
    const { first } = slice.entry.chunk;
    const { place, seq } =
      this.#stopped?.first === first ? this.#stopped : { place: 0, seq: this.#run.seq_base + first };
    this.#stopped = undefined;
    this.#size = 0;
    slice.memo.stoppedAt = undefined;
    return this.#from(slice, place, seq);
  }

  /**
   * The events for the end of a run. `record`: the run's record; undefined if the run was rolled back or deleted. `seq`: the thread's event
   * number of the end.
   */
  end(record: RunRecord | undefined, seq: number): readonly ProtocolEvent[] {
    this.#numbers.begin(seq, 1);
    if (record?.ended_at) this.#at = Math.max(this.#at, record.ended_at);
    const error = record?.error;
    const event = this.#terminal(record);
    const failed = event === "failed" && error ? { error: JSON.stringify(error) } : {};
    this.#lifecycle("", event, failed);
    return this.#numbers.events.splice(0);
  }

  #terminal(record: RunRecord | undefined): Terminal {
    if (record?.status === "success") return this.#paused ? "interrupted" : "completed";
    return record === undefined || record.status === "interrupted" ? "interrupted" : "failed";
  }

  #from(slice: ChunkSlice, place: number, first: number): Eventually<readonly ProtocolEvent[]> {
    const { facts } = slice.entry.chunk;
    let seq = first;
    for (let i = place; i < facts.length; i++) {
      const fact = facts[i] as Fact;
      if (this.#size >= OUTPUT_CHARACTERS_PER_PASS) {
        this.#stopped = { first: slice.entry.chunk.first, place: i, seq };
        slice.memo.stoppedAt = seq - this.#run.seq_base - 1;
        break;
      }
      this.#numbers.begin(seq, eventCountOf(fact));
      const next = seq + eventCountOf(fact);
      const wait = this.#translate(fact, seq - this.#run.seq_base, this.#page(slice, i));
      if (wait instanceof Promise) return wait.then(() => this.#from(slice, i + 1, next));
      seq = next;
    }
    slice.memo.size = this.#size;
    return this.#numbers.events.splice(0);
  }

  #translate(fact: Fact, id: number, page: RenderContext): Eventually<void> {
    switch (fact.t) {
      case "start":
        // Uses the second event number of the fact, because the end of the previous run may have the first number.
        this.#numbers.begin(this.#run.seq_base + id + 1, 1);
        this.#paused = false;
        this.#toolStarts.clear();
        this.#toolEnds.clear();
        return this.#lifecycle("", "running");
      case "checkpoint":
        return this.#checkpoint(fact, page);
      case "task":
        this.#at = Math.max(this.#at, fact.at);
        return tasksModeTask.put(fact, id, page);
      case "result":
        return this.#result(fact, id, page);
      case "interrupt":
        if (fact.ns === "") this.#pause();
        return this.#ask(fact.ns, fact.interrupts);
      case "custom":
        return this.#custom(fact);
      case "message":
        return this.#messages.begin(id, fact);
      case "token":
        return this.#messages.token(fact);
      case "piece":
        return this.#messages.piece(fact);
      case "complete":
        this.#messages.complete(fact);
        return this.#toolsOfMessage(fact);
      case "tool":
        return this.#tool(fact);
      case "event":
      case "log":
      case "error":
        return;
      default:
        return fact satisfies never;
    }
  }

  /**
   * Emits custom data. An object with a `name` is emitted as it is, on a channel for that name. Other data becomes the member `payload` of
   * an object.
   */
  #custom({ ns, json: text }: FactOf<"custom">): void {
    // Parses the data only if it may have a `name`. Most custom data has none.
    const data: unknown = text.startsWith("{") && text.includes('"name"') ? JSON.parse(text) : undefined;
    if (!isObject(data) || !Object.hasOwn(data, "name"))
      return this.#put("custom", ns, `{"payload":${text}}`);
    const { name } = data;
    const channel = typeof name === "object" ? "custom" : `custom:${String(name)}`;
    this.#put("custom", ns, text, undefined, channel);
  }

  #checkpoint(fact: FactOf<"checkpoint">, page: RenderContext): Eventually<void> {
    const { ns, id, step, input, output, machine } = fact;
    if (ns !== "" && !this.#children.has(ns)) {
      this.#children.add(ns);
      this.#lifecycle(ns, "started");
    }
    if (/^[0-9a-f]{8}-[0-9a-f]{4}-6/.test(id)) this.#at = Math.max(this.#at, uuid6Time(id).ms);
    return andThen(page.checkpoint(ns, id), (head: CheckpointHead | null) => {
      const { parent = null, source = input ? "input" : "loop" } = head ?? {};
      this.#put("checkpoints", ns, json({ id, ...(parent !== null && { parent_id: parent }), step, source }));
      if (input) return;
      return andThen(page.state(ns, id), (state) => {
        const shown = outputOf(state, output);
        if (shown !== null) this.#put("values", ns, json(shown));
        if (machine !== undefined) this.#childMachine(ns, machine);
      });
    });
  }

  #childMachine(ns: string, machine: ChildMachineStatus): void {
    if (machine.status === "active") return void this.#machines.add(ns);
    const failed = machine.status === "error" ? { error: JSON.stringify(machine.error) } : {};
    const event =
      machine.status === "done" ? "completed" : machine.status === "error" ? "failed" : "interrupted";
    this.#machines.delete(ns);
    this.#children.delete(ns);
    this.#lifecycle(ns, event, failed);
  }

  /** Reports the child machines as interrupted, because the run pauses. The next run reports them as started again. */
  #pause(): void {
    this.#paused = true;
    for (const ns of [...this.#machines].toReversed()) this.#childMachine(ns, { status: "stopped" });
  }

  #result(fact: FactOf<"result">, id: number, page: RenderContext): Eventually<void> {
    const { ns, name, error, interrupts, update } = fact;
    this.#at = Math.max(this.#at, fact.at);
    this.#ask(ns, interrupts);
    if (error === undefined && (update !== undefined || interrupts.length === 0)) {
      this.#put("updates", ns, json(update), name);
    }
    return andThen(tasksModeResult.put(fact, id, page), () => {
      const child = taskNs(ns, name, fact.id);
      if (!this.#children.delete(child)) return;
      const failed = error === undefined ? {} : { error: JSON.stringify(error) };
      const event = error ? "failed" : interrupts.length > 0 ? "interrupted" : "completed";
      this.#lifecycle(child, event, failed);
    });
  }

  /**
   * Emits a request for input, once for each interrupt. Several facts report the same interrupt: the fact of its task, the facts of the
   * tasks above its subgraph, and the fact that the run has paused.
   */
  #ask(ns: string, interrupts: FactOf<"interrupt">["interrupts"]): void {
    for (const { id, value } of interrupts) {
      if (this.#asked.has(id)) continue;
      this.#asked.add(id);
      const data = json({ interrupt_id: id, payload: value ?? null });
      this.#put("input.requested", ns, data, undefined, "input");
    }
  }

  /**
   * Emits what a tool reports. The `input` of a start is the JSON text that the tool gets, as on the official server.
   */
  #tool({ ns, json: text }: FactOf<"tool">): void {
    const { event, toolCallId, name, input, data, output, error } = JSON.parse(text) as JsonObject;
    const tool_call_id = typeof toolCallId === "string" ? toolCallId : "";
    const emit = (kind: string, more: JsonObject) =>
      this.#put("tools", ns, json({ event: kind, tool_call_id, ...more }));
    switch (event) {
      case "on_tool_start":
        if (this.#toolStarts.isNew(tool_call_id, "tool"))
          emit("tool-started", { tool_name: name ?? "unknown", input });
        return;
      case "on_tool_event":
        return emit("tool-output-delta", { delta: typeof data === "string" ? data : json(data ?? "") });
      case "on_tool_end":
        if (this.#toolEnds.isNew(tool_call_id, "tool")) emit("tool-finished", { output });
        return;
      case "on_tool_error": {
        if (!this.#toolEnds.isNew(tool_call_id, "tool")) return;
        const message = isObject(error) ? error["message"] : error;
        return emit("tool-error", { message: typeof message === "string" ? message : "unknown error" });
      }
    }
  }

  /**
   * Emits tool events that the tools themselves have not reported: for messages of a model that call tools, and for messages with the
   * results of tools.
   */
  #toolsOfMessage({ message, ns, meta }: FactOf<"complete">): void {
    const emit = (data: JsonObject) => this.#put("tools", ns, json(data), meta["langgraph_node"]);
    if (message["type"] === "ai") {
      for (const { id, name, args } of objectsIn(message["tool_calls"])) {
        if (this.#toolStarts.isNew(id, "message"))
          emit({ event: "tool-started", tool_call_id: id, tool_name: name, input: args ?? {} });
      }
    } else if (message["type"] === "tool") {
      const { tool_call_id, content, status } = message;
      if (!this.#toolEnds.isNew(tool_call_id, "message")) return;
      if (status === "error") emit({ event: "tool-error", tool_call_id, message: textOf(content) });
      else emit({ event: "tool-finished", tool_call_id, output: message });
    }
  }

  #lifecycle(ns: string, event: Terminal | "started" | "running", more: JsonObject = {}): void {
    const graph_name = ns === "" ? this.#run.graph_id : nodeOf(ns);
    this.#put("lifecycle", ns, json({ event, graph_name, ...more }));
  }

  #put(method: string, ns: string, data: JsonText, node?: unknown, channel?: string): void {
    this.#size += data.length;
    this.#numbers.put(method, ns, data, { at: this.#at, node }, channel);
  }

  /** Makes the context for those stream mode renderers that the protocol also uses. */
  #page({ entry, data: source }: ChunkSlice, place: number): RenderContext {
    return new FactPage(source, entry.states?.get(place), (event, data) => {
      const bar = event.indexOf("|");
      this.#put(bar < 0 ? event : event.slice(0, bar), bar < 0 ? "" : event.slice(bar + 1), data);
    });
  }
}

/**
 * Starts or ends of tool calls, by the id of the call. Both a message and the tool itself may tell of one, in either order; only the first of
 * the two is shown.
 */
class ToolCallEvents {
  /** Ids that were told by one source, and not by the other yet. */
  readonly #told = { message: new Set<string>(), tool: new Set<string>() };

  /** Notes an event. Returns false if the other source has told of it before. Calls without an id cannot be matched, and are always new. */
  isNew(id: unknown, source: "message" | "tool"): boolean {
    if (typeof id !== "string" || id === "") return true;
    if (this.#told[source === "tool" ? "message" : "tool"].delete(id)) return false;
    this.#told[source].add(id);
    return true;
  }

  clear(): void {
    this.#told.message.clear();
    this.#told.tool.clear();
  }
}

class FactPage implements RenderContext {
  readonly data: RenderDataLoader;
  readonly subgraphs = true;
  readonly showsStates = true;
  readonly #live: { readonly values: JsonObject; readonly head: CheckpointHead | undefined } | undefined;
  readonly #show: (event: string, data: JsonText) => void;

  constructor(
    source: RenderDataLoader,
    live: { readonly values: JsonObject; readonly head: CheckpointHead | undefined } | undefined,
    show: (event: string, data: JsonText) => void,
  ) {
    this.data = source;
    this.#live = live;
    this.#show = show;
  }

  head(): never {
    throw new TypeError("the protocol does not render message heads");
  }

  partial(): never {
    throw new TypeError("the protocol does not render partial messages");
  }

  state(ns: string, id: string): Eventually<JsonObject | null> {
    const known = this.#live?.values ?? this.data.snapshot(id)?.state;
    if (known !== undefined) {
      this.data.remember(id, { state: known });
      return known;
    }
    return andThen(this.data.state(ns, id), (state) => {
      if (state !== null) this.data.remember(id, { state });
      return state;
    });
  }

  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null> {
    const known = this.#live?.head ?? this.data.snapshot(id)?.head;
    if (known !== undefined) {
      this.data.remember(id, { head: known });
      return known;
    }
    return andThen(this.data.checkpoint(ns, id), (head) => {
      if (head !== null) this.data.remember(id, { head });
      return head;
    });
  }

  put(_: number, event: string, data: JsonText): void {
    this.#show(event, data);
  }
}

const nodeOf = (ns: string): string => ns.slice(ns.lastIndexOf("|") + 1).split(":", 1)[0] ?? "";

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return objectsIn(content)
    .map((block) => (isObject(block) && typeof block["text"] === "string" ? block["text"] : ""))
    .join("");
}

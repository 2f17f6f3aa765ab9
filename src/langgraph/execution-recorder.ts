import type { NewCheckpoint } from "../model/checkpoint.ts";
import type { Interrupt, Interrupts } from "../model/interrupt.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { json } from "../model/json-text.ts";
import type { Emission, Position, Source } from "../ports/engine.ts";
import { Left, type Place } from "./pending-writes.ts";
import {
  type CheckpointPayload,
  isInterrupted,
  isState,
  Loop,
  type Marks,
  pathOf,
  PUSH,
  shownState,
} from "./loop-checkpoints.ts";
import type { RawCheckpoint, RawWrites } from "./saver-records.ts";
import { isSame, show } from "./serialisation.ts";
import { Sites } from "./tasks-by-id.ts";
import { StoredIds } from "./stored-ids.ts";
import type { Tokens } from "./token-stream.ts";
import { withoutKeys } from "./untracked-channels.ts";

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
  readonly source: Pick<Source, "now" | "checkpointId">;
  readonly position: Position;
  readonly marks: Marks;
  readonly input: JsonObject | null;
  readonly tokens: Tokens;
  /** Keys of the state that are never shown, for the graph at a namespace. */
  hidden(ns: string): ReadonlySet<string>;
  /** Called when a task has ended and all of its events are recorded. */
  ended(task: string): void;
}

/**
 * Recorder of an attempt: turns LangGraph's events into checkpoints, pending writes and events of the run, in order, and
 * keeps them until they are handed over.
 */
export class Chronicle {
  readonly ids: StoredIds;
  readonly left = new Left();
  readonly tasks = new Sites();
  checkpoints: NewCheckpoint[] = [];
  emissions: Emission[] = [];
  /** True when the root graph has made a checkpoint since the last step was handed over. */
  moved = false;
  /** A graph that has streamed its state and has no checkpoint. */
  #shown: Loop | null = null;
  readonly #parts: Parts;
  readonly #loops = new Map<string, Loop>();
  /** Stored positions by namespace, as they were read in this attempt. */
  readonly #read = new Map<string, Position>();
  /** Checkpoints that were put to the saver and have not appeared in the stream yet. */
  readonly #raws = new Map<string, RawCheckpoint>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.ids = new StoredIds(parts.source);
    this.left.seed(parts.position.writes);
    this.root.input = parts.input;
  }

  get root(): Loop {
    return this.loop("");
  }

  get isEmpty(): boolean {
    return this.checkpoints.length === 0 && this.emissions.length === 0 && this.left.isEmpty;
  }

  /** Graphs that stopped at a checkpoint whose next tasks LangGraph did not stream. */
  get openEnds(): readonly Loop[] {
    return [...this.#loops.values()].filter(({ unknown }) => unknown);
  }

  loop(ns: string): Loop {
    const known = this.#loops.get(ns);
    if (known !== undefined) return known;
    const at = ns === "" ? this.#parts.position : (this.#read.get(ns) ?? null);
    const loop = new Loop(ns, at, this.#parts.marks, this.#parts.hidden(ns));
    this.#loops.set(ns, loop);
    return loop;
  }

  /** True when the graph at this namespace has made a checkpoint, or gone on from one. */
  stands(ns: string): boolean {
    return (this.#loops.get(ns)?.id ?? null) !== null;
  }

  // --- LangGraph's events ---

  read(ns: string, position: Position): void {
    if (!this.#loops.has(ns)) this.#read.set(ns, position);
    this.left.seed(position.writes);
  }

  put(raw: RawCheckpoint): void {
    this.#raws.set(`${raw.ns} ${raw.id}`, raw);
    // Serialises the values first: later events contain parts of them, which are then serialised already.
    void raw.values;
  }

  /** @throws Error when the graph has changed and cannot go on */
  checkNodes(path: readonly string[], mode: string, told: unknown): void {
    if (mode !== "checkpoints") return;
    const loop = this.loop(path.join("|"));
    const payload = told as CheckpointPayload;
    // LangGraph also streams envelopes in this mode; they have no config and no tasks.
    if (payload.config === undefined) return;
    const id = this.ids.told(payload);
    loop.checkNodes(id, payload, this.#raws.get(`${loop.ns} ${id}`));
  }

  putWrites(raw: RawWrites): void {
    this.left.take(raw, this.tasks.get(raw.task)?.name);
  }

  chunk(path: readonly string[], mode: string, told: unknown): void {
    const ns = path.join("|");
    if (mode === "messages") return this.#parts.tokens.take(path, told as Parameters<Tokens["take"]>[1]);
    const loop = this.loop(ns);
    if (mode !== "checkpoints") this.#unkept();
    const payload = withoutKeys(mode, told, loop.hidden);
    switch (mode) {
      case "values": {
        this.#between(loop);
        if (isInterrupted(payload)) this.#pause(loop, payload.__interrupt__);
        else loop.values = shownState(payload);
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
        this.emissions.push({ fact: { t: "custom", ns, json: json(show(payload)) } });
    }
  }

  /** Ends a batch of events. `over`: there will be no further batch. */
  close(over: boolean): void {
    for (const loop of this.#loops.values()) this.#between(loop);
    if (over) for (const raw of this.#raws.values()) this.#untold(this.loop(raw.ns), raw);
  }

  #checkpoint(loop: Loop, payload: CheckpointPayload): void {
    const id = this.ids.told(payload);
    const key = `${loop.ns} ${id}`;
    const [emission, made] = loop.checkpoint(id, payload, this.#raws.get(key));
    this.#raws.delete(key);
    this.#made(loop, made, emission);
  }

  #made({ ns }: Loop, made: NewCheckpoint | undefined, emission: Emission | undefined): void {
    if (ns === "") this.moved = true;
    if (made !== undefined) this.checkpoints.push(made);
    if (emission !== undefined) this.emissions.push(emission);
  }

  /** Emits the state of a graph without checkpoints at once: no checkpoint will follow it. */
  #unkept(): void {
    const loop = this.#shown;
    this.#shown = null;
    if (loop === null || loop.id !== null) return;
    for (const raw of this.#raws.values()) if (raw.ns === loop.ns) return;
    this.#between(loop);
  }

  /** Records a state that was streamed without a checkpoint after it. */
  #between(loop: Loop): void {
    if (loop.values === undefined) return;
    for (const raw of this.#raws.values()) if (raw.ns === loop.ns) return this.#untold(loop, raw);
    const emission = loop.between();
    if (emission !== undefined) this.emissions.push(emission);
  }

  #untold(loop: Loop, raw: RawCheckpoint): void {
    this.#raws.delete(`${raw.ns} ${raw.id}`);
    const [emission, made] = loop.untold(raw);
    this.#made(loop, made, emission);
  }

  #update(loop: Loop, payload: JsonObject): void {
    if (isInterrupted(payload)) return;
    const update = show(payload) as JsonObject;
    const { __metadata__: about } = update;
    if (!isObject(about) || about["cached"] !== true) {
      loop.update = update;
      return;
    }
    // Results of tasks that ended earlier, or that were cached elsewhere.
    for (const [name, value] of Object.entries(update)) {
      if (name === "__metadata__") continue;
      loop.returned(name, value);
      const id = loop.next.find((task) => task.name === name)?.id ?? "";
      const place = { id, name, ns: loop.ns, checkpoint: loop.id ?? "" };
      const told = {
        at: this.#parts.source.now(),
        update: value,
        cached: true,
        again: true,
        interrupts: [],
      } as const;
      this.emissions.push({ fact: { t: "result", ...place, ...told } });
    }
  }

  #pause({ ns, id, shown }: Loop, asked: readonly unknown[]): void {
    const interrupts = asked.flat().map((each) => this.left.interrupt(each));
    this.emissions.push({ fact: { t: "interrupt", ns, checkpoint: id ?? "", interrupts }, values: shown });
  }

  #taskStarts(loop: Loop, { id, name, triggers, input }: TaskPayload): void {
    const path = loop.next.find((task) => task.id === id)?.path ?? pathOf(undefined, name);
    const given = show(input);
    const sent = path[0] === PUSH || !isState(given, loop.shown) ? { value: given } : undefined;
    loop.started(id, triggers, sent);
    const { ns } = loop;
    const checkpoint = loop.id ?? "";
    const at = this.#parts.source.now();
    // Members are written out, here and below: a literal that begins with a spread costs a microsecond a member.
    if (sent === undefined) {
      this.tasks.set(id, { id, name, ns, checkpoint, triggers, path });
      this.emissions.push({ fact: { t: "task", id, name, ns, checkpoint, triggers, at } });
    } else {
      this.tasks.set(id, { id, name, ns, checkpoint, triggers, path, sent });
      this.emissions.push({ fact: { t: "task", id, name, ns, checkpoint, triggers, at, input: sent } });
    }
  }

  #taskEnds(loop: Loop, { id, name, result }: ResultPayload): void {
    const { ns } = loop;
    const checkpoint = this.tasks.get(id)?.checkpoint ?? loop.id ?? "";
    const left = this.left.at({ ns, checkpoint, task: id });
    const interrupts = left?.interrupts ?? [];
    const told = { t: "result", id, name, ns, checkpoint, at: this.#parts.source.now(), interrupts } as const;
    if (left?.error) this.emissions.push({ fact: { ...told, error: left.error } });
    else if (interrupts.length > 0) this.emissions.push({ fact: told });
    else {
      const shown = show(result);
      const update =
        loop.update !== undefined && Object.hasOwn(loop.update, name) ? loop.update[name] : shown;
      loop.update = undefined;
      loop.returned(name, update);
      if (left?.result !== undefined) this.left.keep({ ...left, result: { ...left.result, value: update } });
      for (const fact of this.#parts.tokens.completed(ns, update, () => this.#metaOf(loop, id)))
        this.emissions.push({ fact });
      const { at } = told;
      const fact = { t: "result", id, name, ns, checkpoint, at, interrupts, update } as const;
      this.emissions.push({ fact: isSame(shown, update) ? fact : { ...fact, written: shown } });
    }
    this.#parts.ended(id);
  }

  #metaOf({ head }: Loop, task: string): JsonObject {
    return this.tasks.metaOf(task, (head?.step ?? -1) + 1);
  }

  // --- results ---

  place(task: string): Place & { readonly name: string } {
    const { ns, checkpoint, name } = this.tasks.get(task) ?? {
      ns: "",
      checkpoint: this.root.id ?? "",
      name: "",
    };
    return { ns, checkpoint, task, name };
  }

  /** The interrupts that the root graph waits at, by task. */
  waiting(): Interrupts {
    const { next, id } = this.root;
    const all: Record<string, readonly Interrupt[]> = {};
    for (const { id: task } of next) {
      const left = this.left.at({ ns: "", checkpoint: id ?? "", task });
      if (left !== undefined && left.result === undefined && left.interrupts.length > 0)
        all[task] = left.interrupts;
    }
    return all;
  }
}

import type { CheckpointHead, NewCheckpoint, PlannedTask } from "../model/checkpoint.ts";
import { START } from "../graph/definition-checks.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, Position } from "../ports/engine.ts";
import { alikeIn, type Lead, ledOn } from "./branch-from-checkpoint.ts";
import type { RawCheckpoint } from "./saver-records.ts";
import { type Before, checkpointRecord, langGraphPart } from "./checkpoint-records.ts";
import { show } from "./serialisation.ts";

/** What LangGraph says of a checkpoint in its mode `checkpoints`. */
export interface CheckpointPayload {
  readonly config: { readonly configurable?: { readonly checkpoint_id?: string } };
  readonly values: unknown;
  readonly metadata?: { readonly source?: string; readonly step?: number; readonly parents?: JsonObject };
  readonly tasks: readonly {
    readonly id: string;
    readonly name: string;
    readonly path?: readonly unknown[];
  }[];
  readonly parentConfig?: { readonly configurable?: { readonly checkpoint_id?: string } };
}

/** What all checkpoints of a run have in common. */
export interface Marks {
  readonly run: string;
  readonly metadata: JsonObject;
  readonly graph: string;
  /** The run brings neither an input nor nodes to go to: it goes on from where the thread stands. */
  readonly goesOn: boolean;
}

/** The same while its checkpoint is not handed over. */
type Planned = { -readonly [K in keyof PlannedTask]: PlannedTask[K] };

/** One graph of a run, the root or one within a task, as its checkpoints tell of it. */
export class Loop {
  readonly ns: string;
  readonly #marks: Marks;
  /** Keys of its state that are not to be seen. */
  readonly hidden: ReadonlySet<string>;
  /** Where it stands. */
  id: string | null;
  head: CheckpointHead | null;
  shown: JsonObject;
  next: readonly Planned[] = [];
  /** What runs next from where it stands is not known. */
  unknown = false;
  /** The state that was shown last, and the checkpoint has yet to be told of. */
  values: JsonObject | undefined;
  /** What the task that ends has returned, by its node's name. */
  update: JsonObject | undefined;
  /** What was given to it, where that is known. */
  input: JsonObject | null = null;
  /** Where it goes on from, as long as it has made no checkpoint. */
  lead: Lead | null = null;
  /** The checkpoint that an earlier attempt of the run has got to, and has told of. */
  #untilNow: string | null;
  /** By node, since the last checkpoint. */
  #updates = new Map<string, unknown[]>();
  /** The last checkpoint that is stored: what the next one changes. */
  #base: Before & { readonly id: string | null };

  constructor(ns: string, position: Position | null, marks: Marks, hidden: ReadonlySet<string>) {
    this.ns = ns;
    this.hidden = hidden;
    this.#marks = marks;
    this.head = position?.head ?? null;
    this.id = this.head?.id ?? null;
    this.shown = position?.values ?? {};
    this.next = [...(this.head?.next ?? [])];
    this.#untilNow = this.head?.run_id === marks.run ? this.id : null;
    this.#base = baseAt(this.head, this.shown);
  }

  /**
   * A checkpoint is about to be told of. LangGraph passes over tasks whose nodes are gone, and the questions of those.
   * @throws Error `GraphChangedError` where the graph was to go on with such a task
   */
  checkNodes(id: string, { tasks }: CheckpointPayload, raw: RawCheckpoint | undefined): void {
    if (this.ns === "" && !this.#marks.goesOn) return;
    const from = raw === undefined ? id : raw.source === "fork" ? raw.parent : undefined;
    if (this.head === null || this.head.id !== from) return;
    const planned = new Set(tasks.map(({ name }) => name));
    const gone = this.head.next.filter(({ name }) => !planned.has(name)).map(({ name }) => name);
    if (gone.length > 0) throw graphChanged(String(this.#marks.metadata["graph_id"]), gone);
  }

  /** A checkpoint is told of, stored under this id: one that was put, or that it began at. */
  checkpoint(
    id: string,
    payload: CheckpointPayload,
    raw: RawCheckpoint | undefined,
  ): readonly [Emission | undefined, NewCheckpoint | undefined] {
    const shown = shownState(payload.values);
    const quiet = this.values === undefined;
    this.values = undefined;
    const known = this.head !== null && this.id === id ? this.head : null;
    const planned = payload.tasks.map(plannedOf);
    const next = this.lead === null ? alikeIn(planned, known) : ledOn(this.lead, planned);
    const { source = "loop", step = 0 } = payload.metadata ?? {};
    let made: NewCheckpoint | undefined;
    if (raw !== undefined) made = this.#make(raw, shown, next);
    else if (known === null) throw new TypeError(`The checkpoint ${id} is told of, and was never put`);
    this.id = id;
    this.shown = shown;
    this.next = next;
    this.unknown = false;
    const head = this.head ?? undefined;
    const input = source === "input" && quiet;
    const { ns } = this;
    const fact = { t: "checkpoint", id, ns, step, input } as const;
    const told = quiet && !input ? ({ ...fact, shows: "rest" } as const) : fact;
    if (this.#untilNow === id) {
      this.#untilNow = null;
      return [undefined, made];
    }
    return [head === undefined ? { fact: told, values: shown } : { fact: told, values: shown, head }, made];
  }

  /** A checkpoint was put of which nothing is told: the graph stops at it. What runs next is not known. */
  untold(raw: RawCheckpoint): readonly [Emission | undefined, NewCheckpoint] {
    const { id } = raw;
    const values = this.values ?? this.shown;
    const quiet = this.values === undefined;
    this.values = undefined;
    const next: Planned[] = [];
    const made = this.#make(raw, values, next);
    this.id = id;
    this.shown = values;
    this.next = next;
    this.unknown = true;
    const fact = {
      t: "checkpoint",
      id,
      ns: this.ns,
      step: made.step,
      input: false,
      shows: "values",
    } as const;
    return [quiet ? undefined : { fact, values, head: made }, made];
  }

  /** The state is shown although there is no checkpoint of it: the step stays open, some of its tasks have ended. */
  between(): Emission | undefined {
    const { values, id, ns, head } = this;
    this.values = undefined;
    if (values === undefined) return undefined;
    const step = head?.step ?? 0;
    const fact = {
      t: "checkpoint",
      // A graph within may have been compiled to keep none.
      id: id ?? "",
      ns,
      step,
      input: false,
      shows: "values",
      inline: { values },
    } as const;
    return { fact };
  }

  /** What runs next from where it stands, asked for afterwards. */
  learn(tasks: CheckpointPayload["tasks"]): void {
    this.unknown = false;
    (this.next as Planned[]).push(...tasks.map(plannedOf));
  }

  returned(name: string, update: unknown): void {
    const known = this.#updates.get(name);
    if (known === undefined) this.#updates.set(name, [update]);
    else known.push(update);
  }

  started(id: string, triggers: readonly string[], sent: { readonly value: unknown } | undefined): void {
    const task = this.next.find((each) => each.id === id);
    if (task === undefined || Object.isFrozen(task)) return;
    task.triggers = triggers;
    if (sent !== undefined && task.path[0] === PUSH) task.input = sent;
  }

  #make(raw: RawCheckpoint, shown: JsonObject, next: readonly Planned[]): NewCheckpoint {
    const before = raw.parent === this.#base.id ? this.#base : null;
    const record = checkpointRecord(raw, shown, before);
    const { run, graph } = this.#marks;
    const { lead } = this;
    this.lead = null;
    // Written out: a literal that begins with a spread costs a microsecond a member.
    const made = {
      id: record.id,
      // It may begin at one of another namespace.
      parent: lead === null || lead.ns === this.ns ? record.parent : null,
      ns: record.ns,
      step: record.step,
      source: record.source,
      created_at: record.created_at,
      run_id: run,
      metadata: this.#metadata(record.metadata),
      writes: this.#takeWrites(record.source),
      next,
      engine: record.engine,
      graph,
      changes: record.changes,
    };
    this.#base = baseAt(made, shown);
    this.head = made;
    return made;
  }

  /** The run's own come with it nearly always: LangGraph was given them. */
  #metadata(own: JsonObject): JsonObject {
    const { metadata } = this.#marks;
    for (const key of Object.keys(metadata)) if (own[key] !== metadata[key]) return { ...own, ...metadata };
    return own;
  }

  #takeWrites(source: string): JsonObject | null {
    const updates = this.#updates;
    this.#updates = new Map();
    if (source === "input") return this.input === null ? null : { [START]: this.input };
    if (updates.size === 0) return null;
    const one = (list: unknown[]) => (list.length === 1 ? list[0] : list);
    return Object.fromEntries([...updates].map(([name, list]) => [name, one(list)]));
  }
}

function graphChanged(graph: string, gone: readonly string[]): Error {
  const nodes = [...new Set(gone)].map((name) => `"${name}"`).join(", ");
  const message =
    `The graph "${graph}" has changed since the thread paused, and the thread cannot go on: it waits at ${nodes}, ` +
    `which the graph has no more. Nothing is lost: name a node to go on with (command.goto), change the state, or bring the node back`;
  return Object.assign(new Error(message), { name: "GraphChangedError" });
}

function baseAt(head: CheckpointHead | null, shown: JsonObject): Before & { readonly id: string | null } {
  const channels = langGraphPart(head?.engine ?? null)?.channels;
  return { id: head?.id ?? null, shown, ...(channels !== undefined && { channels }) };
}

export const PUSH = "__pregel_push";

/** LangGraph's paths may go on with what is no data. */
export function pathOf(path: readonly unknown[] | undefined, name: string): readonly (string | number)[] {
  const known = path?.filter(
    (part): part is string | number => typeof part === "string" || typeof part === "number",
  );
  return known === undefined || known.length === 0 ? ["__pregel_pull", name] : known;
}

export function plannedOf({ id, name, path }: CheckpointPayload["tasks"][number]): Planned {
  const known = pathOf(path, name);
  const trigger = known[0] === PUSH ? PUSH : name === START ? name : `branch:to:${name}`;
  return { id, name, path: known, triggers: [trigger] };
}

export const isInterrupted = (payload: unknown): payload is { readonly __interrupt__: readonly unknown[] } =>
  isObject(payload) && Array.isArray(payload["__interrupt__"]);

/**
 * The state as clients see it, always an object. A graph whose state is one value (the functional API's) shows that: its
 * members where it has any, nothing before there is one, else under the name of the channel that holds it.
 */
export function shownState(values: unknown): JsonObject {
  const shown = show(values ?? {});
  return isObject(shown) ? shown : { __end__: shown };
}

/** Is what a task is given the state, and nothing else? */
export function isState(given: unknown, state: JsonObject): boolean {
  if (!isObject(given)) return false;
  const keys = Object.keys(given);
  return keys.length === Object.keys(state).length && keys.every((key) => given[key] === state[key]);
}

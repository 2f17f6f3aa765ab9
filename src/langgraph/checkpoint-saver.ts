import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  BaseCheckpointSaver,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
  ChannelVersions,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { PendingTaskWrites } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { CheckpointWithState } from "../ports/engine.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import { SaverCheckpoint, SaverWrites } from "./saver-inputs.ts";
import { newLangGraphData, checkpointTupleOf, addWrites } from "./checkpoint-records.ts";
import type { CheckpointIdMap } from "./checkpoint-id-map.ts";

/** Reads stored checkpoints for a saver, and receives what LangGraph puts to the saver. The saver itself stores nothing. */
export interface SaverIo {
  readonly ids: CheckpointIdMap;
  /**
   * Reads a stored checkpoint of a namespace with its state and pending writes: the checkpoint with this id, or the newest one if `id` is
   * null. Resolves with null if there is none. Not called for checkpoints that are kept in the saver.
   */
  read(ns: string, id: string | null): Promise<CheckpointWithState | null>;
  /** Reads stored checkpoints of a namespace with their states and pending writes, newest first. */
  history(
    ns: string,
    query: { readonly before?: string; readonly limit: number },
  ): Promise<readonly CheckpointWithState[]>;
  /**
   * Resolves with the namespaces that have checkpoints. Without this method, the saver lists the root namespace and the namespaces of
   * checkpoints that were put to it.
   */
  namespaces?(): Promise<readonly string[]>;
  /**
   * Receives a checkpoint that LangGraph puts. The saver calls `put` and `putWrites` in LangGraph's order. The implementation MUST ignore
   * calls after the attempt is over, and MUST NOT throw an error then: the graph has been aborted, and LangGraph.js may never handle a
   * rejected promise.
   */
  put(made: SaverCheckpoint): void;
  putWrites(writes: SaverWrites): void;
}

const CHECKPOINTS_PER_READ = 100;

/**
 * The largest number of checkpoints that the saver keeps for one namespace. Older ones have long been stored: the root graph computes at
 * most one step ahead of storage, and a subgraph a few steps. With durability `exit`, nothing is stored before the end of the run, so the
 * limit `subgraph` also holds for the root graph.
 */
const MAX_RECENT = { root: 8, subgraph: 64 };
/**
 * The saver forgets a subgraph when the graph around it has made more than this many further checkpoints. By then the subgraph's
 * checkpoints are stored, and it does not run again, because its namespace contains the id of a task of a past step.
 */
const MAX_AGE = 3;

/**
 * The checkpoint saver of one attempt of a run. It has access to the run's thread only, and passes what LangGraph puts to its `SaverIo`.
 */
class AttemptSaver {
  readonly #library: LangGraphLibrary;
  readonly #thread: string;
  readonly #io: SaverIo;
  readonly #storesAtEnd: boolean;
  readonly #recent = new Map<string, Map<string, SaverCheckpoint>>();
  /**
   * For each graph, by namespace: its subgraphs, by namespace, each with the number of checkpoints that the graph has made since the last
   * checkpoint in the subgraph; see {@link MAX_AGE}.
   */
  readonly #subgraphs = new Map<string, Map<string, number>>();
  readonly #writes = new Map<string, SaverWrites[]>();
  /** Namespaces without a checkpoint: none was found when they were read, and none was put since. */
  readonly #empty = new Set<string>();

  constructor(library: LangGraphLibrary, thread: string, io: SaverIo, storesAtEnd: boolean) {
    this.#library = library;
    this.#thread = thread;
    this.#io = io;
    this.#storesAtEnd = storesAtEnd;
  }

  async get(config: RunnableConfig): Promise<Checkpoint | undefined> {
    return (await this.getTuple(config))?.checkpoint;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, ns, id } = this.#checkpointKey(config);
    if (thread !== this.#thread) return undefined;
    const position = await this.#position(ns, id);
    return position === null ? undefined : this.#tuple(position);
  }

  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread, ns, id } = this.#checkpointKey(config);
    if (thread !== undefined && thread !== this.#thread) return;
    const { before, filter, limit = Infinity } = options;
    const under = before === undefined ? null : this.#checkpointKey(before).id;
    const named = config.configurable?.["checkpoint_ns"] === undefined ? await this.#namespaces() : [ns];
    let left = limit;
    for (const each of named) {
      for await (const position of this.#history(each, under)) {
        if (left <= 0) return;
        if (id !== null && position.head?.id !== id) continue;
        const tuple = await this.#tuple(position);
        const { metadata } = tuple;
        if (!Object.entries(filter ?? {}).every(([key, value]) => ownOf(metadata, key) === value)) continue;
        left--;
        yield tuple;
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { ns, id: parent } = this.#own(config);
    const { ids } = this.#io;
    const id = ids.idForNew(checkpoint.id, metadata.step);
    const made = new SaverCheckpoint(
      { id, ns, parent },
      checkpoint,
      ids.withStoredIds(metadata),
      newVersions,
    );
    this.#io.put(made);
    this.#empty.delete(ns);
    this.#keepRecent(made);
    return { configurable: { thread_id: this.#thread, checkpoint_ns: ns, checkpoint_id: made.id } };
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], task: string): Promise<void> {
    const { ns, id } = this.#own(config);
    if (id === null) throw new TypeError("Writes need the checkpoint_id that they were made at");
    const made = new SaverWrites({ ns, checkpoint: id, task }, writes);
    // Before its first checkpoint, LangGraph names a checkpoint that it never puts. Writes to that checkpoint are not stored, because they
    // could never be found.
    if (!this.#empty.has(ns)) this.#io.putWrites(made);
    const at = `${ns} ${id}`;
    const before = this.#writes.get(at);
    if (before === undefined) this.#writes.set(at, [made]);
    else before.push(made);
  }

  async deleteThread(thread: string): Promise<void> {
    throw new TypeError(`Thread ${thread} is deleted through the server, not by a run`);
  }

  getNextVersion(current: number | undefined): number {
    return (current ?? 0) + 1;
  }

  /** Collects writes from the ancestors of a checkpoint, with the method of LangGraph's own savers. */
  getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, { writes: CheckpointPendingWrite[]; seed?: unknown }>> {
    const { BaseCheckpointSaver } = this.#library.checkpoint;
    return BaseCheckpointSaver.prototype.getDeltaChannelHistory.call(this, options);
  }

  toJSON(): string {
    return "[HeddleSaver]";
  }

  #keepRecent(made: SaverCheckpoint): void {
    const { ns } = made;
    const recent = of(this.#recent, ns);
    recent.set(made.id, made);
    // With `storesAtEnd`, nothing is stored before the run ends. So subgraphs are not forgotten: their checkpoints could not be read again.
    if (!this.#storesAtEnd) this.#ageSubgraphs(ns);
    const most = ns === "" && !this.#storesAtEnd ? MAX_RECENT.root : MAX_RECENT.subgraph;
    for (const id of recent.keys()) {
      if (recent.size <= most) return;
      recent.delete(id);
      this.#writes.delete(`${ns} ${id}`);
    }
  }

  /** Counts a new checkpoint in a namespace, and forgets the subgraphs that tasks of past steps of this graph have run. */
  #ageSubgraphs(ns: string): void {
    for (let inner = ns, above = namespaceAbove(inner); above !== undefined;) {
      of(this.#subgraphs, above).set(inner, 0);
      inner = above;
      above = namespaceAbove(inner);
    }
    const within = this.#subgraphs.get(ns);
    for (const [inner, age] of within ?? []) {
      if (age < MAX_AGE) within?.set(inner, age + 1);
      else this.#forget(inner);
    }
  }

  /** Forgets the checkpoints of a subgraph, and of the subgraphs within it. */
  #forget(ns: string): void {
    for (const id of this.#recent.get(ns)?.keys() ?? []) this.#writes.delete(`${ns} ${id}`);
    this.#recent.delete(ns);
    this.#empty.delete(ns);
    for (const inner of this.#subgraphs.get(ns)?.keys() ?? []) this.#forget(inner);
    this.#subgraphs.delete(ns);
    this.#subgraphs.get(namespaceAbove(ns) ?? "")?.delete(ns);
  }

  async #tuple(position: CheckpointWithState): Promise<CheckpointTuple> {
    const { head } = position;
    if (head !== null) this.#io.ids.noteStored(head);
    const tuple = checkpointTupleOf(this.#library, this.#thread, position);
    if (tuple.checkpoint.v < 4 && head !== null && head.parent !== null) {
      await this.#migrate(tuple, head.ns, head.parent);
    }
    return tuple;
  }

  /** Migrates a checkpoint of a version below 4. In these versions, LangGraph stored sends as pending writes of the parent checkpoint. */
  async #migrate({ checkpoint }: CheckpointTuple, ns: string, parent: string): Promise<void> {
    const before = await this.#position(ns, parent);
    if (before === null) return;
    const { pendingWrites = [] } = checkpointTupleOf(this.#library, this.#thread, before);
    const sends = pendingWrites
      .filter(([, channel]) => channel === "__pregel_tasks")
      .map(([, , value]) => value);
    checkpoint.channel_values["__pregel_tasks"] = sends;
    const versions = Object.values(checkpoint.channel_versions).map(Number);
    checkpoint.channel_versions["__pregel_tasks"] = versions.length > 0 ? Math.max(...versions) : 1;
  }

  /**
   * A checkpoint with its state and pending writes: the checkpoint with this id, or the newest one if `id` is null; null if there is none.
   * Checkpoints that were put to this saver are newer than all stored ones.
   */
  async #position(ns: string, id: string | null): Promise<CheckpointWithState | null> {
    const recent = this.#recent.get(ns);
    const own = id === null ? newest(recent) : recent?.get(id);
    if (own !== undefined) return this.#recentPosition(own);
    const stored = await this.#io.read(ns, id);
    if (stored !== null) return this.#withWrites(stored);
    if (id === null) this.#empty.add(ns);
    return null;
  }

  #recentPosition(raw: SaverCheckpoint): CheckpointWithState {
    const { id, ns, parent, source, step, metadata, values } = raw;
    const engine = { lg: newLangGraphData(raw, {}) };
    const rest = { created_at: 0, run_id: null, writes: null, next: [], graph: "" };
    const head = { id, ns, parent, source, step, metadata, engine, ...rest };
    return this.#withWrites({ head, values, writes: [] });
  }

  /** Adds the writes that were put to this saver to the stored writes at a checkpoint. */
  #withWrites(position: CheckpointWithState): CheckpointWithState {
    const { head, writes } = position;
    const made = head === null ? undefined : this.#writes.get(`${head.ns} ${head.id}`);
    if (made === undefined) return position;
    const left = new Map<string, PendingTaskWrites>(writes.map((each) => [each.task, each]));
    for (const { ns, checkpoint, task, writes: more } of made) {
      left.set(task, addWrites({ ns, checkpoint, task, name: "" }, more, left.get(task)));
    }
    return { ...position, writes: [...left.values()] };
  }

  async *#history(ns: string, under: string | null): AsyncGenerator<CheckpointWithState> {
    const own = [...(this.#recent.get(ns)?.values() ?? [])].sort((a, b) => (a.id < b.id ? 1 : -1));
    for (const raw of own) if (under === null || raw.id < under) yield this.#recentPosition(raw);
    let before = under;
    for (;;) {
      const page = await this.#io.history(ns, {
        limit: CHECKPOINTS_PER_READ,
        ...(before !== null && { before }),
      });
      for (const position of page) {
        const { id } = position.head ?? { id: "" };
        before = id;
        if (this.#recent.get(ns)?.has(id) !== true) yield this.#withWrites(position);
      }
      if (page.length < CHECKPOINTS_PER_READ) return;
    }
  }

  async #namespaces(): Promise<readonly string[]> {
    const stored = (await this.#io.namespaces?.()) ?? [""];
    return [...new Set([...stored, ...this.#recent.keys()])];
  }

  /** The checkpoint that a configuration names, with the id under which it is stored. */
  #checkpointKey(config: RunnableConfig): CheckpointKey {
    const site = checkpointKey(config);
    return site.id === null ? site : { ...site, id: this.#io.ids.storedIdOf(site.id) };
  }

  #own(config: RunnableConfig): { readonly ns: string; readonly id: string | null } {
    const { thread, ns, id } = this.#checkpointKey(config);
    if (thread === this.#thread) return { ns, id };
    throw new TypeError(
      thread === undefined
        ? "A checkpoint needs a thread_id in config.configurable"
        : `Thread ${thread} is not the thread of this run`,
    );
  }
}

/**
 * The namespace of the graph around the subgraph at `ns`; undefined for the root graph. Also undefined if `ns` does not end in a task id:
 * such a subgraph continues from its last checkpoint in later steps, so it must not be forgotten.
 */
function namespaceAbove(ns: string): string | undefined {
  // A number at the end distinguishes the graphs that one node function calls.
  const own = ns.replace(/(\|\d+)+$/, "");
  const start = own.lastIndexOf("|") + 1;
  return own.includes(":", start) ? own.slice(0, Math.max(0, start - 1)) : undefined;
}

interface CheckpointKey {
  readonly thread: string | undefined;
  readonly ns: string;
  readonly id: string | null;
}

function checkpointKey({ configurable = {} }: RunnableConfig): CheckpointKey {
  const { thread_id, checkpoint_ns, checkpoint_id, thread_ts } = configurable as Record<string, unknown>;
  const id = checkpoint_id || thread_ts;
  return {
    thread: typeof thread_id === "string" ? thread_id : undefined,
    ns: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    id: typeof id === "string" && id !== "" ? id : null,
  };
}

function ownOf(object: object | undefined, key: string): unknown {
  return object !== undefined && Object.hasOwn(object, key) ? (object as JsonObject)[key] : undefined;
}

function of<K, V>(all: Map<string, Map<K, V>>, key: string): Map<K, V> {
  const found = all.get(key) ?? new Map<K, V>();
  all.set(key, found);
  return found;
}

function newest(recent: ReadonlyMap<string, SaverCheckpoint> | undefined): SaverCheckpoint | undefined {
  let found: SaverCheckpoint | undefined;
  for (const one of recent?.values() ?? []) if (found === undefined || one.id > found.id) found = one;
  return found;
}

/**
 * Creates a saver for one attempt of a run on this thread, or for one update of the thread's state. `storesAtEnd`: what LangGraph puts is
 * stored only when the run ends (durability `exit`).
 */
export function createAttemptSaver(
  library: LangGraphLibrary,
  thread: string,
  io: SaverIo,
  storesAtEnd = false,
): BaseCheckpointSaver {
  return new AttemptSaver(library, thread, io, storesAtEnd) as unknown as BaseCheckpointSaver;
}

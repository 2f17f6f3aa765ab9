import { isSmallJson } from "../codec/large-json.ts";
import { type EventChunk, type Fact, type InlineState, eventCountOf } from "../model/run-event.ts";
import type { Checkpoint, CheckpointHead } from "../model/checkpoint.ts";
import { ServiceError, threadDeleted } from "../model/errors.ts";
import { EMPTY_OBJECT, type JsonObject } from "../model/json.ts";
import { WeakCache } from "../model/weak-cache.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import type { ResponseMemoryBudget } from "./response-memory-budget.ts";

type MessageFact = Extract<Fact, { t: "message" }>;

/** What all token events of a streamed message have in common: the JSON before and after the text of the token. */
export interface TokenEventFrame {
  readonly fact: MessageFact;
  readonly before: string;
  readonly after: string;
}

/** Caches that the readers of all runs share. Entries are not invalidated: a stored checkpoint does not change, except its parent. */
export class SharedCheckpointCache {
  /** Checkpoints by thread, namespace and id. */
  readonly checkpoints = new WeakCache<Checkpoint>();
  /** Large states that were read, by their checkpoint. */
  readonly states = new WeakMap<Checkpoint, JsonObject>();
  /** Waits for a turn of the event loop that the tenant may use for long work. */
  readonly turn: (tenant: string) => Promise<void>;

  constructor(turn: (tenant: string) => Promise<void>) {
    this.turn = turn;
  }
}

export interface RenderDataDeps {
  readonly journal: Journal;
  readonly memory: ResponseMemoryBudget;
  readonly shared: SharedCheckpointCache;
}

/** The maximum number of cached {@link TokenEventFrame}s of one run. A frame that was removed is made again from its fact. */
const MAX_FRAMES = 1024;
/**
 * The maximum number of checkpoints that are cached for one run. They are cached because the facts of tasks refer to them. This many are
 * enough for the subgraphs that usually run at the same time.
 */
const MAX_SNAPSHOTS = 8;
const CHUNKS_PER_READ = 64;

/** The cached parts of a checkpoint. Each part is undefined until it is needed. */
interface Snapshot {
  state?: JsonObject | undefined;
  head?: CheckpointHead | undefined;
}

/**
 * Loads the data that rendering needs in addition to the current chunk: the run's record, and the states and messages to which facts refer.
 */
export class RenderDataLoader {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  readonly #journal: Journal;
  readonly #memory: ResponseMemoryBudget;
  readonly #shared: SharedCheckpointCache;
  readonly #recent: ((id: number) => EventChunk | undefined) | undefined;
  readonly #heads = new Map<number, TokenEventFrame>();
  readonly #snapshots = new Map<string, Snapshot>();
  #hasOwnEvents: boolean | undefined;

  /**
   * `recent` returns the chunk in memory that contains an event. For an event before all chunks in memory, it returns the oldest of them.
   */
  constructor(
    { journal, memory, shared }: RenderDataDeps,
    key: ThreadKey,
    run: RunRecord,
    recent?: (id: number) => EventChunk | undefined,
  ) {
    this.#journal = journal;
    this.#memory = memory;
    this.#shared = shared;
    this.key = key;
    this.run = run;
    this.#recent = recent;
  }

  /**
   * The state at a checkpoint; null if it was never stored or was deleted.
   * @throws ServiceError `thread.not_found` if the thread was deleted, so that the stream does not continue without states
   */
  state(ns: string, checkpoint: string): Eventually<JsonObject | null> {
    return andThen(
      this.#memory.read(this.key.tenant, () => this.#state(ns, checkpoint)),
      (state) => state ?? this.#missing(),
    );
  }

  /**
   * Returns null for missing data.
   * @throws ServiceError `thread.not_found` if the data is missing because the thread was deleted
   */
  #missing(): Eventually<null> {
    return andThen(this.#journal.thread(this.key), (thread) => {
      if (thread === undefined) throw threadDeleted();
      return null;
    });
  }

  #state(ns: string, checkpoint: string): Eventually<JsonObject | null> {
    return andThen(this.#checkpoint(ns, checkpoint), (found) => {
      if (found === undefined)
        return andThen(this.#inline(ns, checkpoint), (inline) => inline?.values ?? null);
      const known = this.#shared.states.get(found);
      // Rendering a large state takes long, so it gets a turn of the event loop of its own, even if the state is cached.
      if (known !== undefined) return this.#shared.turn(this.key.tenant).then(() => known);
      const values = this.#values(found);
      if (!(values instanceof Promise)) return values;
      return values.then((state) => {
        if (state === null || isSmallJson(state)) return state;
        this.#shared.states.set(found, state);
        return this.#shared.turn(this.key.tenant).then(() => state);
      });
    });
  }

  /** The state at a checkpoint; null if it was deleted after the checkpoint was read. */
  #values(checkpoint: Checkpoint): Eventually<JsonObject | null> {
    const gone = (cause: unknown): null => {
      if (cause instanceof ServiceError && cause.code === "checkpoint.not_found") return null;
      throw cause;
    };
    try {
      const values = this.#journal.sharedValues(this.key, checkpoint);
      return values instanceof Promise ? values.catch(gone) : values;
    } catch (cause) {
      return gone(cause);
    }
  }

  /**
   * A checkpoint without its state; null if it was never stored or was deleted.
   * @throws ServiceError `thread.not_found` if the thread was deleted
   */
  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null> {
    return andThen(
      this.#checkpoint(ns, id),
      (found) => found ?? andThen(this.#inline(ns, id), (inline) => inline?.head ?? this.#missing()),
    );
  }

  /** A stored checkpoint, from the cache or from storage; undefined if it is not stored. */
  #checkpoint(ns: string, id: string): Eventually<Checkpoint | undefined> {
    const { tenant, thread } = this.key;
    const name = `${tenant}\n${thread}\n${ns}\n${id}`;
    const known = this.#shared.checkpoints.get(name);
    if (known !== undefined) return known;
    return andThen(this.#journal.checkpoint(this.key, ns, id), (found) => {
      if (found !== undefined) this.#shared.checkpoints.set(name, found);
      return found;
    });
  }

  /**
   * Finds the copy of a checkpoint in the facts of the run. Only a run with durability `exit` has copies of checkpoints, because it stores
   * only the last checkpoint of each graph. All facts are searched, because the reader may have started after the fact with the copy.
   */
  #inline(ns: string, id: string): Eventually<InlineState | undefined> {
    return this.run.kwargs.durability === "exit" ? this.#seekInline(ns, id) : undefined;
  }

  async #seekInline(ns: string, id: string): Promise<InlineState | undefined> {
    for await (const fact of this.facts(0, Number.POSITIVE_INFINITY)) {
      if (fact.t === "checkpoint" && fact.id === id && fact.ns === ns) return fact.inline;
    }
    return undefined;
  }

  /** The cached parts of a checkpoint; undefined if none is cached. */
  snapshot(id: string): Snapshot | undefined {
    return this.#snapshots.get(id);
  }

  /** Caches parts of a checkpoint, in addition to the parts that are cached already. */
  remember(id: string, { state, head }: Snapshot): void {
    const known = this.#snapshots.get(id);
    if (known !== undefined) {
      if (state !== undefined) known.state = state;
      if (head !== undefined) known.head = head;
      return;
    }
    if (this.#snapshots.size >= MAX_SNAPSHOTS) {
      const oldest = this.#snapshots.keys().next();
      if (!oldest.done) this.#snapshots.delete(oldest.value);
    }
    this.#snapshots.set(id, { state, head });
  }

  /** The beginning of the message whose first fact has this id. Undefined if it is not cached; then the caller has to call {@link seek}. */
  head(id: number): TokenEventFrame | undefined {
    return this.#heads.get(id);
  }

  learn(id: number, fact: MessageFact): void {
    if (this.#heads.has(id)) return;
    if (this.#heads.size >= MAX_FRAMES) {
      const oldest = this.#heads.keys().next();
      if (!oldest.done) this.#heads.delete(oldest.value);
    }
    this.#heads.set(id, headOf(fact, this.run));
  }

  /**
   * Reads the beginning of the message whose first fact has this id into the cache. It is not there if the reader has started in the middle
   * of the message, or if it was removed to make room.
   */
  seek(id: number): Eventually<void> {
    const recent = this.#recent?.(id);
    if (recent !== undefined && this.#learnFrom(recent, id)) return;
    return andThen(this.#journal.events(this.key, this.run.run_id, id - 1, 1), ([chunk]) => {
      if (chunk !== undefined && this.#learnFrom(chunk, id)) return;
      // The beginning of the message is not found. Its tokens are shown without metadata, rather than not at all.
      this.learn(id, { t: "message", id: `${this.run.run_id}:${id}`, name: null, ns: "", meta: {} });
    });
  }

  /** True when the run's graph emits the events of the stream mode `events` itself. The first fact of the run records it. */
  hasOwnEvents(): Eventually<boolean> {
    if (!this.run.kwargs.stream_mode.includes("events")) return false;
    if (this.#hasOwnEvents !== undefined) return this.#hasOwnEvents;
    const recent = this.#recent?.(0);
    const first = recent?.first === 0 ? [recent] : this.#journal.events(this.key, this.run.run_id, -1, 1);
    return andThen(first, ([chunk]) => {
      const fact = chunk?.facts[0];
      return (this.#hasOwnEvents = fact?.t === "start" && fact.events === true);
    });
  }

  /** Reads the facts of the run, from event `from` to the event before `until`, from memory or from storage. */
  async *facts(from: number, until: number): AsyncGenerator<Fact> {
    for (let at = from; at < until;) {
      const recent = this.#recent?.(at);
      const chunks =
        // For an event before all chunks in memory, `recent` returns the oldest chunk in memory, so the storage is read.
        recent === undefined || recent.first > at
          ? await this.#journal.events(this.key, this.run.run_id, at - 1, CHUNKS_PER_READ)
          : [recent];
      if (chunks.length === 0) return;
      for (const chunk of chunks) {
        let id = chunk.first;
        for (const fact of chunk.facts) {
          if (id >= until) return;
          if (id >= from) yield fact;
          id += eventCountOf(fact);
        }
        at = id;
      }
    }
  }

  #learnFrom(chunk: EventChunk, id: number): boolean {
    let at = chunk.first;
    for (const fact of chunk.facts) {
      if (at > id) break;
      if (at === id && fact.t === "message") {
        this.learn(id, fact);
        return true;
      }
      at += eventCountOf(fact);
    }
    return false;
  }
}

function headOf(fact: MessageFact, run: RunRecord): TokenEventFrame {
  const own = { id: fact.id, type: "ai", example: false, name: fact.name };
  const rest = JSON.stringify({ ...EMPTY_OBJECT, ...EMPTY_MESSAGE_FIELDS, ...own });
  return {
    fact,
    before: '[{"content":',
    after: `,${rest.slice(1)},${JSON.stringify(messageMeta(run, fact.meta))}]`,
  };
}

/** The members that every piece of a streamed message has, with empty values. A piece may have values of its own. */
export const EMPTY_MESSAGE_FIELDS: JsonObject = {
  tool_calls: [],
  additional_kwargs: {},
  invalid_tool_calls: [],
  tool_call_chunks: [],
  response_metadata: {},
};

/** The metadata of a message: members that come from its run, and the members of `meta`, which come from the message's first fact. */
export function messageMeta(run: RunRecord, meta: JsonObject): JsonObject {
  return {
    tags: [],
    run_id: run.run_id,
    thread_id: run.thread_id,
    graph_id: run.graph_id,
    assistant_id: run.assistant_id,
    ...meta,
  };
}

import { type EventChunk, type Fact, type Inline, width } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";

type MessageFact = Extract<Fact, { t: "message" }>;

/** A streamed message as its tokens need it: all of their JSON but the text. */
export interface MessageHead {
  readonly fact: MessageFact;
  readonly before: string;
  readonly after: string;
}

/** Message heads kept for one run; an older one is read back from its fact. */
const HEADS = 1024;
/** Checkpoints kept for one run's tasks: the newest, of as many subgraphs as are likely to run at once. */
const SNAPSHOTS = 8;
/** Chunks read at a time. */
const PAGE = 64;

/** A checkpoint that was met; what of it is undefined has not been asked for yet. */
interface Snapshot {
  state?: JsonObject | undefined;
  head?: CheckpointHead | undefined;
}

/**
 * What rendering needs to know of a run beyond the chunk at hand: who it is, the states and the messages that facts
 * refer to.
 */
export class RunSource {
  readonly key: ThreadKey;
  readonly run: RunRecord;
  readonly #journal: Journal;
  readonly #recent: ((id: number) => EventChunk | undefined) | undefined;
  readonly #heads = new Map<number, MessageHead>();
  readonly #snapshots = new Map<string, Snapshot>();

  /** `recent` finds a chunk that is still in memory. */
  constructor(
    journal: Journal,
    key: ThreadKey,
    run: RunRecord,
    recent?: (id: number) => EventChunk | undefined,
  ) {
    this.#journal = journal;
    this.key = key;
    this.run = run;
    this.#recent = recent;
  }

  /** The state at a checkpoint; null where that is not stored (any more). */
  state(ns: string, checkpoint: string): Eventually<JsonObject | null> {
    return andThen(this.#journal.checkpoint(this.key, ns, checkpoint), (found) => {
      if (found !== undefined) return this.#journal.values(this.key, found);
      return andThen(this.#inline(ns, checkpoint), (inline) => inline?.values ?? null);
    });
  }

  /** A checkpoint without its state; null where it is not stored (any more). */
  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null> {
    return andThen(
      this.#journal.checkpoint(this.key, ns, id),
      (found) => found ?? andThen(this.#inline(ns, id), (inline) => inline?.head ?? null),
    );
  }

  /** What an earlier fact has of a checkpoint that is not stored of itself: a reader may have begun behind it. */
  #inline(ns: string, id: string): Eventually<Inline | undefined> {
    return this.run.kwargs.durability === "exit" ? this.#seekInline(ns, id) : undefined;
  }

  async #seekInline(ns: string, id: string): Promise<Inline | undefined> {
    for await (const fact of this.facts(0, Number.POSITIVE_INFINITY)) {
      if (fact.t === "checkpoint" && fact.id === id && fact.ns === ns) return fact.inline;
    }
    return undefined;
  }

  /** What is known of a checkpoint: the tasks that run from it refer to it again and again. */
  snapshot(id: string): Snapshot | undefined {
    return this.#snapshots.get(id);
  }

  /** Keeps what is new of a checkpoint. */
  remember(id: string, { state, head }: Snapshot): void {
    const known = this.#snapshots.get(id);
    if (known !== undefined) {
      if (state !== undefined) known.state = state;
      if (head !== undefined) known.head = head;
      return;
    }
    if (this.#snapshots.size >= SNAPSHOTS) {
      const oldest = this.#snapshots.keys().next();
      if (!oldest.done) this.#snapshots.delete(oldest.value);
    }
    this.#snapshots.set(id, { state, head });
  }

  /** The message whose fact has this id, when it is known: else ask {@link seek}. */
  head(id: number): MessageHead | undefined {
    return this.#heads.get(id);
  }

  learn(id: number, fact: MessageFact): void {
    if (this.#heads.has(id)) return;
    if (this.#heads.size >= HEADS) {
      const oldest = this.#heads.keys().next();
      if (!oldest.done) this.#heads.delete(oldest.value);
    }
    this.#heads.set(id, headOf(fact, this.run));
  }

  /** Learns the message whose fact has this id: a reader may start in its middle. */
  seek(id: number): Eventually<void> {
    const recent = this.#recent?.(id);
    if (recent !== undefined && this.#learnFrom(recent, id)) return;
    return andThen(this.#journal.events(this.key, this.run.run_id, id - 1, 1), ([chunk]) => {
      if (chunk !== undefined && this.#learnFrom(chunk, id)) return;
      // Its tokens are shown all the same: text without its particulars is better than none.
      this.learn(id, { t: "message", id: `${this.run.run_id}:${id}`, name: null, ns: "", meta: {} });
    });
  }

  /** Facts of the run from event `from` to before event `until`: a reader may start in the middle of a message. */
  async *facts(from: number, until: number): AsyncGenerator<Fact> {
    for (let at = from; at < until;) {
      const recent = this.#recent?.(at);
      const chunks =
        // Asked for what is older than all it holds, memory answers with its oldest.
        recent === undefined || recent.first > at
          ? await this.#journal.events(this.key, this.run.run_id, at - 1, PAGE)
          : [recent];
      if (chunks.length === 0) return;
      for (const chunk of chunks) {
        let id = chunk.first;
        for (const fact of chunk.facts) {
          if (id >= until) return;
          if (id >= from) yield fact;
          id += width(fact);
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
      at += width(fact);
    }
    return false;
  }
}

function headOf(fact: MessageFact, run: RunRecord): MessageHead {
  const rest = JSON.stringify({ ...blankMessage, id: fact.id, type: "ai", example: false, name: fact.name });
  return {
    fact,
    before: '[{"content":',
    after: `,${rest.slice(1)},${JSON.stringify(messageMeta(run, fact.meta))}]`,
  };
}

/** What every piece of a streamed message has, empty where the piece does not bring it. */
export const blankMessage: JsonObject = {
  tool_calls: [],
  additional_kwargs: {},
  invalid_tool_calls: [],
  tool_call_chunks: [],
  response_metadata: {},
};

/** The metadata beside a message: whose run it is, then what the node's fact says. */
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

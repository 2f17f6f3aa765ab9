import { chunkEnd, type EventChunk } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Eventually } from "../ports/eventually.ts";

/**
 * A state in memory to which a fact (an entry of a run's event log) refers. `head`: its checkpoint, if the fact reports a new checkpoint.
 */
export interface LiveState {
  readonly values: JsonObject;
  readonly head: CheckpointHead | undefined;
}

/** Output that was rendered for one reader and is reused for other readers. */
export interface SharedOutput<Rendered extends { readonly size: number }> {
  /** The output contains only events with ids above this id. */
  readonly after: number;
  output: Eventually<Rendered>;
}

/** A chunk in memory, with the states to which its facts refer, and with rendered output. */
export class LogChunk {
  readonly chunk: EventChunk;
  /** One more than the id of the chunk's last event. */
  readonly end: number;
  readonly weight: number;
  /** The states to which the facts refer, by the index of the fact in the chunk. */
  readonly states: ReadonlyMap<number, LiveState> | undefined;
  stored = false;
  /** Rendered output of the chunk, by the key of its view. A large chunk is rendered in parts, of which only the last one is kept. */
  rendered: Map<string, SharedOutput<{ readonly size: number }>> | undefined;

  constructor(chunk: EventChunk, end?: number, weight = 0, states?: ReadonlyMap<number, LiveState>) {
    this.chunk = chunk;
    this.end = end ?? chunkEnd(chunk);
    this.weight = weight;
    this.states = states;
  }
}

/** The states that are stored within a chunk's facts, by the index of the fact. */
export function statesInChunk({ facts }: EventChunk): ReadonlyMap<number, LiveState> | undefined {
  let states: Map<number, LiveState> | undefined;
  for (const [i, fact] of facts.entries()) {
    if ((fact.t !== "checkpoint" && fact.t !== "interrupt") || fact.inline === undefined) continue;
    const { values, head } = fact.inline;
    (states ??= new Map()).set(i, { values, head });
  }
  return states;
}

export interface RecentChunkLimits {
  /** The maximum size of the chunks in memory, in estimated bytes. */
  readonly weight: number;
  readonly facts: number;
}

/** Rendered output is cached for this many of the newest chunks. Readers that keep up with the writer do not need older chunks. */
const MAX_RENDERED_CHUNKS = 8;
/** Output with more characters than this is counted in the memory budget. It is cached only for the newest chunk. */
export const LARGE_OUTPUT = 256 * 1024;

/**
 * The newest chunks of one run's log, without gaps. Its size is limited, but it always contains the newest chunk and all chunks that are
 * not stored yet, because these exist only in memory.
 */
export class RecentLogChunks {
  readonly #limits: RecentChunkLimits;
  #entries: LogChunk[] = [];
  /** The index of the first entry that is not removed. The array itself is shortened only occasionally, because that copies it. */
  #head = 0;
  #weight = 0;
  #facts = 0;

  constructor(limits: RecentChunkLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#entries.length - this.#head;
  }

  /** The first event id in memory; undefined when there are no chunks. */
  get first(): number | undefined {
    return this.#entries[this.#head]?.chunk.first;
  }

  push(entry: LogChunk): void {
    this.#entries.push(entry);
    this.#weight += entry.weight;
    this.#facts += entry.chunk.facts.length;
    const older = this.#entries.length - 1 - MAX_RENDERED_CHUNKS;
    if (older >= this.#head) (this.#entries[older] as LogChunk).rendered = undefined;
    const previous = this.#entries.length - 2;
    if (previous >= this.#head) dropLargeOutput(this.#entries[previous] as LogChunk);
    this.trim();
  }

  /**
   * Removes the oldest entries until the limits are met. An entry that is not stored yet is never removed, nor are the entries after it.
   */
  trim(): void {
    while (this.length > 1) {
      if (this.#weight <= this.#limits.weight && this.#facts <= this.#limits.facts) break;
      const oldest = this.#entries[this.#head] as LogChunk;
      if (!oldest.stored) break;
      this.#head++;
      this.#weight -= oldest.weight;
      this.#facts -= oldest.chunk.facts.length;
    }
    if (this.#head >= 32 && this.#head * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }

  clear(): void {
    this.#entries = [];
    this.#head = 0;
    this.#weight = 0;
    this.#facts = 0;
  }

  /** The entry that contains event `id`, or the oldest entry if the event is older. Undefined if the event is newer than all entries. */
  find(id: number): LogChunk | undefined {
    const entries = this.#entries;
    // The search below assumes that the newest entry ends after `id`.
    const newest = entries[entries.length - 1];
    if (newest === undefined || newest.end <= id) return undefined;
    let low = this.#head;
    let high = entries.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entries[middle] as LogChunk).end > id) high = middle;
      else low = middle + 1;
    }
    return entries[low];
  }
}

function dropLargeOutput({ rendered }: LogChunk): void {
  if (rendered === undefined) return;
  for (const [view, { output }] of rendered)
    if (!(output instanceof Promise) && output.size > LARGE_OUTPUT) rendered.delete(view);
}

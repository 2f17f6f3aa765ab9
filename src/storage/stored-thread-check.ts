import { chunkEnd, type Fact } from "../model/run-event.ts";
import { isTerminal } from "../model/run.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Damage } from "../ports/journal.ts";
import { decodingFlaw, decodeWithChecksum } from "./checksum-envelope.ts";
import { decodeFacts } from "./event-fact-codec.ts";
import { isUnsettled } from "./thread-heads.ts";
import {
  unsettledThreadKey,
  dueRunKey,
  eventsPrefix,
  threadRecordKey,
  escapeSegment,
  lastSegment,
  runKey,
  unescapeSegment,
} from "./keys.ts";
import { threadPartLabel } from "./key-labels.ts";
import { encodeOrdinal, parseOrdinal } from "./sortable-numbers.ts";
import { allEventually, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import {
  checkpointRowConverter,
  runRowConverter,
  threadRowConverter,
  type StoredCheckpoint,
  type StoredRun,
} from "./stored-records.ts";
import { runIndexKeys } from "./run-index.ts";
import { threadIndexKeys } from "./thread-index.ts";
import { unpackRefs } from "./channel-ref-codec.ts";

/** Returns true if readers do not see the thread, or the event log of `run`: it is being deleted, or is not completely written yet. */
export type IsDeleted = (key: ThreadKey, run: string | null) => Eventually<boolean>;

interface Chunk {
  readonly first: number;
  readonly end: number;
  readonly starts: boolean;
}

/** Checks one thread. The caller passes all keys of the thread in order to {@link add}. {@link end} then reports what is wrong. */
export class StoredThreadCheck {
  readonly key: ThreadKey;
  readonly #kv: KeyValueStore;
  readonly #prefix: string;
  readonly #isDeleted: IsDeleted;
  readonly #found: string[] = [];
  #thread: ThreadRecord | undefined;
  #first: string | undefined;
  readonly #appends: number[] = [];
  readonly #runs = new Map<string, StoredRun>();
  readonly #kwargs = new Set<string>();
  readonly #ordered = new Set<string>();
  /** The event numbers at which delayed runs started, by run. */
  readonly #late = new Map<string, number>();
  readonly #checkpoints = new Map<string, Pick<StoredCheckpoint, "id" | "ns" | "parent" | "changes">>();
  readonly #wholes = new Set<string>();
  /** The length of each segment of a list, by its key. */
  readonly #segments = new Map<string, number>();
  readonly #left: string[] = [];
  readonly #chunks = new Map<string, Chunk[]>();

  constructor(kv: KeyValueStore, key: ThreadKey, prefix: string, isDeleted: IsDeleted) {
    this.#kv = kv;
    this.#isDeleted = isDeleted;
    this.key = key;
    this.#prefix = prefix;
  }

  /** Adds a key of the thread with its value. `rest`: the key without the thread's prefix. */
  add(rest: string, bytes: Buffer): void {
    this.#first ??= this.#prefix + rest;
    let value: unknown;
    try {
      value = decodeWithChecksum(bytes, this.key, rest);
    } catch {
      this.#found.push(`${threadPartLabel(rest)}: ${decodingFlaw(bytes)}`);
      return;
    }
    const [kind, first = "", second = ""] = rest.split("/");
    const last = rest.slice(rest.lastIndexOf("/") + 1);
    switch (kind) {
      case "h":
        this.#thread = threadRowConverter.record(value);
        break;
      case "j":
        this.#appends.push(parseOrdinal(first));
        break;
      case "r":
        this.#runs.set(unescapeSegment(first), runRowConverter.record(value));
        break;
      case "k":
        this.#kwargs.add(unescapeSegment(first));
        break;
      case "o":
        this.#ordered.add(unescapeSegment(second));
        break;
      case "s":
        this.#late.set(unescapeSegment(second), parseOrdinal(first));
        break;
      case "c": {
        const { id, ns, parent, changes } = checkpointRowConverter.record(value);
        this.#checkpoints.set(`${first}/${second}`, { id, ns, parent, changes });
        break;
      }
      case "b":
        this.#wholes.add(rest);
        break;
      case "l":
        this.#segments.set(rest, Array.isArray(value) ? value.length : 0);
        break;
      case "w":
        this.#left.push(`${first}/${second}`);
        break;
      case "e":
        this.#addChunk(unescapeSegment(first), parseOrdinal(last), decodeFacts(value));
        break;
      default:
        this.#found.push(`the key ${rest} is unknown`);
    }
  }

  #addChunk(run: string, first: number, facts: readonly Fact[]): void {
    const chunk = { first, end: chunkEnd({ run_id: run, first, facts }), starts: facts[0]?.t === "start" };
    const known = this.#chunks.get(run);
    if (known === undefined) this.#chunks.set(run, [chunk]);
    else known.push(chunk);
  }

  async *end(): AsyncGenerator<Damage> {
    if ((await this.#isDeleted(this.key, null)) || (await this.#isGone(this.#first))) return;
    this.#checkThread();
    if (this.#thread !== undefined) await this.#checkMarks();
    this.#checkRuns();
    if (this.#thread?.temporary === null) await this.#checkRunIndex();
    this.#checkCheckpoints();
    for (const [run, chunks] of this.#chunks) await this.#checkEvents(run, chunks);
    for (const what of this.#found) yield { key: this.key, what };
  }

  /** True if the key was deleted after the scan started. The scan still sees such a key, because it reads a snapshot. */
  async #isGone(key: string | undefined): Promise<boolean> {
    return key === undefined || (await this.#kv.get(key)) === undefined;
  }

  #checkThread(): void {
    let next = 1;
    for (const seq of this.#appends) {
      if (seq > next) this.#found.push(`appends ${next} to ${seq - 1} are missing`);
      next = seq + 1;
    }
    const thread = this.#thread;
    if (thread === undefined) {
      this.#found.push("its record is missing");
      return;
    }
    if (thread.seq >= next) this.#found.push(`appends ${next} to ${thread.seq} are missing`);
    else if (thread.seq < next - 1)
      this.#found.push(`its record is of append ${thread.seq}, there are ${next - 1}`);
    if (thread.checkpoint !== null && !this.#checkpoints.has(`/${escapeSegment(thread.checkpoint)}`)) {
      this.#found.push(`its latest checkpoint ${thread.checkpoint} is missing`);
    }
    const delayed = (thread.delayed ?? []).map(({ run }) => run);
    for (const run of [thread.active ?? [], thread.queue, delayed].flat()) {
      if (!this.#runs.has(run)) this.#found.push(`run ${run}, which is to be done, is missing`);
    }
  }

  /**
   * Checks the marks and index entries of the thread. They are read later than the thread's record, because their keys are elsewhere. So an
   * error counts only if the thread did not change meanwhile.
   */
  async #checkMarks(): Promise<void> {
    for (;;) {
      const bytes = await this.#kv.get(threadRecordKey(this.#prefix));
      if (bytes === undefined) return;
      const wrong = await this.#wrongMark(
        threadRowConverter.record(decodeWithChecksum(bytes, this.key, "its record")),
      );
      if (wrong === undefined) return;
      const now = await this.#kv.get(threadRecordKey(this.#prefix));
      if (now?.equals(bytes) !== true) continue;
      this.#found.push(wrong);
      return;
    }
  }

  async #wrongMark(thread: ThreadRecord): Promise<string | undefined> {
    const marked = (await this.#kv.get(unsettledThreadKey(this.key))) !== undefined;
    if (marked !== isUnsettled(thread)) {
      return marked ? "it is marked as having work and has none" : "it has work and is not marked";
    }
    for (const { run, due } of thread.delayed ?? []) {
      if ((await this.#kv.get(dueRunKey(this.key, due, run))) === undefined)
        return `run ${run} is delayed and not marked`;
    }
    const places = await allEventually(threadIndexKeys(this.key, thread).map((at) => this.#kv.get(at)));
    return places.includes(undefined) ? "it is not in the index of threads" : undefined;
  }

  #checkRuns(): void {
    for (const id of this.#runs.keys()) {
      if (!this.#kwargs.has(id)) this.#found.push(`what run ${id} was created with is missing`);
      if (!this.#ordered.has(id)) this.#found.push(`run ${id} is missing from the order of runs`);
    }
    const { active = null, queue = [], delayed = null } = this.#thread ?? {};
    const toDo = new Set([active, ...queue, ...(delayed ?? []).map(({ run }) => run)]);
    for (const [id, { status }] of this.#runs) {
      if (this.#thread === undefined || isTerminal(status) || toDo.has(id)) continue;
      this.#found.push(`run ${id} has not ended, and its thread has gone past it`);
    }
    for (const id of this.#ordered) {
      if (!this.#runs.has(id)) this.#found.push(`run ${id} is in the order of runs and nowhere else`);
    }
    for (const [id, seq] of this.#late) {
      if (this.#runs.get(id)?.seq_base !== seq) this.#found.push(`run ${id} did not begin late at ${seq}`);
    }
  }

  async #checkRunIndex(): Promise<void> {
    for (const [id, run] of this.#runs) {
      const places = await allEventually(runIndexKeys(this.key, run).map((at) => this.#kv.get(at)));
      // The run may have been deleted meanwhile, together with its index keys.
      if (places.includes(undefined) && !(await this.#isGone(runKey(this.#prefix, id))))
        this.#found.push(`run ${id} is not in the index of runs`);
    }
  }

  #checkCheckpoints(): void {
    for (const [at, { id, ns, parent, changes }] of this.#checkpoints) {
      if (parent !== null && !this.#checkpoints.has(`${escapeSegment(ns)}/${escapeSegment(parent)}`)) {
        this.#found.push(`the parent ${parent} of checkpoint ${id} is missing`);
      }
      const [space] = at.split("/");
      for (const [channel, ref] of Object.entries(unpackRefs(changes.channels))) {
        if (ref.kind === "small") continue;
        const missing =
          ref.kind === "whole"
            ? !this.#wholes.has(`b/${space}/${escapeSegment(channel)}/${encodeOrdinal(ref.at)}`)
            : !this.#isWhole(`l/${space}/${escapeSegment(channel)}/`, ref.spans);
        if (missing) this.#found.push(`the value of channel ${channel} at checkpoint ${id} is missing`);
      }
    }
    for (const at of new Set(this.#left)) {
      if (!this.#checkpoints.has(at))
        this.#found.push(`tasks have left writes at checkpoint ${lastSegment(at)}, which is missing`);
    }
  }

  #isWhole(prefix: string, spans: readonly { readonly at: number; readonly end: number }[]): boolean {
    let next = 0;
    for (const { at, end } of spans) {
      while (next < end) {
        const length = this.#segments.get(`${prefix}${encodeOrdinal(at)}/${encodeOrdinal(next)}`) ?? 0;
        if (length === 0) return false;
        next = Math.min(end, next + length);
      }
    }
    return true;
  }

  async #checkEvents(run: string, chunks: readonly Chunk[]): Promise<void> {
    const [chunk] = chunks;
    const key = chunk && `${eventsPrefix(this.#prefix, run)}${encodeOrdinal(chunk.first)}`;
    if ((await this.#isDeleted(this.key, run)) || (await this.#isGone(key))) return;
    const record = this.#runs.get(run);
    if (record === undefined) {
      this.#found.push(`there are events of run ${run}, which is missing`);
      return;
    }
    let next = 0;
    for (const { first, end, starts } of chunks) {
      // Event ids may have a gap where a later attempt starts. After a power cut, the attempt starts above all ids of events that may have
      // been sent but are lost.
      const jumps = starts && record.attempt > 1;
      if (first < next) this.#found.push(`events ${first} to ${next - 1} of run ${run} are there twice`);
      else if (first > next && !jumps)
        this.#found.push(`events ${next} to ${first - 1} of run ${run} are missing`);
      next = end;
    }
    if (isTerminal(record.status) && next < record.next_event) {
      this.#found.push(`events ${next} to ${record.next_event - 1} of run ${run} are missing`);
    }
  }
}

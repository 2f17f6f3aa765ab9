import { someRun } from "../fixtures/runs.ts";
import type { ChannelChange, Checkpoint, NewCheckpoint } from "../../src/model/checkpoint.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { chunkEnd, type EventChunk } from "../../src/model/run-event.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { uuid6 } from "../../src/model/ids.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { newThreadRecord, type ThreadKey, type ThreadRecord } from "../../src/model/thread.ts";
import type { Eventually } from "../../src/ports/eventually.ts";
import type { Append, Journal } from "../../src/ports/journal.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { Logger } from "../../src/ports/logger.ts";
import type { Cancel, Scheduler } from "../../src/ports/scheduler.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";

export const KEY: ThreadKey = { tenant: "_", thread: "0199aaaa-0000-7000-8000-000000000001" };
export const RUN = "0199aaaa-0000-7000-8000-00000000000a";

/** A scheduler whose time and turns advance only on request. */
export class HeldScheduler implements Scheduler {
  now = 0;
  /** Turns without work after which everything counts as settled: a real storage has turns of its own. */
  readonly #patience: number;
  #ready: (() => void)[] = [];
  #timers = new Set<{ at: number; task: () => void }>();

  constructor(patience = 3) {
    this.#patience = patience;
  }

  soon(task: () => void): void {
    this.#ready.push(task);
  }

  after(ms: number, task: () => void): Cancel {
    const timer = { at: this.now + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Runs what is ready, once. */
  turn(): void {
    const ready = this.#ready;
    this.#ready = [];
    for (const task of ready) task();
  }

  /** Runs turns and promise callbacks until nothing is left to do. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < this.#patience; quiet++) {
      if (this.#ready.length > 0) quiet = 0;
      this.turn();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Advances the time, and fires due timers in order. */
  async pass(ms: number): Promise<void> {
    const until = this.now + ms;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.now = due.at;
      this.#timers.delete(due);
      due.task();
      await this.settle();
    }
    this.now = until;
    await this.settle();
  }
}

export class Lines implements Logger {
  readonly lines: string[] = [];
  debug(message: string): void {
    this.lines.push(message);
  }
  info(message: string): void {
    this.lines.push(message);
  }
  warn(message: string): void {
    this.lines.push(message);
  }
  error(message: string): void {
    this.lines.push(message);
  }
}

export function runRecord(over: Partial<RunRecord> = {}): RunRecord {
  return someRun({
    run_id: RUN,
    thread_id: KEY.thread,
    assistant_id: "0199aaaa-0000-5000-8000-00000000000b",
    graph_id: "agent",
    attempt: 1,
    started_at: 0,
    seq_base: 1,
    ...over,
  });
}

const gone = () => new ServiceError("storage.unavailable", "gone");

/**
 * Passes everything to a journal, but acknowledges writes only on request; until then they are in flight. After `break`
 * every write fails, as when the storage is gone.
 */
export class GatedJournal {
  readonly journal: Journal;
  held = false;
  /** True: a held write is stored already, and only its acknowledgement is late. False: it is not stored yet. */
  early = true;
  #waiting: (() => void)[] = [];
  #broken = false;
  /** True: reads of events are carried out, but their results are held back. */
  heldReads = false;
  #reads: (() => void)[] = [];
  reads = 0;
  readonly publishes: EventChunk[] = [];

  constructor(inner: Journal) {
    const pass = async (write: () => Promise<void>): Promise<void> => {
      if (this.#broken) throw gone();
      // Once one write is held, later ones are too: writes take effect in order.
      if (!this.held && this.#waiting.length === 0) return write();
      let written = this.early ? write() : undefined;
      written?.catch(() => undefined);
      await new Promise<void>((resolve) => {
        this.#waiting.push(() => {
          if (!this.#broken) written ??= write();
          resolve();
        });
      });
      if (this.#broken) throw gone();
      return written;
    };
    this.journal = new Proxy(inner, {
      get: (target, name) => {
        if (name === "publish") {
          return (key: ThreadKey, epoch: number, chunk: EventChunk) => {
            this.publishes.push(chunk);
            return pass(() => target.publish(key, epoch, chunk));
          };
        }
        if (name === "append") return (append: Append) => pass(() => target.append(append));
        if (name === "events") {
          return (...args: Parameters<Journal["events"]>) => {
            this.reads++;
            const answer = target.events(...args);
            return this.heldReads ? this.#later(answer) : answer;
          };
        }
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  async #later<T>(answer: Eventually<T>): Promise<T> {
    const value = await answer;
    await new Promise<void>((resolve) => this.#reads.push(resolve));
    return value;
  }

  /** Acknowledges the oldest `count` writes. */
  release(count = Number.POSITIVE_INFINITY): void {
    for (const go of this.#waiting.splice(0, count)) go();
  }

  releaseReads(): void {
    this.heldReads = false;
    for (const go of this.#reads.splice(0)) go();
  }

  /** The process dies: held writes are never acknowledged, and are stored only if `early` is true. */
  crash(): void {
    this.#waiting = [];
    this.held = false;
  }

  break(): void {
    this.#broken = true;
    this.release();
  }

  heal(): void {
    this.#broken = false;
  }
}

function checkpointOf(n: number, state: JsonObject): NewCheckpoint {
  const changes: Record<string, ChannelChange> = {};
  for (const [channel, value] of Object.entries(state)) changes[channel] = { kind: "set", value };
  return {
    id: uuid6(n, 0, 0, new Uint8Array(6)),
    parent: null,
    ns: "",
    step: 0,
    source: "loop",
    created_at: n,
    run_id: RUN,
    metadata: {},
    writes: null,
    next: [],
    engine: null,
    graph: "",
    changes,
  };
}

/** A thread's writer: does what its actor does with a journal and a sink, without the actor. */
export class Writer {
  readonly #journal: Journal;
  thread: ThreadRecord = newThreadRecord(KEY.thread, 0, {});

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async append(over: Partial<Append>, epoch = this.thread.epoch): Promise<void> {
    const fence = { epoch: this.thread.epoch, seq: this.thread.seq };
    this.thread = { ...this.thread, epoch, seq: this.thread.seq + 1 };
    await this.#journal.append({
      key: KEY,
      fence,
      kind: "stepped",
      durable: true,
      thread: this.thread,
      ...over,
    });
  }

  /** Another process takes over: it knows only what is stored. */
  async reload(): Promise<void> {
    const stored = await this.#journal.thread(KEY);
    if (stored !== undefined) this.thread = stored;
  }

  /** Stores checkpoints of the run with these whole states; returns their ids. */
  async checkpoints(states: readonly JsonObject[]): Promise<string[]> {
    const checkpoints = states.map((state, i) => checkpointOf(this.thread.seq * 100 + i, state));
    await this.append({ checkpoints });
    return checkpoints.map(({ id }) => id);
  }

  /** Creates the thread and a run's record; an attempt begins. */
  start(run: RunRecord = runRecord()): Promise<void> {
    return this.append({ kind: "started", runs: [run] }, this.thread.epoch + 1);
  }

  /** Commits what `sink` has not sent yet with an append. */
  async commit(sink: EventSink, over: Partial<Append> = {}): Promise<void> {
    const events = sink.take();
    try {
      await this.append(events === undefined ? over : { ...over, events });
    } catch (cause) {
      sink.abandon();
      throw cause;
    }
    if (events !== undefined) sink.stored(events);
  }

  /** Stores the run's end with the last facts. */
  async finish(sink: EventSink, run: RunRecord = runRecord()): Promise<void> {
    const ended: RunRecord = { ...run, status: "success", ended_at: 1, next_event: sink.next };
    await this.commit(sink, { kind: "settled", runs: [ended] });
    sink.close();
  }
}

/** The journals with which streams are tested, and the turns that each takes to store. */
export const journals = [
  { name: "a slow journal", open: async () => slowJournal(), patience: 3 },
  { name: "the storage", open: storageJournal, patience: 12 },
] as const;

async function storageJournal(): Promise<Journal> {
  const deps = {
    scheduler: systemScheduler,
    clock: systemClock,
    failpoints: noFailpoints,
    logger: silentLogger,
  };
  return (await openStorage({ kind: "memory" }, deps)).journal;
}

/** A journal with the parts that streams use, all of whose results are promises, as with a slow storage. */
export function slowJournal(): Journal {
  const chunks = new Map<string, EventChunk[]>();
  const runs = new Map<string, RunRecord>();
  const threads = new Map<string, ThreadRecord>();
  const states = new Map<string, NewCheckpoint>();
  const keep = (chunk: EventChunk) => {
    const list = chunks.get(chunk.run_id) ?? [];
    chunks.set(chunk.run_id, list);
    const last = list.at(-1);
    if (last !== undefined && chunk.first < chunkEnd(last)) {
      throw new ServiceError("journal.conflict", "the chunk begins before the last one's end");
    }
    list.push(structuredClone(chunk));
  };
  const journal: Partial<Journal> = {
    async publish(_key, _epoch, chunk) {
      keep(chunk);
    },
    async append({ key, thread, runs: changed = [], checkpoints = [], events }) {
      for (const checkpoint of checkpoints) states.set(checkpoint.id, checkpoint);
      threads.set(key.thread, thread);
      for (const run of changed) runs.set(`${key.thread} ${run.run_id}`, run);
      if (events !== undefined) keep(events);
    },
    whenWritable: () => undefined,
    thread: (key) => threads.get(key.thread),
    run: (key, run) => Promise.resolve(runs.get(`${key.thread} ${run}`)),
    sharedRun: (key, run) => Promise.resolve(runs.get(`${key.thread} ${run}`)),
    events: async (_key, run, after, limit) =>
      (chunks.get(run) ?? []).filter((chunk) => chunkEnd(chunk) > after + 1).slice(0, limit),
    nextEvent: async (_key, run) => {
      const last = chunks.get(run)?.at(-1);
      return last === undefined ? 0 : chunkEnd(last);
    },
    checkpoint: (_key, ns, id) => {
      const { changes: _changes, ...head } = states.get(id) ?? {};
      return states.has(id) ? ({ ...head, ns, channels: {} } as Checkpoint) : undefined;
    },
    sharedValues: async (_key, { id }) => {
      const changes = Object.entries(states.get(id)?.changes ?? {});
      return Object.fromEntries(changes.map(([name, to]) => [name, to.kind === "set" ? to.value : null]));
    },
  };
  return journal as Journal;
}

import { describe, expect, test } from "vitest";
import type { Fact } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Journal } from "../../src/ports/journal.ts";
import type { EventSink } from "../../src/ports/event-sink.ts";
import {
  createRunLogRegistry,
  type RunLogRegistry,
  type RunLogRegistryDeps,
} from "../../src/stream/run-log-registry.ts";
import type { Reader } from "../../src/stream/run-reader.ts";
import { streamModes } from "../../src/model/run.ts";
import { expectEqual } from "../fixtures/expect-equal.ts";
import { Collector } from "./reading.ts";
import { GatedJournal, HeldScheduler, KEY, Lines, journals, RUN, runRecord, Writer } from "./support.ts";

/** Uniform numbers below `n`, from a seed (mulberry32). */
function dice(seed: number): (n: number) => number {
  let a = seed;
  return (n) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

/** States that facts refer to. */
const STATES = 20;

/** A run with random operations: facts, commits, publishes, new attempts, and readers that come, read and leave. */
class Life {
  readonly roll: (n: number) => number;
  readonly scheduler: HeldScheduler;
  readonly inner: Journal;
  readonly gate: GatedJournal;
  runLogs: RunLogRegistry;
  readonly #memory: boolean;
  readonly #limits: RunLogRegistryDeps["limits"];
  readonly writer: Writer;
  readonly readers: { after: number; collector: Collector }[] = [];
  #attempt = 1;
  #message = -1;
  #checkpoints: readonly string[] = [];
  #commits: Promise<void>[] = [];
  sink: EventSink;

  constructor(seed: number, inner: Journal, patience: number) {
    this.roll = dice(seed);
    this.scheduler = new HeldScheduler(patience);
    this.inner = inner;
    this.gate = new GatedJournal(inner);
    this.#memory = this.roll(3) === 0;
    this.gate.early = this.roll(2) === 0;
    this.#limits = {
      chunkFacts: 1 + this.roll(6),
      tail: { weight: 1 << 20, facts: 1 + this.roll(30) },
    };
    const { journal } = this.gate;
    this.runLogs = this.#makeRunLogs();
    this.writer = new Writer(journal);
    if (this.roll(2) === 0) this.follow();
    this.sink = this.runLogs.open(KEY, runRecord(), 1, 0);
  }

  #makeRunLogs(): RunLogRegistry {
    const sync = this.#memory ? "memory" : "os";
    const { scheduler } = this;
    const { journal } = this.gate;
    return createRunLogRegistry({
      journal,
      scheduler,
      logger: new Lines(),
      limits: this.#limits ?? {},
      sync,
    });
  }

  async begin(): Promise<void> {
    await this.writer.start();
    this.#checkpoints = await this.writer.checkpoints(
      Array.from({ length: STATES }, (_, place) => ({ place })),
    );
    this.sink.emit({ t: "start", attempt: 1 });
  }

  async act(): Promise<void> {
    const what = this.roll(20);
    if (what < 8) this.emit();
    else if (what < 10) this.scheduler.turn();
    else if (what < 11) await this.scheduler.settle();
    else if (what < 12) this.gate.held = this.roll(2) === 0;
    else if (what < 14) this.gate.release(1 + this.roll(3));
    else if (what < 15) this.#commits.push(this.writer.commit(this.sink));
    else if (what < 16) this.follow();
    else if (what < 19) await this.read();
    else await this.rarely(this.roll(64));
  }

  async rarely(what: number): Promise<void> {
    if (what < 8) this.again();
    else if (what < 16) await this.restart();
  }

  emit(): void {
    for (let count = this.roll(5); count >= 0; count--) {
      const [fact, values] = this.#fact();
      const id = this.sink.emit(fact, values);
      if (fact.t === "message") this.#message = id;
    }
  }

  #fact(): readonly [Fact, JsonObject?] {
    switch (this.roll(11)) {
      case 0: {
        const place = this.roll(STATES);
        const id = this.#checkpoints[place] ?? "";
        const fact: Fact = { t: "checkpoint", id, ns: "", step: 1, input: this.roll(5) === 0 };
        return this.roll(2) === 0 ? [fact, { place }] : [fact];
      }
      case 1:
        return [{ t: "message", id: `m${this.roll(1e6)}`, name: null, ns: "", meta: { n: this.roll(100) } }];
      case 2:
        return [
          {
            t: "result",
            id: "t",
            name: "node",
            ns: "",
            checkpoint: "c",
            at: 1,
            update: this.roll(100),
            interrupts: [],
          },
        ];
      case 3:
        return [{ t: "custom", ns: "", json: JSON.stringify("x".repeat(this.roll(50))) }];
      case 4: {
        const checkpoint = this.#checkpoints[this.roll(STATES)] ?? "";
        return [{ t: "task", id: "t", name: "node", ns: "", checkpoint, triggers: [], at: 1 }];
      }
      case 5: {
        const text = `p${this.roll(100)}`;
        const chunk = { content: text, tool_call_chunks: [{ index: this.roll(2), args: text }] };
        return [
          this.#message < 0
            ? { t: "custom", ns: "", json: JSON.stringify(text) }
            : { t: "piece", m: this.#message, chunk },
        ];
      }
      default:
        if (this.#message >= 0) return [{ t: "token", m: this.#message, text: `w${this.roll(100)} ` }];
        return [
          {
            t: "custom",
            ns: this.roll(3) === 0 ? "sub:1" : "",
            json: JSON.stringify({ n: this.roll(1000) }),
          },
        ];
    }
  }

  /** Every second reader gets the output of a chunk in parts. */
  #collector(reader: Reader): Collector {
    return new Collector(reader, streamModes, true, this.roll(2) === 0 ? undefined : 1 + this.roll(500));
  }

  follow(): void {
    const highest = Math.max(-1, ...this.readers.flatMap(({ collector }) => collector.ids));
    const after = this.roll(highest + 2) - 1;
    const run = runRecord({ event_mark: 1e9 });
    this.readers.push({ after, collector: this.#collector(this.runLogs.follow(KEY, run, { after })) });
  }

  async read(): Promise<void> {
    const reader = this.readers[this.roll(this.readers.length + 1)];
    if (reader === undefined) return;
    // A read begins, other operations follow, and only then the result arrives.
    const reading = reader.collector.read(1 + this.roll(6));
    if (this.roll(2) === 0) {
      this.emit();
      this.scheduler.turn();
      this.gate.release(this.roll(3));
    }
    await reading;
    if (this.roll(4) === 0) reader.collector.reader.rest();
    if (this.roll(10) === 0) this.#comeAgain(reader);
  }

  /** A reader disconnects, and reconnects with the last id that it has received. */
  #comeAgain(reader: { after: number; collector: Collector }): void {
    const { events } = reader.collector;
    const last = events.at(-1)?.id ?? reader.after;
    reader.collector.reader.close();
    reader.collector = this.#collector(
      this.runLogs.follow(KEY, runRecord({ event_mark: 1e9 }), { after: last }),
    );
    reader.collector.events.push(...events);
  }

  /** The process dies; in the next one, readers may come before the attempt is opened. */
  async restart(): Promise<void> {
    // With `memory`, readers may have seen events before they were stored, and these are lost.
    if (this.#memory && !this.gate.early) return;
    this.gate.crash();
    this.#commits = [];
    this.runLogs.close();
    await this.scheduler.settle();
    this.runLogs = this.#makeRunLogs();
    for (const reader of this.readers) this.#comeAgain(reader);
    await this.writer.reload();
    for (let i = this.roll(4); i > 0; i--) await this.read();
    const first = (await this.inner.nextEvent(KEY, RUN)) + this.roll(3) * 10;
    this.#attemptAt(first);
  }

  /** A new attempt, while the last writes of the older one may still be in flight. */
  again(): void {
    const older = this.sink;
    this.#attemptAt(this.sink.next + this.roll(3) * 10);
    older.emit({ t: "custom", ns: "", json: '"never seen"' });
  }

  #attemptAt(first: number): void {
    this.sink = this.runLogs.open(KEY, runRecord(), 1, first);
    this.#message = -1;
    this.sink.emit({ t: "start", attempt: ++this.#attempt });
  }

  /** The run ends, and every reader reads until it pauses. */
  async finish(): Promise<void> {
    this.gate.held = false;
    await this.scheduler.settle();
    this.gate.release();
    await this.scheduler.settle();
    await Promise.all(this.#commits);
    await this.writer.finish(this.sink);
    await this.scheduler.settle();
    for (const { collector } of this.readers) await collector.read();
  }

  /** The output from storage alone, without the memory of this registry. */
  stored(after = -1): Collector {
    const ended = runRecord({ status: "success", next_event: this.sink.next });
    const fresh = createRunLogRegistry({
      journal: this.inner,
      scheduler: this.scheduler,
      logger: new Lines(),
    });
    return new Collector(fresh.follow(KEY, ended, { after }));
  }
}

describe.each(journals)("over $name", ({ open, patience }) => {
  describe("whoever comes when and reads how fast gets exactly the events after its id", () => {
    test.each(Array.from({ length: 4 }, (_, i) => i * 10))("seeds from %i on", async (from) => {
      for (let seed = from; seed < from + 10; seed++) {
        const life = new Life(seed, await open(), patience);
        await life.begin();
        const steps = 20 + life.roll(150);
        for (let i = 0; i < steps; i++) await life.act();
        await life.finish();
        const stored = life.stored();
        expect(await stored.read()).toBe("end");
        const whole = stored.events;
        expect(whole.length, `seed ${seed} has events`).toBeGreaterThan(0);
        for (const { after, collector } of life.readers) {
          const due = whole.filter(({ id }) => id > after);
          expect(collector.reason, `seed ${seed}, after ${after}`).toBe("end");
          expectEqual(collector.events, due, `seed ${seed}, after ${after}`);
        }
        for (const { collector } of life.readers) collector.reader.close();
        expect(life.runLogs.counts, `seed ${seed}`).toEqual({ logs: 0, readers: 0, watches: 0 });
        expect(life.scheduler.timers, `seed ${seed}`).toBe(0);
      }
    });
  });

  test("replay from every index of an ended run is the tail of the whole", async () => {
    const life = new Life(7, await open(), patience);
    await life.begin();
    for (let i = 0; i < 30; i++) life.emit();
    await life.finish();
    const whole = life.stored();
    await whole.read();
    for (let after = -1; after < life.sink.next; after++) {
      const reader = life.stored(after);
      expect(await reader.read()).toBe("end");
      expectEqual(
        reader.events,
        whole.events.filter(({ id }) => id > after),
      );
    }
  });
});

import type { JsonText } from "../codec/large-json.ts";
import { SseBatch, type SseOutput } from "../codec/sse.ts";
import { type Fact, eventCountOf } from "../model/run-event.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { RunRecord, StreamMode } from "../model/run.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { isTokenOrPiece, type RenderersOfKind, renderersByKind } from "./stream-modes.ts";
import type { RenderContext } from "./render-context.ts";
import { startMessage, extendMessage, type PartialMessages, type PieceFact } from "./partial-messages.ts";
import type { TokenEventFrame, RenderDataLoader } from "./render-data-loader.ts";
import type { LogChunk, LiveState, SharedOutput } from "./recent-log-chunks.ts";

/** The state that a reader keeps from one chunk to the next, such as the messages that are being streamed at its position. */
export interface ReaderState {
  partials: PartialMessages | undefined;
  /** One more than the id of the last event that `partials` includes; -1 if `partials` cannot be used for the next chunk. */
  at: number;
  /** The number of characters in the output that was rendered last. */
  size: number;
  /**
   * Set if the output became too large before the end of the slice: the id of the last event that was rendered. The reader has to continue
   * after this event.
   */
  stoppedAt: number | undefined;
}

export const newReaderState = (): ReaderState => ({
  partials: undefined,
  at: -1,
  size: 0,
  stoppedAt: undefined,
});

/**
 * Rendering stops within a slice when its output has this many characters. A chunk may refer to many states, each of which is much larger
 * than the facts of the chunk.
 */
export const OUTPUT_CHARACTERS_PER_PASS = 512 * 1024;

/** A part of a chunk: its events with ids above `after`. */
export interface ChunkSlice {
  readonly entry: LogChunk;
  readonly after: number;
  readonly data: RenderDataLoader;
  /** True if several readers follow this run. Rendered output is then cached for the others. */
  readonly shared: boolean;
  /** The state of the reader for whom the slice is rendered. */
  readonly memo: ReaderState;
  /**
   * Set if the slice has no events, but marks the end of the run. `record`: the run's record; undefined if the run was rolled back or
   * deleted.
   */
  readonly ended?: { readonly record: RunRecord | undefined };
}

/** What a reader wants: which events, in which format. Two views with the same key give the same output. */
export interface StreamView<Out> {
  readonly key: string;
  readonly subgraphs: boolean;
  readonly renderers: Readonly<Record<Fact["t"], RenderersOfKind | undefined>>;
  /** False: events of checkpoints have no state, and events of tasks have no input. */
  readonly showsStates: boolean;
  /** The namespaces to show; null: all. */
  readonly only: ReadonlySet<string> | null;
  /** True if the view shows messages as received so far, so that all earlier pieces of a message are needed to render the next piece. */
  readonly accumulates: boolean;
  /** True: checkpoints are cached, because the view has a mode ({@link REMEMBERS}) in which many facts refer to the same checkpoint. */
  readonly remembers: boolean;
  readonly format: OutputFormat<Out>;
  /** Rendering stops within a slice when its output has this many characters. */
  readonly maxOutput: number;
}

/** The modes in which many facts refer to the same checkpoint. */
const REMEMBERS: Readonly<Record<StreamMode, boolean>> = {
  values: false,
  updates: false,
  messages: true,
  "messages-tuple": false,
  custom: false,
  debug: true,
  tasks: true,
  checkpoints: false,
  events: true,
  tools: false,
  logs: false,
};

/** Collects events into one piece of output. */
export interface OutputFormat<Out> {
  readonly name: string;
  /** Starts a piece of output. `isShared`: several readers get it. */
  begin(isShared: boolean): { put(id: number, event: string, data: JsonText): void; done(): Out };
}

/** The format of server-sent events. */
export const sseFormat: OutputFormat<SseOutput> = {
  name: "sse",
  begin(isShared) {
    const text = new SseBatch(isShared);
    return {
      put: (id, event, data) => text.put(event, data, id),
      done: () => text.done(),
    };
  },
};

export interface ViewOptions {
  /** The namespaces whose facts are shown; `""` is the namespace of the root graph. Absent: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** False: events of checkpoints have no state, and events of tasks have no input. */
  readonly showsStates?: boolean | undefined;
  readonly maxOutput?: number | undefined;
}

/** Creates a view of these modes. Every view also shows the events `metadata` and `error`. */
export function createView<Out>(
  modes: readonly StreamMode[],
  subgraphs: boolean,
  format: OutputFormat<Out>,
  { namespaces, showsStates = true, maxOutput = OUTPUT_CHARACTERS_PER_PASS }: ViewOptions = {},
): StreamView<Out> {
  const wanted = [...new Set(modes)].sort();
  const only = namespaces === undefined ? null : new Set([...namespaces].sort());
  const place = only === null ? "" : ` ${JSON.stringify([...only])}`;
  const states = showsStates ? "" : " without states";
  const key = `${format.name}${subgraphs ? "+" : "-"}${wanted.join()}${place}${states}`;
  return {
    key,
    subgraphs,
    showsStates,
    only,
    renderers: renderersByKind(wanted),
    accumulates: wanted.includes("messages"),
    remembers: wanted.some((mode) => REMEMBERS[mode]),
    format,
    maxOutput,
  };
}

/** The output of a slice and, if the view needs them, the messages that are being streamed at its end. */
interface Rendered<Out> {
  readonly out: Out;
  readonly partials: PartialMessages | undefined;
  readonly size: number;
  readonly stoppedAt: number | undefined;
}

/**
 * Renders a slice for a view, and updates the state of the reader (`slice.memo`). Returns a promise only if data has to be read, or if a
 * large state waits for a turn of the event loop.
 */
export function render<Out>(slice: ChunkSlice, view: StreamView<Out>): Eventually<Out> {
  const { entry, memo } = slice;
  return andThen(rendered(slice, view), ({ out, partials, size, stoppedAt }) => {
    memo.size = size;
    memo.stoppedAt = stoppedAt;
    memo.partials = partials;
    memo.at = stoppedAt === undefined ? entry.end : -1;
    return out;
  });
}

function rendered<Out>(slice: ChunkSlice, view: StreamView<Out>): Eventually<Rendered<Out>> {
  const { entry } = slice;
  if (!slice.shared) return new Rendering(slice, view).run();
  const after = Math.max(slice.after, entry.chunk.first - 1);
  entry.rendered ??= new Map();
  // The cast is safe: the key of a view includes its format, so the cached output has the type `Out`.
  const found = entry.rendered.get(view.key) as SharedOutput<Rendered<Out>> | undefined;
  if (found?.after === after) return found.output;
  const output = new Rendering(slice, view).run();
  // Does not cache the output for a reader that starts within the chunk, or that is behind the other readers: hardly any other reader needs
  // it.
  if (found === undefined ? after >= entry.chunk.first : after < found.after) return output;
  const shared: SharedOutput<Rendered<Out>> = { after, output };
  const { rendered: kept } = entry;
  kept.set(view.key, shared);
  if (output instanceof Promise) {
    output.then(
      (done) => (shared.output = done),
      // After an error, the next reader renders the chunk again. This reader gets the error from `output`.
      () => kept.get(view.key) === shared && kept.delete(view.key),
    );
  }
  return output;
}

/** Renders the facts of a slice one after the other. It pauses when data has to be read. */
class Rendering<Out> implements RenderContext {
  readonly data: RenderDataLoader;
  readonly subgraphs: boolean;
  readonly showsStates: boolean;
  readonly #slice: ChunkSlice;
  readonly #view: StreamView<Out>;
  readonly #partials: Map<number, JsonObject> | undefined;
  readonly #out: { put(id: number, event: string, data: JsonText): void; done(): Out };
  /** The index of the current fact in the chunk. */
  #index = 0;
  /** The id of the current fact's first event. */
  #id: number;
  #slot = 0;
  #size = 0;

  constructor(slice: ChunkSlice, view: StreamView<Out>) {
    const { entry, memo, data } = slice;
    this.#slice = slice;
    this.#view = view;
    this.data = data;
    this.subgraphs = view.subgraphs;
    this.showsStates = view.showsStates;
    this.#id = entry.chunk.first;
    this.#out = view.format.begin(slice.shared);
    if (view.accumulates) this.#partials = new Map(memo.at === this.#id ? memo.partials : undefined);
  }

  run(): Eventually<Rendered<Out>> {
    const { entry, after } = this.#slice;
    const { facts } = entry.chunk;
    const { renderers, only } = this.#view;
    for (; this.#index < facts.length; this.#index++) {
      const fact = facts[this.#index] as Fact;
      if (this.#slot === 0) {
        // Only the first fact of a message contains the namespace of the message, and that fact may have to be read.
        if (only !== null && isTokenOrPiece(fact) && this.data.head(fact.m) === undefined) {
          const wait = this.data.seek(fact.m);
          if (wait instanceof Promise) return wait.then(() => this.run());
        }
        const wait = this.#meet(fact);
        if (wait !== undefined) return wait.then(() => this.run());
      }
      const row = renderers[fact.t];
      if (row !== undefined && (only === null || this.#isIn(fact, only))) {
        while (this.#slot < row.length) {
          const id = this.#id + this.#slot;
          if (this.#size >= this.#view.maxOutput) return this.#done(id - 1);
          const renderer = row[this.#slot++];
          if (renderer === undefined || id <= after) continue;
          const wait = renderer.put(fact, id, this);
          if (wait instanceof Promise) return wait.then(() => this.run());
        }
      }
      this.#slot = 0;
      this.#id += eventCountOf(fact);
    }
    return this.#done();
  }

  #done(stoppedAt?: number): Rendered<Out> {
    const partials = stoppedAt === undefined ? this.#partials : undefined;
    return { out: this.#out.done(), partials, size: this.#size, stoppedAt };
  }

  /** True if the fact belongs to one of the namespaces in `only`. A fact without a namespace belongs to all of them. */
  #isIn(fact: Fact, only: ReadonlySet<string>): boolean {
    if (isTokenOrPiece(fact)) return only.has(this.data.head(fact.m)?.fact.ns ?? "");
    return !("ns" in fact) || only.has(fact.ns);
  }

  put(id: number, event: string, data: JsonText): void {
    this.#size += data.length;
    this.#out.put(id, event, data);
  }

  head(m: number): Eventually<TokenEventFrame> {
    const head = this.data.head(m);
    if (head !== undefined) return head;
    // Looks into the cache again, because another reader may have removed the message from the cache during the read.
    return andThen(this.data.seek(m), () => this.head(m));
  }

  partial(m: number): JsonObject {
    return this.#partials?.get(m) ?? {};
  }

  state(ns: string, checkpoint: string): Eventually<JsonObject | null> {
    const known = this.#live(checkpoint)?.values ?? this.data.snapshot(checkpoint)?.state;
    if (known !== undefined) return known;
    return andThen(this.data.state(ns, checkpoint), (state) => {
      if (this.#view.remembers && state !== null) this.data.remember(checkpoint, { state });
      return state;
    });
  }

  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null> {
    const known = this.#live(id)?.head ?? this.data.snapshot(id)?.head;
    if (known !== undefined) return known;
    return andThen(this.data.checkpoint(ns, id), (head) => {
      if (this.#view.remembers && head !== null) this.data.remember(id, { head });
      return head;
    });
  }

  /** The state in memory for the current fact, if the fact refers to this checkpoint; otherwise undefined. */
  #live(checkpoint: string): LiveState | undefined {
    const { entry } = this.#slice;
    const live = entry.states?.get(this.#index);
    if (live === undefined) return undefined;
    const fact = entry.chunk.facts[this.#index] as Fact;
    const own = fact.t === "checkpoint" ? fact.id : fact.t === "interrupt" ? fact.checkpoint : undefined;
    return own === checkpoint ? live : undefined;
  }

  /**
   * Caches what later facts may refer to, even if the current fact is not shown. If a promise is returned, the caller MUST call again for
   * the same fact when the promise has resolved.
   */
  #meet(fact: Fact): Promise<unknown> | undefined {
    if (fact.t === "message") {
      this.data.learn(this.#id, fact);
      this.#partials?.set(this.#id, startMessage(fact));
    } else if (fact.t === "checkpoint" && this.#view.remembers) {
      const live = this.#live(fact.id);
      if (live !== undefined) this.data.remember(fact.id, { state: live.values, head: live.head });
    } else if (this.#partials !== undefined) {
      if (isTokenOrPiece(fact)) return this.#grow(this.#partials, fact);
      if (fact.t === "complete" && fact.streamed) forget(this.#partials, fact.message["id"]);
    }
    return undefined;
  }

  #grow(partials: Map<number, JsonObject>, fact: PieceFact): Promise<unknown> | undefined {
    const { m } = fact;
    const known = partials.get(m);
    if (known !== undefined) {
      partials.set(m, extendMessage(known, fact));
      return undefined;
    }
    return this.#rebuild(m).then((message) => {
      if (partials.size >= MAX_STREAMING_MESSAGES) forgetOldest(partials);
      partials.set(m, message);
    });
  }

  /**
   * Reads all pieces of a message before the current fact. The reader needs them if it has started in the middle of the message, or if it
   * has dropped the message.
   */
  async #rebuild(m: number): Promise<JsonObject> {
    let message = startMessage((await this.head(m)).fact);
    for await (const fact of this.data.facts(m, this.#id)) {
      if (isTokenOrPiece(fact) && fact.m === m) message = extendMessage(message, fact);
    }
    return message;
  }
}

/**
 * The maximum number of messages whose streaming is tracked at the same time. Beyond it, the oldest message is dropped, and read again when
 * its next piece arrives.
 */
const MAX_STREAMING_MESSAGES = 256;

function forget(partials: Map<number, JsonObject>, id: unknown): void {
  for (const [m, message] of partials) if (message["id"] === id) partials.delete(m);
}

function forgetOldest(partials: Map<number, JsonObject>): void {
  const oldest = partials.keys().next();
  if (!oldest.done) partials.delete(oldest.value);
}

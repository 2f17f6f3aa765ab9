import { frame } from "../codec/sse.ts";
import { type Fact, width } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { StreamMode } from "../model/run.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { namesMessage, type Page, type Row, rowsOf } from "./modes.ts";
import type { MessageHead, RunSource } from "./source.ts";
import type { Entry } from "./tail.ts";

/** The events of one chunk with an id above `after`. */
export interface Segment {
  readonly entry: Entry;
  readonly after: number;
  readonly source: RunSource;
  /** Several readers follow this run: what one has rendered is kept for the others. */
  readonly shared: boolean;
}

/** What a reader wants to see, and as what. Two views with the same key render the same. */
export interface View<Out> {
  readonly key: string;
  readonly subgraphs: boolean;
  readonly rows: Readonly<Record<Fact["t"], Row | undefined>>;
  readonly format: Format<Out>;
}

/** Gathers events into one piece of output. */
export interface Format<Out> {
  readonly name: string;
  begin(): { put(id: number, event: string, data: string): void; done(): Out };
}

/** The bytes of a server-sent event stream; no bytes where the view shows nothing. */
export const sse: Format<Uint8Array> = {
  name: "sse",
  begin() {
    let text = "";
    return {
      put(id, event, data) {
        text += frame(event, data, id);
      },
      done: () => Buffer.from(text),
    };
  },
};

/** One JSON text for each event: `{"id","event","data"}`. */
export const frames: Format<readonly string[]> = {
  name: "json",
  begin() {
    const list: string[] = [];
    return {
      put(id, event, data) {
        list.push(`{"id":"${id}","event":${JSON.stringify(event)},"data":${data}}`);
      },
      done: () => list,
    };
  },
};

/** `modes` that are unknown to the table show nothing; control events are in every view. */
export function viewOf<Out>(
  modes: readonly StreamMode[],
  subgraphs: boolean,
  format: Format<Out>,
): View<Out> {
  const wanted = [...new Set(modes)].sort();
  const key = `${format.name}${subgraphs ? "+" : "-"}${wanted.join()}`;
  return { key, subgraphs, rows: rowsOf(wanted), format };
}

/** Renders a segment for a view; at once when all that its facts refer to is in memory. */
export function render<Out>(segment: Segment, view: View<Out>): Eventually<Out> {
  const { entry } = segment;
  if (!segment.shared || segment.after >= entry.chunk.first) return new Rendering(segment, view).run();
  entry.rendered ??= new Map();
  // The key names the format, so that what is found under it is of that type.
  const found = entry.rendered.get(view.key) as Eventually<Out> | undefined;
  if (found !== undefined) return found;
  const made = new Rendering(segment, view).run();
  const { rendered } = entry;
  rendered.set(view.key, made);
  if (made instanceof Promise) {
    made.then(
      (out) => rendered.set(view.key, out),
      // The next reader tries anew; this one is told by its own promise.
      () => rendered.delete(view.key),
    );
  }
  return made;
}

class Rendering<Out> implements Page {
  readonly source: RunSource;
  readonly subgraphs: boolean;
  state: JsonObject | null = null;
  readonly #segment: Segment;
  readonly #view: View<Out>;
  /** States read back from storage, by the fact's place in the chunk. */
  #states: Map<number, JsonObject | null> | undefined;
  #put: (id: number, event: string, data: string) => void = () => undefined;

  constructor(segment: Segment, view: View<Out>) {
    this.#segment = segment;
    this.#view = view;
    this.source = segment.source;
    this.subgraphs = view.subgraphs;
  }

  /** Reads what is missing first, so that the rendering itself runs through without a pause. */
  run(): Eventually<Out> {
    for (;;) {
      const missing = this.#missing();
      if (missing === undefined) return this.#render();
      // Looks again: another reader may meanwhile have displaced a message that was known.
      if (missing instanceof Promise) return missing.then(() => this.run());
    }
  }

  put(id: number, event: string, data: string): void {
    this.#put(id, event, data);
  }

  head(id: number): MessageHead {
    const head = this.source.head(id);
    if (head === undefined) throw new TypeError(`the message of event ${id} has not been read`);
    return head;
  }

  /** Finds the first thing that is not in memory and fetches it; undefined when there is none. */
  #missing(): Eventually<true> | undefined {
    const { entry, after } = this.#segment;
    const { rows, subgraphs } = this.#view;
    const { facts, first } = entry.chunk;
    let id = first;
    let known = -1;
    for (let i = 0; i < facts.length; i++) {
      const fact = facts[i] as Fact;
      if (fact.t === "message") this.source.learn(id, fact);
      const next = id + width(fact);
      const row = next > after + 1 ? rows[fact.t] : undefined;
      id = next;
      if (row === undefined) continue;
      if (namesMessage(fact)) {
        if (fact.m === known) continue;
        known = fact.m;
        if (this.source.head(known) === undefined)
          return andThen(this.source.seek(known), () => true as const);
      } else if (fact.t === "checkpoint" || fact.t === "interrupt") {
        if (entry.states?.has(i) || this.#states?.has(i)) continue;
        const ref = stateOf(row, fact, subgraphs);
        if (ref === undefined) continue;
        return andThen(this.source.state(ref.ns, ref.checkpoint), (state) => {
          (this.#states ??= new Map()).set(i, state);
          return true as const;
        });
      }
    }
    return undefined;
  }

  #render(): Out {
    const { entry, after } = this.#segment;
    const { rows, format } = this.#view;
    const { facts, first } = entry.chunk;
    const out = format.begin();
    this.#put = out.put;
    let id = first;
    for (let i = 0; i < facts.length; i++) {
      const fact = facts[i] as Fact;
      const row = rows[fact.t];
      if (row !== undefined) {
        if (fact.t === "checkpoint" || fact.t === "interrupt") {
          this.state = entry.states?.get(i)?.values ?? this.#states?.get(i) ?? null;
        }
        for (let slot = 0; slot < row.length; slot++) {
          if (id + slot > after) row[slot]?.put(fact, id + slot, this);
        }
      }
      id += width(fact);
    }
    return out.done();
  }
}

function stateOf(row: Row, fact: Fact, subgraphs: boolean) {
  for (const renderer of row) {
    const ref = renderer?.state?.(fact, subgraphs);
    if (ref !== undefined) return ref;
  }
  return undefined;
}

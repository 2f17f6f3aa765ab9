import type { JsonText } from "../codec/large-json.ts";
import { sseEventName } from "../codec/sse.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { Fact, eventModes } from "../model/run-event.ts";
import { pick, type JsonObject } from "../model/json.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { TokenEventFrame, RenderDataLoader } from "./render-data-loader.ts";

export { lazyJson as json } from "../codec/large-json.ts";

export type FactKind = Fact["t"];
export type FactOf<T extends FactKind> = Extract<Fact, { t: T }>;
type Slot<T extends FactKind> = (typeof eventModes)[T][number];

/**
 * The context that a renderer gets. It gives access to the data to which the current fact (an entry of a run's event log) refers, and takes
 * the rendered events.
 */
export interface RenderContext {
  readonly data: RenderDataLoader;
  readonly subgraphs: boolean;
  /** False: events of checkpoints have no state, and events of tasks have no input. */
  readonly showsStates: boolean;
  /** The beginning of a streamed message. `m`: the id of the fact that began the message. */
  head(m: number): Eventually<TokenEventFrame>;
  /**
   * The streamed message `m` as received so far, including the fact that is being rendered. It is available only in the mode `messages`.
   */
  partial(m: number): JsonObject;
  /** The state at a checkpoint; null if it was never stored or was deleted. */
  state(ns: string, checkpoint: string): Eventually<JsonObject | null>;
  /** A checkpoint without its state; null if it was never stored or was deleted. */
  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null>;
  /** Adds an event to the output. `data`: JSON text on one line. */
  put(id: number, event: string, data: JsonText): void;
}

/** Renders one slot of a kind of fact. A slot is an entry of the kind's list in {@link eventModes}: the stream mode of one event. */
export interface EventRenderer<T extends FactKind> {
  /**
   * Renders the event with the id `id`, or nothing. The next renderer is called when this call has returned or its promise has resolved.
   */
  put(fact: FactOf<T>, id: number, context: RenderContext): Eventually<void>;
}

/**
 * The renderers of a run's events, by kind of fact and by slot. If a mode has several slots of one kind, a list contains a renderer for
 * each, in the order of {@link eventModes}.
 */
export type ModeTable = {
  readonly [T in FactKind]: { readonly [S in Slot<T>]: EventRenderer<T> | readonly EventRenderer<T>[] };
};

/** True if facts of this namespace are shown. Facts of subgraphs are shown only if the reader has requested subgraphs. */
export const isShown = (ns: string, { subgraphs }: RenderContext): boolean => ns === "" || subgraphs;

export const eventName = (event: string, ns: string): string =>
  ns === "" ? event : sseEventName(`${event}|${ns}`);

/** The part of a state that the graph returns: the channels `output`, or the whole state if `output` is undefined. */
export function outputOf(state: JsonObject | null, output: readonly string[] | undefined): JsonObject | null {
  return state === null || output === undefined ? state : pick(state, output);
}

/** The namespace of a task. Its subgraph and its messages have this namespace. */
export const taskNs = (ns: string, name: string, id: string): string =>
  ns === "" ? `${name}:${id}` : `${ns}|${name}:${id}`;

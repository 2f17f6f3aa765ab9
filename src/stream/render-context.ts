import type { JsonText } from "../codec/json-pieces.ts";
import { sseEventName } from "../codec/sse.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { Fact, eventModes } from "../model/run-event.ts";
import { pick, type JsonObject } from "../model/json.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { MessageHead, RenderDataLoader } from "./render-data.ts";

export { lazyJson as json } from "../codec/json-pieces.ts";

export type FactKind = Fact["t"];
export type FactOf<T extends FactKind> = Extract<Fact, { t: T }>;
type Slot<T extends FactKind> = (typeof eventModes)[T][number];

/** The context of a renderer: gives access to the data to which the current fact refers, and takes the rendered events. */
export interface RenderContext {
  readonly data: RenderDataLoader;
  readonly subgraphs: boolean;
  /** The streamed message whose fact has this id. */
  head(m: number): Eventually<MessageHead>;
  /** The streamed message `m` as received so far, including the fact that is being rendered. Only for the mode `messages`. */
  partial(m: number): JsonObject;
  /** The state at a checkpoint; null if it is not stored, or not any more. */
  state(ns: string, checkpoint: string): Eventually<JsonObject | null>;
  /** A checkpoint without its state; null if it is not stored, or not any more. */
  checkpoint(ns: string, id: string): Eventually<CheckpointHead | null>;
  /** Adds an event to the output. `data`: JSON text on one line. */
  put(id: number, event: string, data: JsonText): void;
}

/**
 * Renders a kind of fact as one of its events, or as nothing. A slot is the place of an event in the list of {@link
 * eventModes}.
 */
export interface EventRenderer<T extends FactKind> {
  /** Renders the fact. The next renderer is called when this call has returned or resolved. */
  put(fact: FactOf<T>, id: number, context: RenderContext): Eventually<void>;
}

/**
 * The renderers of a mode by kind of fact and slot (see `Slot`). If several events of a kind share a slot, there is a list with one
 * renderer for each.
 */
export type ModeTable = {
  readonly [T in FactKind]: { readonly [S in Slot<T>]: EventRenderer<T> | readonly EventRenderer<T>[] };
};

/**
 * True if facts of this namespace are shown. Facts of the root graph always are; facts of subgraphs only if the reader
 * requested subgraphs.
 */
export const isShown = (ns: string, { subgraphs }: RenderContext): boolean => ns === "" || subgraphs;

export const eventName = (event: string, ns: string): string =>
  ns === "" ? event : sseEventName(`${event}|${ns}`);

/** The part of a state that its graph outputs. */
export function outputOf(state: JsonObject | null, output: readonly string[] | undefined): JsonObject | null {
  return state === null || output === undefined ? state : pick(state, output);
}

/** The namespace of a task. Its subgraph and its messages have this namespace. */
export const taskNs = (ns: string, name: string, id: string): string =>
  ns === "" ? `${name}:${id}` : `${ns}|${name}:${id}`;

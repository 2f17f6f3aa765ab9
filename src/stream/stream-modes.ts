import { textBetween } from "../codec/large-json.ts";
import { type Fact, eventModes } from "../model/run-event.ts";
import type { StreamMode } from "../model/run.ts";
import { toIso } from "../model/time.ts";
import { andThen } from "../ports/eventually.ts";
import {
  langchainCheckpointRenderers,
  langchainInterruptRenderers,
  modelEnded,
  modelStarted,
  graphReportedEvent,
  pieceStreamed,
  langchainResultRenderers,
  runStarted,
  taskStarted,
  tokenStreamed,
} from "./langchain-events.ts";
import {
  completeTuple,
  renderInputComplete,
  renderMessageMetadata,
  renderMessageComplete,
  piecePartial,
  pieceTuple,
  tokenPartial,
  tokenTuple,
} from "./message-modes.ts";
import {
  type FactOf,
  json,
  type FactKind,
  type ModeTable,
  eventName,
  outputOf,
  isShown,
  type EventRenderer,
} from "./render-context.ts";
import {
  debugModeCheckpoint,
  checkpointsModeCheckpoint,
  debugModeResult,
  tasksModeResult,
  debugModeTask,
  tasksModeTask,
} from "./checkpoint-and-task-modes.ts";

/** The end of the JSON of an `updates` event for a node whose result came from the cache, so that the node did not run. */
const CACHED = ',"__metadata__":{"cached":true}}';

/**
 * The renderers of the events of all stream modes, by the kind of a fact (an entry of a run's event log) and by slot (a mode of this kind
 * in {@link eventModes}).
 */
const table: ModeTable = {
  start: {
    metadata: {
      put({ attempt }, id, context) {
        const { run_id, thread_id } = context.data.run;
        context.put(id, "metadata", json({ run_id, attempt, thread_id }));
      },
    },
    events: runStarted,
  },
  checkpoint: {
    values: {
      put(fact, id, context) {
        if (fact.input || fact.shows === "rest" || !isShown(fact.ns, context)) return;
        const between = fact.shows === undefined ? undefined : fact.inline?.values;
        return andThen(between ?? context.state(fact.ns, fact.id), (state) => {
          if (state !== null)
            context.put(id, eventName("values", fact.ns), json(outputOf(state, fact.output)));
        });
      },
    },
    checkpoints: checkpointsModeCheckpoint,
    debug: debugModeCheckpoint,
    messages: renderInputComplete,
    events: langchainCheckpointRenderers,
  },
  task: { tasks: tasksModeTask, debug: debugModeTask, events: taskStarted },
  result: {
    updates: {
      put(fact, id, context) {
        if (!isShown(fact.ns, context) || fact.error !== undefined) return;
        // A node that waits at an interrupt has not returned an update, so no event is shown.
        if (fact.update === undefined && fact.interrupts.length > 0) return;
        context.put(
          id,
          eventName("updates", fact.ns),
          textBetween(`{${JSON.stringify(fact.name)}:`, json(fact.update), fact.cached ? CACHED : "}"),
        );
      },
    },
    tasks: tasksModeResult,
    debug: debugModeResult,
    events: langchainResultRenderers,
  },
  interrupt: {
    updates: {
      put(fact, id, context) {
        if (!isShown(fact.ns, context)) return;
        context.put(id, eventName("updates", fact.ns), json({ __interrupt__: fact.interrupts }));
      },
    },
    values: {
      put(fact, id, context) {
        if (!isShown(fact.ns, context)) return;
        const { ns, checkpoint, interrupts, output } = fact;
        return andThen(context.state(ns, checkpoint), (state) =>
          context.put(
            id,
            eventName("values", ns),
            json({ ...outputOf(state, output), __interrupt__: interrupts }),
          ),
        );
      },
    },
    events: langchainInterruptRenderers,
  },
  custom: {
    custom: {
      put(fact, id, context) {
        // Every reader of a run gets the custom events of its subgraphs, whether or not it requested subgraphs. The same holds for tokens.
        context.put(id, eventName("custom", context.subgraphs ? fact.ns : ""), fact.json);
      },
    },
  },
  event: { events: graphReportedEvent },
  tool: {
    tools: {
      put(fact, id, context) {
        if (isShown(fact.ns, context)) context.put(id, eventName("tools", fact.ns), fact.json);
      },
    },
  },
  log: {
    logs: {
      put({ ns, at, task, node, level, message, fields, stack, try: tried }, id, context) {
        if (!isShown(ns, context)) return;
        const line = { timestamp: toIso(at), task, node, level, message, fields, stack, try: tried };
        context.put(id, eventName("logs", ns), json(line));
      },
    },
  },
  message: { messages: renderMessageMetadata, events: modelStarted },
  token: { "messages-tuple": tokenTuple, messages: tokenPartial, events: tokenStreamed },
  piece: { "messages-tuple": pieceTuple, messages: piecePartial, events: pieceStreamed },
  complete: { "messages-tuple": completeTuple, messages: renderMessageComplete, events: modelEnded },
  error: {
    error: {
      put: ({ error }, id, context) =>
        context.put(id, "error", json({ error: error.error, message: error.message })),
    },
  },
};

/** The events that every reader gets, whatever modes it has requested. */
const control: ReadonlySet<string> = new Set(["metadata", "error"]);

/** The renderers for one kind of fact, in the order of its list in {@link eventModes}. Undefined: the event is not rendered. */
export type RenderersOfKind = readonly (EventRenderer<FactKind> | undefined)[];

/** The renderers for these modes, by kind of fact. A kind without renderers is undefined. */
export function renderersByKind(
  modes: readonly StreamMode[],
): Readonly<Record<FactKind, RenderersOfKind | undefined>> {
  const wanted = new Set<string>(modes);
  const rows: Partial<Record<FactKind, RenderersOfKind>> = {};
  for (const kind of Object.keys(eventModes) as FactKind[]) {
    const renderers = table[kind] as Readonly<
      Record<string, EventRenderer<FactKind> | readonly EventRenderer<FactKind>[]>
    >;
    const names: readonly string[] = eventModes[kind];
    const row = names.map((slot, place) => {
      if (!wanted.has(slot) && !control.has(slot)) return undefined;
      const found = renderers[slot];
      return Array.isArray(found)
        ? (found as readonly EventRenderer<FactKind>[])[place - names.indexOf(slot)]
        : (found as EventRenderer<FactKind> | undefined);
    });
    if (row.some((renderer) => renderer !== undefined)) rows[kind] = row;
  }
  return rows as Record<FactKind, RenderersOfKind | undefined>;
}

/** True for kinds of facts that refer to a streamed message. */
export const isTokenOrPiece = (fact: Fact): fact is FactOf<"token"> | FactOf<"piece"> =>
  fact.t === "token" || fact.t === "piece";

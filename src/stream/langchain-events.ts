import type { JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { messageOfChunk } from "./message-modes.ts";
import {
  type FactOf,
  json,
  type FactKind,
  outputOf,
  type RenderContext,
  type EventRenderer,
} from "./render-context.ts";
import { resolveTaskInput, taskMeta, findPlannedTask } from "./checkpoint-and-task-modes.ts";
import { type TokenEventFrame, messageMeta } from "./render-data-loader.ts";

/**
 * The stream mode `events`: LangChain's event objects (version 2). Graphs of LangGraph.js emit these events themselves, in runs that
 * request the mode. For other graphs, the events are derived from the facts of the run: the graph is a chain, each node is a chain within
 * it, and a streamed message is a call of a chat model within its node.
 */

/** The name of the outermost chain. Clients look for this name. */
const ROOT = "LangGraph";
const MODEL = "ChatModel";

interface LangEvent {
  readonly event: string;
  readonly name: string;
  readonly run_id: string;
  readonly tags: unknown;
  readonly metadata: JsonObject;
  readonly data: JsonObject;
  readonly parent_ids: readonly string[];
}

const put = (context: RenderContext, id: number, event: LangEvent): void =>
  context.put(id, "events", json(event));

// --- the graph ---

function ofRun(run: RunRecord, event: string, data: JsonObject): LangEvent {
  const { config } = run.kwargs;
  const { run_id, thread_id, graph_id, assistant_id } = run;
  const metadata = { ...config.metadata, run_id, thread_id, graph_id, assistant_id };
  return { event, name: ROOT, run_id, tags: config["tags"] ?? [], metadata, data, parent_ids: [] };
}

/** Makes a renderer for runs whose graph does not emit its events itself; for other runs it renders nothing. */
const derived = <T extends FactKind>(render: EventRenderer<T>["put"]): EventRenderer<T> => ({
  put: (fact, id, context) =>
    andThen(context.data.hasOwnEvents(), (hasOwn) => (hasOwn ? undefined : render(fact, id, context))),
});

/**
 * Renders nothing, for an event that only older versions of Heddle showed. The event still takes an id, because the ids of stored events
 * must not change.
 */
const nothing = { put: () => undefined };

export const runStarted = derived<"start">((_, id, context) => {
  const { run } = context.data;
  put(context, id, ofRun(run, "on_chain_start", { input: run.kwargs.input }));
});

const runEnded = derived<"checkpoint">(({ ns, id: at, input, output, shows }, id, context) => {
  if (ns !== "" || input || shows === "values") return;
  return andThen(context.checkpoint(ns, at), (head) => {
    if (head === null || head.next.length > 0) return;
    return andThen(context.state(ns, at), (found) => {
      const state = outputOf(found, output);
      if (state !== null) put(context, id, ofRun(context.data.run, "on_chain_end", { output: state }));
    });
  });
});

export const langchainCheckpointRenderers = [nothing, runEnded] as const;

/** Shows the end of a run that pauses: its state with its interrupts. */
const runPaused = derived<"interrupt">(({ ns, checkpoint, interrupts, output }, id, context) => {
  if (ns !== "") return;
  return andThen(context.state(ns, checkpoint), (state) => {
    const paused = { ...outputOf(state, output), __interrupt__: interrupts };
    put(context, id, ofRun(context.data.run, "on_chain_end", { output: paused }));
  });
});

export const langchainInterruptRenderers = [nothing, nothing, runPaused] as const;

// --- nodes ---

/** The ids of the chains around a graph with this namespace, outermost first: the run, then each task on the path to the graph. */
function parentsOf(run: RunRecord, ns: string): readonly string[] {
  const tasks = ns === "" ? [] : ns.split("|").map((part) => part.slice(part.lastIndexOf(":") + 1));
  return [run.run_id, ...tasks];
}

function ofTask(
  context: RenderContext,
  fact: FactOf<"task"> | FactOf<"result">,
  event: string,
  data: (input: unknown) => JsonObject,
): Eventually<LangEvent> {
  const { run } = context.data;
  return andThen(findPlannedTask(context, fact), (place) => {
    const sent = fact.t === "task" ? fact.input : place.planned?.input;
    return andThen(resolveTaskInput(context, fact, sent), (input) => ({
      event,
      name: fact.name,
      run_id: fact.id,
      tags: place.step === null ? [] : [`graph:step:${place.step}`],
      metadata: taskMeta(run, fact, place),
      data: data(input),
      parent_ids: parentsOf(run, fact.ns),
    }));
  });
}

export const taskStarted = derived<"task">((fact, id, context) =>
  andThen(
    ofTask(context, fact, "on_chain_start", (input) => ({ input })),
    (event) => put(context, id, event),
  ),
);

/** True when the node has returned in this run. False if it failed, waits at an interrupt, or had returned in an earlier run (`again`). */
const returned = ({ error, update, interrupts, again }: FactOf<"result">): boolean =>
  error === undefined && again === undefined && (update !== undefined || interrupts.length === 0);

const taskEnded = derived<"result">((fact, id, context) => {
  if (!returned(fact)) return;
  const { update: output = null } = fact;
  return andThen(
    ofTask(context, fact, "on_chain_end", (input) => ({ output, input })),
    (event) => put(context, id, event),
  );
});

export const langchainResultRenderers = [nothing, taskEnded, nothing] as const;

// --- messages ---

interface Call {
  readonly id: string;
  readonly name: string | null;
  readonly ns: string;
  readonly meta: JsonObject;
}

function ofModel(run: RunRecord, { id, name, ns, meta }: Call, event: string, data: JsonObject): LangEvent {
  const own = meta["langgraph_checkpoint_ns"];
  return {
    event,
    name: name ?? MODEL,
    run_id: id,
    tags: [],
    metadata: messageMeta(run, meta),
    data,
    parent_ids: parentsOf(run, typeof own === "string" ? own : ns),
  };
}

export const modelStarted = derived<"message">((fact, id, context) =>
  put(context, id, ofModel(context.data.run, fact, "on_chat_model_start", {})),
);

const streamed = (context: RenderContext, id: number, head: TokenEventFrame, chunk: JsonObject): void =>
  put(
    context,
    id,
    ofModel(context.data.run, head.fact, "on_chat_model_stream", { chunk: messageOfChunk(head, chunk) }),
  );

export const tokenStreamed = derived<"token">(({ m, text }, id, context) =>
  andThen(context.head(m), (head) => streamed(context, id, head, { content: text })),
);

export const pieceStreamed = derived<"piece">(({ m, chunk }, id, context) =>
  andThen(context.head(m), (head) => streamed(context, id, head, chunk)),
);

export const modelEnded = derived<"complete">(({ message, streamed: wasStreamed, ns, meta }, id, context) => {
  if (!wasStreamed) return;
  const { id: own, name } = message;
  const call = { id: String(own), name: typeof name === "string" ? name : null, ns, meta };
  put(context, id, ofModel(context.data.run, call, "on_chat_model_end", { output: message }));
});

// --- runs whose graph emits its events itself ---

export const graphReportedEvent: EventRenderer<"event"> = {
  put: ({ json: text }, id, context) => context.put(id, "events", text),
};

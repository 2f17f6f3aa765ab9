import { isObject, type JsonObject } from "../model/json.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import {
  type FactOf,
  json,
  eventName,
  type RenderContext,
  isShown,
  type EventRenderer,
} from "./render-context.ts";
import { EMPTY_MESSAGE_FIELDS, type TokenEventFrame, messageMeta } from "./render-data-loader.ts";

/**
 * The stream modes `messages-tuple` and `messages`. `messages-tuple` shows each new piece of a message, in events with the name `messages`.
 * `messages` shows, for each piece, the whole message as received so far.
 */

// --- messages-tuple ---

/**
 * The name of a message's event. It includes the namespace of a subgraph only if the reader requested subgraphs. The messages themselves
 * are shown in either case.
 */
function nameOf(ns: string, meta: JsonObject, subgraphs: boolean): string {
  if (ns === "" || !subgraphs) return "messages";
  const leaf = meta["langgraph_checkpoint_ns"];
  return eventName("messages", typeof leaf === "string" && leaf !== "" ? leaf : ns);
}

function putToken(
  { fact, before, after }: TokenEventFrame,
  text: string,
  id: number,
  context: RenderContext,
): void {
  const event = fact.ns === "" ? "messages" : nameOf(fact.ns, fact.meta, context.subgraphs);
  context.put(id, event, before + JSON.stringify(text) + after);
}

export const tokenTuple: EventRenderer<"token"> = {
  put({ m, text }, id, context) {
    const head = context.head(m);
    // Avoids `andThen`, which needs a closure, because tokens are the most frequent facts.
    if (head instanceof Promise) return head.then((found) => putToken(found, text, id, context));
    putToken(head, text, id, context);
  },
};

/** A piece of a message, shown with all members of a message. */
export function messageOfChunk({ fact }: TokenEventFrame, chunk: JsonObject): JsonObject {
  const own = { id: fact.id, type: "ai", example: false, name: fact.name };
  return { content: "", ...EMPTY_MESSAGE_FIELDS, ...chunk, ...own };
}

export const pieceTuple: EventRenderer<"piece"> = {
  put: ({ m, chunk }, id, context) =>
    andThen(context.head(m), (head) => {
      const { ns, meta } = head.fact;
      const pair = [messageOfChunk(head, chunk), messageMeta(context.data.run, meta)];
      context.put(id, nameOf(ns, meta, context.subgraphs), json(pair));
    }),
};

export const completeTuple: EventRenderer<"complete"> = {
  put(fact, id, context) {
    // The pieces of a streamed message have been shown already.
    if (fact.streamed) return;
    const event = nameOf(fact.ns, fact.meta, context.subgraphs);
    context.put(id, event, json([fact.message, messageMeta(context.data.run, fact.meta)]));
  },
};

// --- messages ---

export const renderMessageMetadata: EventRenderer<"message"> = {
  put(fact, id, context) {
    const metadata = messageMeta(context.data.run, fact.meta);
    context.put(id, "messages/metadata", json({ [fact.id]: { metadata } }));
  },
};

const partial = ({ m }: FactOf<"token"> | FactOf<"piece">, id: number, context: RenderContext): void =>
  context.put(id, "messages/partial", json([context.partial(m)]));

export const tokenPartial: EventRenderer<"token"> = { put: partial };
export const piecePartial: EventRenderer<"piece"> = { put: partial };

export const renderMessageComplete: EventRenderer<"complete"> = {
  put(fact, id, context) {
    // A reader that did not request subgraphs gets the message when the subgraph returns it to the root graph.
    if (!isShown(fact.ns, context) || fact.message["type"] === "remove") return;
    context.put(id, "messages/complete", json([fact.message]));
  },
};

/** Shows the messages of the run's input as complete messages. No task emits these messages, so no other event shows them. */
export const renderInputComplete: EventRenderer<"checkpoint"> = {
  put(fact, id, context) {
    if (fact.input || fact.shows !== undefined || fact.ns !== "") return;
    return andThen(beforeInput(context, fact), (before) => {
      if (before === undefined) return;
      return andThen(context.state("", fact.id), (now) => {
        const known = new Set(messagesIn(before).map((message) => message["id"]));
        const brought = messagesIn(now ?? {}).filter((message) => !known.has(message["id"]));
        if (brought.length > 0) context.put(id, "messages/complete", json(brought));
      });
    });
  },
};

/** The state before the run's input, if the checkpoint applies this input; otherwise undefined. */
function beforeInput(
  context: RenderContext,
  { id }: FactOf<"checkpoint">,
): Eventually<JsonObject | undefined> {
  const stateAt = (at: string | null): Eventually<JsonObject | undefined> =>
    at === null ? {} : andThen(context.state("", at), (state) => state ?? undefined);
  return andThen(context.checkpoint("", id), (head) => {
    // Another run made the checkpoint, from an input of its own.
    if (head === null || head.run_id !== context.data.run.run_id) return undefined;
    const { parent, source } = head;
    if (source === "input") return stateAt(parent);
    if (parent === null) return undefined;
    return andThen(context.checkpoint("", parent), (above) =>
      above?.source === "input" && above.next[0]?.name === "__start__" ? stateAt(parent) : undefined,
    );
  });
}

const TYPES: ReadonlySet<unknown> = new Set(["human", "ai", "system", "tool", "function"]);

function messagesIn(state: JsonObject): readonly JsonObject[] {
  return Object.values(state).flatMap((value) => (Array.isArray(value) ? value.filter(isMessage) : []));
}

const isMessage = (value: unknown): value is JsonObject =>
  isObject(value) &&
  TYPES.has(value["type"]) &&
  typeof value["id"] === "string" &&
  Object.hasOwn(value, "content");

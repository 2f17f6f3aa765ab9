import { isObject, type JsonObject } from "../model/json.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { type FactOf, json, named, type RenderContext, shows, type SlotRenderer } from "./render-context.ts";
import { blankMessage, type MessageHead, messageMeta } from "./fact-context.ts";

/**
 * The modes `messages-tuple` (event name `messages`: each new piece) and `messages` (each message as received so
 * far).
 */

// --- messages-tuple ---

/**
 * The event name. Tokens of subgraphs are always shown; the name has their namespace only for readers that asked for
 * subgraphs.
 */
function nameOf(ns: string, meta: JsonObject, subgraphs: boolean): string {
  if (ns === "" || !subgraphs) return "messages";
  const leaf = meta["langgraph_checkpoint_ns"];
  return named("messages", typeof leaf === "string" && leaf !== "" ? leaf : ns);
}

function putToken({ fact, before, after }: MessageHead, text: string, id: number, page: RenderContext): void {
  const event = fact.ns === "" ? "messages" : nameOf(fact.ns, fact.meta, page.subgraphs);
  page.put(id, event, before + JSON.stringify(text) + after);
}

export const tokenTuple: SlotRenderer<"token"> = {
  put({ m, text }, id, page) {
    const head = page.head(m);
    // Tokens are the most frequent fact: no closure is created for them.
    if (head instanceof Promise) return head.then((found) => putToken(found, text, id, page));
    putToken(head, text, id, page);
  },
};

/** A piece in the form of its message. */
export function pieceOf({ fact }: MessageHead, chunk: JsonObject): JsonObject {
  const own = { id: fact.id, type: "ai", example: false, name: fact.name };
  return { content: "", ...blankMessage, ...chunk, ...own };
}

export const pieceTuple: SlotRenderer<"piece"> = {
  put: ({ m, chunk }, id, page) =>
    andThen(page.head(m), (head) => {
      const { ns, meta } = head.fact;
      const pair = [pieceOf(head, chunk), messageMeta(page.source.run, meta)];
      page.put(id, nameOf(ns, meta, page.subgraphs), json(pair));
    }),
};

export const completeTuple: SlotRenderer<"complete"> = {
  put(fact, id, page) {
    // Its tokens have been shown already.
    if (fact.streamed) return;
    const event = nameOf(fact.ns, fact.meta, page.subgraphs);
    page.put(id, event, json([fact.message, messageMeta(page.source.run, fact.meta)]));
  },
};

// --- messages ---

export const messageBegun: SlotRenderer<"message"> = {
  put(fact, id, page) {
    const metadata = messageMeta(page.source.run, fact.meta);
    page.put(id, "messages/metadata", json({ [fact.id]: { metadata } }));
  },
};

const partial = ({ m }: FactOf<"token"> | FactOf<"piece">, id: number, page: RenderContext): void =>
  page.put(id, "messages/partial", json([page.partial(m)]));

export const tokenPartial: SlotRenderer<"token"> = { put: partial };
export const piecePartial: SlotRenderer<"piece"> = { put: partial };

export const messageComplete: SlotRenderer<"complete"> = {
  put(fact, id, page) {
    // A subgraph's message becomes the root's when the subgraph returns it.
    if (!shows(fact.ns, page) || fact.message["type"] === "remove") return;
    page.put(id, "messages/complete", json([fact.message]));
  },
};

/** The messages of the run's input, which no task emits. */
export const inputComplete: SlotRenderer<"checkpoint"> = {
  put(fact, id, page) {
    if (fact.input || fact.shows !== undefined || fact.ns !== "") return;
    return andThen(beforeInput(page, fact), (before) => {
      if (before === undefined) return;
      return andThen(page.state("", fact.id), (now) => {
        const known = new Set(messagesIn(before).map((message) => message["id"]));
        const brought = messagesIn(now ?? {}).filter((message) => !known.has(message["id"]));
        if (brought.length > 0) page.put(id, "messages/complete", json(brought));
      });
    });
  },
};

/** The state before the input was applied to give this checkpoint; undefined where no input gave it. */
function beforeInput(page: RenderContext, { id }: FactOf<"checkpoint">): Eventually<JsonObject | undefined> {
  const stateAt = (at: string | null): Eventually<JsonObject | undefined> =>
    at === null ? {} : andThen(page.state("", at), (state) => state ?? undefined);
  return andThen(page.checkpoint("", id), (head) => {
    // A checkpoint that the run only starts from has an earlier run's input.
    if (head === null || head.run_id !== page.source.run.run_id) return undefined;
    const { parent, source } = head;
    if (source === "input") return stateAt(parent);
    if (parent === null) return undefined;
    return andThen(page.checkpoint("", parent), (above) =>
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

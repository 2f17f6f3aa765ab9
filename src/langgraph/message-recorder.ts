import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { Fact } from "../model/run-event.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { LangGraphLibrary } from "./user-library.ts";
import { PUSH_KIND } from "../graph/superstep.ts";
import { serialise } from "./serialisation.ts";

/**
 * Members of a message chunk that are left out of streamed chunks. They are in the `message` event with which the message begins, or are
 * the same for all chunks.
 */
const OMITTED_MEMBERS: ReadonlySet<string> = new Set(["id", "type", "name", "example"]);

/** Records the messages that LangGraph streams as entries of the run's event log (`Fact`). */
export class MessageRecorder {
  readonly #library: LangGraphLibrary;
  /** Adds an entry to the run's event log, and returns the number of its first event. */
  readonly #emit: (fact: Fact) => number;
  /** Messages that are being streamed: the number of the first event of each message, by message id. */
  readonly #begun = new Map<string, number>();
  /** The ids of messages that were emitted completely. */
  readonly #whole = new Set<string>();

  constructor(library: LangGraphLibrary, emit: (fact: Fact) => number) {
    this.#library = library;
    this.#emit = emit;
  }

  /** Emits a message, or a chunk of a message, that LangGraph streams in the mode `messages`. */
  receive(ns: readonly string[], [message, metadata]: readonly [BaseMessage, JsonObject | undefined]): void {
    const site = { ns: graphNamespace(ns, metadata).join("|"), meta: metaOf(metadata) };
    const { messages } = this.#library;
    const isPiece =
      messages.isBaseMessageChunk(message) && messages.isAIMessageChunk(message as AIMessageChunk);
    if (!isPiece || message.id === undefined) {
      // LangGraph may stream a message a second time, with the update of the node that contains its graph.
      if (message.id === undefined || !this.#whole.has(message.id))
        this.#emitMessage(site, serialise(message) as JsonObject);
      return;
    }
    this.#piece(site, message.id, serialise(message) as JsonObject);
  }

  #emitMessage(site: { readonly ns: string; readonly meta: JsonObject }, message: JsonObject): void {
    if (typeof message["id"] === "string") this.#whole.add(message["id"]);
    this.#emit({ t: "complete", message, streamed: false, ...site });
  }

  #piece(site: { readonly ns: string; readonly meta: JsonObject }, id: string, piece: JsonObject): void {
    let m = this.#begun.get(id);
    if (m === undefined) {
      const name = typeof piece["name"] === "string" ? piece["name"] : null;
      m = this.#emit({ t: "message", id, name, ...site });
      this.#begun.set(id, m);
    }
    const { content } = piece;
    const more = Object.entries(piece).filter(([key, value]) => !OMITTED_MEMBERS.has(key) && !isEmpty(value));
    if (typeof content === "string" && more.every(([key]) => key === "content")) {
      this.#emit({ t: "token", m, text: content });
    } else this.#emit({ t: "piece", m, chunk: Object.fromEntries(more) });
  }

  /**
   * Yields a fact for each complete message in a node's update that was streamed or is new. LangGraph below 1.7 does not stream messages
   * that a node returns in a command.
   * @param before the state before the update
   */
  *completed(ns: string, update: unknown, before: JsonObject, meta: () => JsonObject): Generator<Fact> {
    if (Array.isArray(update)) {
      for (const part of update as readonly unknown[]) yield* this.completed(ns, part, before, meta);
      return;
    }
    let known: ReadonlySet<string> | undefined;
    const wasThere = (id: string) => (known ??= new Set(messagesIn(before).map((each) => each.id))).has(id);
    for (const message of messagesIn(update)) {
      const { id } = message;
      const streamed = this.#begun.delete(id);
      const isNew = !this.#whole.has(id) && !wasThere(id);
      this.#whole.add(id);
      if (streamed || isNew) yield { t: "complete", message, streamed, ns, meta: meta() };
    }
  }
}

type Message = JsonObject & { readonly id: string };

/** The messages among the members of a state or an update, and in the lists among these members. */
function messagesIn(state: unknown): readonly Message[] {
  if (!isObject(state)) return [];
  return Object.values(state).flatMap((value) => {
    const list = Array.isArray(value) ? (value as readonly unknown[]) : [value];
    return list.filter((item) => isMessage(item));
  });
}

/**
 * The namespace of the graph that a message comes from. Depending on its version, LangGraph streams a message under the namespace of its
 * graph, or under that of its task, which is then also in the metadata. A task's namespace ends with a segment for the task, and a segment
 * for each task of the functional API that called it; these segments are removed.
 */
function graphNamespace(ns: readonly string[], metadata: JsonObject | undefined): readonly string[] {
  const { langgraph_checkpoint_ns, checkpoint_ns, langgraph_path } = metadata ?? {};
  if (ns.join("|") !== (langgraph_checkpoint_ns ?? checkpoint_ns)) return ns;
  let tasks = 1;
  for (let path = langgraph_path; isCallPath(path); path = path[1]) tasks++;
  return ns.slice(0, Math.max(0, ns.length - tasks));
}

/** Whether a task's path says that another task has called it. The second element is then the path of the calling task. */
const isCallPath = (path: unknown): path is readonly unknown[] =>
  Array.isArray(path) && path[0] === PUSH_KIND && path.at(-1) === true;

/** The metadata of a message in the form in which the run's event log stores it. */
function metaOf(metadata: JsonObject | undefined): JsonObject {
  const { tags, ...rest } = metadata ?? {};
  return serialise({ ...rest, tags: tags ?? [] }) as JsonObject;
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

const TYPES: ReadonlySet<unknown> = new Set(["human", "ai", "system", "tool", "function"]);

const isMessage = (value: unknown): value is Message =>
  isObject(value) &&
  TYPES.has(value["type"]) &&
  typeof value["id"] === "string" &&
  Object.hasOwn(value, "content");

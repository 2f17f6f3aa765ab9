import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { Fact } from "../model/run-event.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Library } from "./user-library.ts";
import { serialise } from "./serialisation.ts";

/** Members of a message chunk that are not repeated: its fact has them, or every chunk has them. */
const OWN: ReadonlySet<string> = new Set(["id", "type", "name", "example"]);

/** Converts the messages that a run's nodes stream to facts. */
export class TokenStream {
  readonly #library: Library;
  /** Adds a fact; returns the id of its first event. */
  readonly #emit: (fact: Fact) => number;
  /** Messages that are being streamed: the id of the first event of each, by message id. */
  readonly #begun = new Map<string, number>();
  /** Ids of messages that were emitted whole. */
  readonly #whole = new Set<string>();
  readonly #wanted: boolean;

  constructor(library: Library, emit: (fact: Fact) => number, wanted: boolean) {
    this.#library = library;
    this.#emit = emit;
    this.#wanted = wanted;
  }

  /** Records a message, or a chunk of one, that LangGraph streams in the mode `messages`. */
  receive(ns: readonly string[], [message, metadata]: readonly [BaseMessage, JsonObject | undefined]): void {
    const site = { ns: ns.slice(0, -1).join("|"), meta: metaOf(metadata) };
    const { messages } = this.#library;
    const isPiece =
      messages.isBaseMessageChunk(message) && messages.isAIMessageChunk(message as AIMessageChunk);
    if (!isPiece || message.id === undefined)
      return this.#emitMessage(site, serialise(message) as JsonObject);
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
    const more = Object.entries(piece).filter(([key, value]) => !OWN.has(key) && !isEmpty(value));
    if (typeof content === "string" && more.every(([key]) => key === "content")) {
      this.#emit({ t: "token", m, text: content });
    } else this.#emit({ t: "piece", m, chunk: Object.fromEntries(more) });
  }

  /** Facts for the messages that are complete when a node has returned: those in its update. */
  *completed(ns: string, update: unknown, meta: () => JsonObject): Generator<Fact> {
    if (!isObject(update)) return;
    for (const value of Object.values(update)) {
      for (const message of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
        if (!isMessage(message)) continue;
        const id = message["id"];
        if (this.#begun.delete(id)) yield { t: "complete", message, streamed: true, ns, meta: meta() };
        else if (!this.#wanted && !this.#whole.has(id)) {
          this.#whole.add(id);
          yield { t: "complete", message, streamed: false, ns, meta: meta() };
        }
      }
    }
  }
}

/** Metadata of a message for its fact. */
function metaOf(metadata: JsonObject | undefined): JsonObject {
  const { tags, name: _, ...rest } = metadata ?? {};
  return serialise({ ...rest, tags: tags ?? [] }) as JsonObject;
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

const TYPES: ReadonlySet<unknown> = new Set(["human", "ai", "system", "tool", "function"]);

const isMessage = (value: unknown): value is JsonObject & { readonly id: string } =>
  isObject(value) &&
  TYPES.has(value["type"]) &&
  typeof value["id"] === "string" &&
  Object.hasOwn(value, "content");

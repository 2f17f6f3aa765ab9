import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { Fact } from "../model/run-event.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Library } from "./user-library.ts";
import { show } from "./serialisation.ts";

/** Members of a streamed message that its fact has, or that all pieces have. */
const OWN: ReadonlySet<string> = new Set(["id", "type", "name", "example"]);

/** The messages that a run's nodes stream, as facts. */
export class Tokens {
  readonly #library: Library;
  /** Adds a fact; returns the id of its first event. */
  readonly #emit: (fact: Fact) => number;
  /** Streamed messages by their id: the events that name them. */
  readonly #begun = new Map<string, number>();
  /** Messages that were told of whole. */
  readonly #whole = new Set<string>();
  readonly #wanted: boolean;

  constructor(library: Library, emit: (fact: Fact) => number, wanted: boolean) {
    this.#library = library;
    this.#emit = emit;
    this.#wanted = wanted;
  }

  /** A message, or a piece of one, as the mode `messages` tells of it. */
  take(ns: readonly string[], [message, metadata]: readonly [BaseMessage, JsonObject | undefined]): void {
    const site = { ns: ns.slice(0, -1).join("|"), meta: metaOf(metadata) };
    const { messages } = this.#library;
    const isPiece =
      messages.isBaseMessageChunk(message) && messages.isAIMessageChunk(message as AIMessageChunk);
    if (!isPiece || message.id === undefined) return this.#tell(site, show(message) as JsonObject);
    this.#piece(site, message.id, show(message) as JsonObject);
  }

  #tell(site: { readonly ns: string; readonly meta: JsonObject }, message: JsonObject): void {
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

  /** A node has returned: the messages in its update that are complete now. */
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

/** What the fact says beside what is said of the run itself. */
function metaOf(metadata: JsonObject | undefined): JsonObject {
  const { tags, name: _, ...rest } = metadata ?? {};
  return show({ ...rest, tags: tags ?? [] }) as JsonObject;
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

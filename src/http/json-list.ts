import { isSmallJson, jsonPieces, memorySizeOf } from "../codec/json-pieces.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream, Headers } from "../ports/transport.ts";
import { JSON_HEADERS } from "../schemas/error-responses.ts";
import type { RouteCall } from "./request-context.ts";
import { ListMemoryLimiter } from "./list-memory.ts";

/** Bytes of JSON collected before a list is written. A shorter list is sent at once, with its length. */
const PAGE = 64 * 1024;
/** Bytes given to a connection at a time. */
const PIECE = 256 * 1024;

interface Shape {
  readonly headers?: Headers;
  /** Text before and after the items. */
  readonly open?: string;
  readonly close?: string;
  /** The response stream, when it has started already. */
  readonly stream?: ByteStream | undefined;
}

export type SendList = (
  call: RouteCall,
  items: AsyncIterable<unknown> | Iterable<unknown>,
  shape?: Shape,
) => Promise<void>;

/** Responds with one value: at once, or in pieces if it is large. */
export type SendJson = (
  call: RouteCall,
  value: unknown,
  shape?: Pick<Shape, "headers" | "stream">,
) => Promise<void> | void;

export const jsonSender =
  (sendList: SendList): SendJson =>
  (call, value, shape) => {
    if (shape?.stream === undefined && isSmallJson(value)) return call.json(value, shape?.headers);
    return sendList(call, [value], { ...shape, open: "", close: "" });
  };

/**
 * Responds with a list, item by item, as fast as the client takes it: memory holds one page of text and one item, however long the list is.
 * An error before the first page is sent becomes an ordinary error response; after that the connection is cut, so that no client takes a
 * partial list for a complete one.
 */
export function listSender({
  budget,
  scheduler,
  logger,
}: {
  readonly budget: TimeBudget;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}): SendList {
  const memory = new ListMemoryLimiter(scheduler);

  return async (call, items, { headers = JSON_HEADERS, open = "[", close = "]", stream } = {}) => {
    const share = budget.share(call.tenant);
    const iterator = iteratorOf(items);
    const place = memory.track(call.tenant);
    let writer = stream && new Writer(call, headers, place.onCut, stream);
    let text = open;
    let isFirst = true;
    try {
      for (;;) {
        const waiting = place.beforeRead();
        if (waiting !== undefined) await waiting;
        const taken = iterator.next();
        const step = taken instanceof Promise ? await taken : taken;
        if (step.done === true || call.reply.aborted || writer?.isOver === true) {
          place.afterRead();
          break;
        }
        const { value } = step;
        if (!isFirst) text += ",";
        isFirst = false;
        place.afterRead(text.length + memorySizeOf(value));
        for (const piece of jsonPieces(value)) {
          text += piece;
          if (share.isSpent(piece.length)) await share.next();
          if (text.length < PAGE) continue;
          if (call.isHead) return call.send(200, headers);
          writer ??= new Writer(call, headers, place.onCut);
          const page = text;
          text = "";
          if (!(await writer.write(page, place.progress))) return;
        }
        place.setBytes(text.length);
      }
      if (writer === undefined) {
        if (!call.reply.aborted) call.send(200, headers, text + close);
      } else if (!call.reply.aborted) {
        await writer.write(text + close, place.progress);
        writer.end();
      }
    } catch (cause) {
      if (writer === undefined) throw cause;
      writer.cut();
      logger.error("a list response was cut off by an error", {
        path: call.request.path,
        request_id: call.id,
        error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      });
    } finally {
      place.close();
      await iterator.return?.();
    }
  };
}

function iteratorOf(items: AsyncIterable<unknown> | Iterable<unknown>) {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Writes to a connection with backpressure. */
class Writer {
  isOver = false;
  readonly #call: RouteCall;
  readonly #headers: Headers;
  #stream: ByteStream | undefined;
  #resume: (() => void) | undefined;

  constructor(call: RouteCall, headers: Headers, cutBy: (cut: () => void) => void, stream?: ByteStream) {
    this.#call = call;
    this.#headers = headers;
    if (stream !== undefined) this.#take(stream);
    cutBy(() => this.cut());
    call.reply.onAbort(() => this.#over());
  }

  /** Resolves when the client has taken nearly all of it; false when the client is gone. */
  async write(text: string, progress: () => void): Promise<boolean> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += PIECE) {
      if (this.isOver || this.#call.reply.aborted) return false;
      if (!this.#put(bytes.subarray(at, at + PIECE))) await this.#drained();
      progress();
    }
    return !this.isOver;
  }

  #put(piece: Uint8Array): boolean {
    if (this.#stream !== undefined) return this.#stream.write(piece);
    const stream = this.#call.open(this.#headers, piece);
    this.#take(stream);
    return stream.write("");
  }

  #take(stream: ByteStream): void {
    this.#stream = stream;
    stream.onDrain(() => this.#go());
  }

  #drained(): Promise<void> {
    if (this.isOver) return Promise.resolve();
    return new Promise((resolve) => (this.#resume = resolve));
  }

  #go(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  end(): void {
    if (!this.isOver) this.#stream?.end();
    this.isOver = true;
  }

  /** Closes the connection, so that the client sees that the list is incomplete. */
  cut(): void {
    if (!this.isOver) this.#stream?.close();
    this.#over();
  }

  #over(): void {
    this.isOver = true;
    this.#go();
  }
}

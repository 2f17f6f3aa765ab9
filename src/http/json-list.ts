import { isSmall, jsonPieces, sizeOf } from "../codec/json-pieces.ts";
import type { Budget } from "../ports/time-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ByteStream, Headers } from "../ports/transport.ts";
import { JSON_HEADERS } from "../schemas/error-responses.ts";
import type { Call } from "./request-context.ts";
import { ListRoom } from "./list-memory.ts";

/** Bytes of JSON that are gathered before a list is written: one that is shorter is sent as a whole, with its length. */
const PAGE = 64 * 1024;
/** Bytes that are handed to a connection at a time. */
const PIECE = 256 * 1024;

interface Shape {
  readonly headers?: Headers;
  /** What stands around the items. */
  readonly open?: string;
  readonly close?: string;
  /** The answer where it has begun already. */
  readonly stream?: ByteStream | undefined;
}

export type SendList = (
  call: Call,
  items: AsyncIterable<unknown> | Iterable<unknown>,
  shape?: Shape,
) => Promise<void>;

/** Answers with one value: at once, or, where it is large, as lists are written. */
export type SendJson = (
  call: Call,
  value: unknown,
  shape?: Pick<Shape, "headers" | "stream">,
) => Promise<void> | void;

export const jsonSender =
  (sendList: SendList): SendJson =>
  (call, value, shape) => {
    if (shape?.stream === undefined && isSmall(value)) return call.json(value, shape?.headers);
    return sendList(call, [value], { ...shape, open: "", close: "" });
  };

/**
 * Writes lists item by item, as the client takes them: no more than a page of text and one item are in memory, however long the list is. An
 * error before the first page is out is answered as any other; after that the connection is cut, so that no client takes half a list
 * for a whole one.
 */
export function listSender({
  budget,
  scheduler,
  logger,
}: {
  readonly budget: Budget;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}): SendList {
  const room = new ListRoom(scheduler);

  return async (call, items, { headers = JSON_HEADERS, open = "[", close = "]", stream } = {}) => {
    const share = budget.share(call.tenant);
    const iterator = iteratorOf(items);
    const place = room.place(call.tenant);
    let writer = stream && new Writer(call, headers, place.cutBy, stream);
    let text = open;
    let isFirst = true;
    try {
      for (;;) {
        const waiting = place.enter();
        if (waiting !== undefined) await waiting;
        const taken = iterator.next();
        const step = taken instanceof Promise ? await taken : taken;
        if (step.done === true || call.reply.aborted || writer?.isOver === true) {
          place.leave();
          break;
        }
        const { value } = step;
        if (!isFirst) text += ",";
        isFirst = false;
        place.leave(text.length + sizeOf(value));
        for (const piece of jsonPieces(value)) {
          text += piece;
          if (share.isSpent(piece.length)) await share.next();
          if (text.length < PAGE) continue;
          if (call.isHead) return call.send(200, headers);
          writer ??= new Writer(call, headers, place.cutBy);
          const page = text;
          text = "";
          if (!(await writer.write(page, place.progress))) return;
        }
        place.hold(text.length);
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
      logger.error("a list was broken off", {
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

/** Writes to a connection no faster than it takes. */
class Writer {
  isOver = false;
  readonly #call: Call;
  readonly #headers: Headers;
  #stream: ByteStream | undefined;
  #resume: (() => void) | undefined;

  constructor(call: Call, headers: Headers, cutBy: (cut: () => void) => void, stream?: ByteStream) {
    this.#call = call;
    this.#headers = headers;
    if (stream !== undefined) this.#take(stream);
    cutBy(() => this.cut());
    call.reply.onAbort(() => this.#over());
  }

  /** Resolves when the client has taken about all of it; false: it is gone. */
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

  /** The client is to see that this is not the whole list. */
  cut(): void {
    if (!this.isOver) this.#stream?.close();
    this.#over();
  }

  #over(): void {
    this.isOver = true;
    this.#go();
  }
}

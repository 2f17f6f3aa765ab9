import { isSmallJson, jsonPieces } from "../codec/large-json.ts";
import { BoundedSet } from "../model/bounded-set.ts";
import { memorySizeOf } from "../model/memory-size.ts";
import type { ResponseMemoryBudget, ResponseMemoryShare } from "../stream/response-memory-budget.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { BudgetShare, TimeBudget } from "../ports/time-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { ByteStream, Headers } from "../ports/transport.ts";
import { JSON_HEADERS } from "../schemas/error-to-response.ts";
import type { RouteCall } from "./route-call.ts";

/**
 * The number of characters of JSON that are collected before they are written. A response with fewer characters in total is sent in one
 * write, with `content-length`.
 */
const PAGE_CHARACTERS = 64 * 1024;
/** Bytes. After an item larger than this, a list reads each further item only when there is memory for it. */
const LARGE_ITEM_BYTES = 256 * 1024;
/**
 * The largest number of bytes passed to a connection in one write. The transport copies what a slow client has not read, so the limit is
 * small.
 */
const MAX_WRITE_BYTES = 64 * 1024;

interface Shape {
  readonly headers?: Headers;
  /** Text before (`open`) and after (`close`) the items; `[` and `]` by default. */
  readonly open?: string;
  readonly close?: string;
  /** The response stream, if the response was already started. */
  readonly stream?: ByteStream | undefined;
}

export type SendList = (
  call: RouteCall,
  items: AsyncIterable<unknown> | Iterable<unknown>,
  shape?: Shape,
) => Promise<void>;

/** Responds with one JSON value. A large value is written as fast as the client reads it. */
export type SendJson = (
  call: RouteCall,
  value: unknown,
  shape?: Pick<Shape, "headers" | "stream">,
) => Promise<void> | void;

/**
 * Responds with a value that `read` takes from storage: an object, null, or JSON text. If there is no memory now for a large object that
 * was read, the object is dropped, and read again when there is memory. So `read` may be called twice.
 */
export type SendStored = (
  call: RouteCall,
  read: () => Eventually<object | string | null>,
) => Promise<void> | void;

interface Deps {
  readonly budget: TimeBudget;
  readonly memory: ResponseMemoryBudget;
  readonly logger: Logger;
}

export const createJsonSender =
  (sendList: SendList): SendJson =>
  (call, value, shape) => {
    if (shape?.stream === undefined && isSmallJson(value)) return call.json(value, shape?.headers);
    return sendList(call, [value], { open: "", close: "", ...shape });
  };

export function createStoredSender({ budget, memory, logger }: Deps): SendStored {
  const known = new BoundedSet<string>(MAX_LARGE_PATHS);
  const isLarge = (call: RouteCall) => known.size > 0 && known.has(pathOf(call));

  /**
   * Reads the value. If the value is large, remembers the request's path at once, so that waiting requests for this path know it before
   * they read.
   */
  function readFirst(call: RouteCall, read: () => Eventually<object | string | null>) {
    return andThen(read(), (value) => {
      if (typeof value !== "string" && !isSmallJson(value)) known.add(pathOf(call));
      return value;
    });
  }

  /** Sends a small value or JSON text. Returns false without sending if the value is large, or undefined (not read). */
  function sendSmall(call: RouteCall, value: object | string | null | undefined): boolean {
    if (typeof value === "string") call.send(200, JSON_HEADERS, value);
    else if (value !== undefined && isSmallJson(value)) call.json(value);
    else return false;
    return true;
  }

  async function sendLarge(
    call: RouteCall,
    read: () => Eventually<object | string | null>,
    first: object | null | undefined,
  ): Promise<void> {
    const { budgetOwner } = call;
    let value: object | string | null | undefined = first;
    const usage = memory.share(budgetOwner);
    try {
      const waiting = usage.beforeRead();
      if (waiting !== undefined) {
        value = undefined;
        await waiting;
      }
      if (call.reply.aborted) return;
      if (value === undefined) {
        await budget.share(budgetOwner).next();
        value = await read();
      }
      if (isSmallJson(value)) known.delete(pathOf(call));
      usage.afterRead(memorySizeOf(value));
      const out = new JsonOutput(call, JSON_HEADERS, budget, usage);
      try {
        if (typeof value === "string") out.text(value);
        else if (!(await out.value(value))) return;
        await out.end("");
      } catch (cause) {
        out.fail(cause, logger);
      }
    } finally {
      usage.close();
    }
  }

  return (call, read) => {
    // Reads the value when it is this request's turn. If another request for the same path has shown by then that the value is large,
    // nothing is read here (undefined); `sendLarge` then reads the value when there is memory for it.
    const value = memory.read(call.budgetOwner, () =>
      call.reply.aborted || isLarge(call) ? undefined : readFirst(call, read),
    );
    const send = (first: object | string | null | undefined): Promise<void> | void => {
      if (sendSmall(call, first) || call.reply.aborted) return;
      return sendLarge(call, read, first as object | null | undefined);
    };
    return value instanceof Promise ? value.then(send) : send(value);
  };
}

const pathOf = ({ budgetOwner, request }: RouteCall): string =>
  `${budgetOwner} ${request.path}?${request.query}`;

/** The most paths that are remembered because the value read for them last was large. */
const MAX_LARGE_PATHS = 256;

/**
 * Responds with a list, item by item, as fast as the client reads. Memory holds about {@link PAGE_CHARACTERS} characters of text and one
 * item, however long the list is. An error before the first write becomes an ordinary error response. A later error cuts the connection, so
 * that clients do not mistake a partial list for a complete list.
 */
export function createListSender({ budget, memory, logger }: Deps): SendList {
  const known = new BoundedSet<string>(MAX_LARGE_PATHS);

  return async (call, items, { headers = JSON_HEADERS, open = "[", close = "]", stream } = {}) => {
    const { budgetOwner } = call;
    const path = pathOf(call);
    const iterator = iteratorOf(items);
    const usage = memory.share(budgetOwner);
    const out = new JsonOutput(call, headers, budget, usage, stream, open);
    let isFirst = true;
    // True if each further item must wait until there is memory for it, because a large item was read. While false, items wait only for
    // their turn to be read, so that small lists are not delayed by large lists.
    let waits = false;
    let hasLarge = false;
    const nextItem = async () => {
      const step = await iterator.next();
      if (step.done !== true && memorySizeOf(step.value) > LARGE_ITEM_BYTES) {
        waits = hasLarge = true;
        // The path is remembered at once, so that waiting requests for this path know before they read that the items are large.
        known.add(path);
      }
      return step;
    };
    try {
      for (;;) {
        let step = waits
          ? undefined
          : await memory.read(budgetOwner, () => (known.has(path) || out.isOver ? undefined : nextItem()));
        if (step === undefined) {
          if (out.isOver) break;
          const waiting = usage.beforeRead();
          if (waiting !== undefined) await waiting;
          // The client may have disconnected while the request waited; reading would then be useless.
          if (out.isOver) break;
          step = await nextItem();
          waits = true;
        }
        if (step.done === true || out.isOver) {
          usage.afterRead();
          break;
        }
        const { value } = step;
        usage.afterRead();
        usage.setBytes(out.buffered + memorySizeOf(value));
        if (!(await out.value(value, isFirst ? "" : ","))) return;
        isFirst = false;
        usage.setBytes(out.buffered);
      }
      if (!hasLarge) known.delete(path);
      await out.end(close);
    } catch (cause) {
      out.fail(cause, logger);
    } finally {
      usage.close();
      await iterator.return?.();
    }
  };
}

/**
 * Collects and sends the JSON text of a response. A text shorter than {@link PAGE_CHARACTERS} is sent in one write with `content-length`,
 * unless the response was already started. A longer text is sent in chunks of about that size, as fast as the client reads.
 */
class JsonOutput {
  readonly #call: RouteCall;
  readonly #headers: Headers;
  readonly #share: BudgetShare;
  readonly #usage: ResponseMemoryShare;
  #text: string;
  #writer: Writer | undefined;

  constructor(
    call: RouteCall,
    headers: Headers,
    budget: TimeBudget,
    usage: ResponseMemoryShare,
    stream?: ByteStream,
    open = "",
  ) {
    this.#call = call;
    this.#headers = headers;
    this.#share = budget.share(call.budgetOwner);
    this.#usage = usage;
    this.#text = open;
    this.#writer = stream && new Writer(call, headers, usage.onCut, stream);
  }

  /** True if the client has disconnected, or the response was cut off or ended. */
  get isOver(): boolean {
    return this.#call.reply.aborted || this.#writer?.isOver === true;
  }

  /** The number of characters that wait to be sent. */
  get buffered(): number {
    return this.#text.length;
  }

  text(json: string): void {
    this.#text += json;
  }

  /**
   * Adds a value after `separator`. Resolves with false if nothing more needs to be sent: for a HEAD request, or if the client has
   * disconnected.
   */
  async value(value: unknown, separator = ""): Promise<boolean> {
    this.#text += separator;
    for (const piece of jsonPieces(value)) {
      this.#text += piece;
      if (this.#share.isSpent(piece.length)) await this.#share.next();
      if (this.#text.length < PAGE_CHARACTERS) continue;
      if (this.#call.isHead) {
        this.#call.send(200, this.#headers);
        return false;
      }
      this.#writer ??= new Writer(this.#call, this.#headers, this.#usage.onCut);
      const page = this.#text;
      this.#text = "";
      if (!(await this.#writer.write(page, this.#usage.progress))) return false;
    }
    return true;
  }

  async end(close: string): Promise<void> {
    if (this.#call.reply.aborted) return;
    if (this.#writer === undefined) return this.#call.send(200, this.#headers, this.#text + close);
    await this.#writer.write(this.#text + close, this.#usage.progress);
    this.#writer.end();
  }

  /** Handles an error: throws it again if no response was started, else cuts the connection. */
  fail(cause: unknown, logger: Logger): void {
    if (this.#writer === undefined) throw cause;
    this.#writer.cut();
    logger.error("a response was cut off by an error", {
      path: this.#call.request.path,
      request_id: this.#call.id,
      error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    });
  }
}

function iteratorOf(items: AsyncIterable<unknown> | Iterable<unknown>) {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Writes to a connection and waits while the client reads too slowly (backpressure). */
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

  /**
   * Writes text as fast as the client reads it, and calls `progress` after each write. Resolves with false if the client has disconnected.
   */
  async write(text: string, progress: () => void): Promise<boolean> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += MAX_WRITE_BYTES) {
      if (this.isOver || this.#call.reply.aborted) return false;
      if (!this.#put(bytes.subarray(at, at + MAX_WRITE_BYTES))) await this.#drained();
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

  /** Closes the connection without a proper end, so that the client sees that the response is incomplete. */
  cut(): void {
    if (!this.isOver) this.#stream?.close();
    this.#over();
  }

  #over(): void {
    this.isOver = true;
    this.#go();
  }
}

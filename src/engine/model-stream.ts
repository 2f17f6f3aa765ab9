import { readAiSdk } from "./model-chunks/ai-sdk.ts";
import { readLangChain } from "./model-chunks/langchain.ts";
import { readOpenAi } from "./model-chunks/openai.ts";
import type { ModelChunk, ModelChunkReader, MessageDraft } from "./model-chunk-types.ts";

const readers: readonly ModelChunkReader[] = [readOpenAi, readAiSdk, readLangChain];

function writeChunk(chunk: unknown, message: MessageDraft, nth: number): void {
  if (typeof chunk === "string") return message.write(chunk);
  if (typeof chunk === "object" && chunk !== null) {
    for (const read of readers) if (read(chunk as ModelChunk, message)) return;
  }
  throw new TypeError(
    `ctx.message.from cannot read chunk ${nth} of its source, ${shapeOf(chunk)}; it reads strings, chunks of the ` +
      "OpenAI API (choices), parts of the AI SDK (fullStream) and LangChain's AIMessageChunks",
  );
}

function shapeOf(chunk: unknown): string {
  if (chunk === null) return "null";
  if (typeof chunk !== "object") return `a ${typeof chunk}`;
  if (Array.isArray(chunk)) return "an array";
  const { type } = chunk as ModelChunk;
  const named = typeof type === "string" ? ` of the type ${JSON.stringify(type.slice(0, 64))}` : "";
  return `an object${named} with the fields ${Object.keys(chunk).slice(0, 8).join(", ") || "(none)"}`;
}

function iteratorOf(source: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  const iterable = (source ?? {}) as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
  const later = iterable[Symbol.asyncIterator];
  if (typeof later === "function") return later.call(iterable as AsyncIterable<unknown>);
  const now = iterable[Symbol.iterator];
  if (typeof now === "function") return now.call(iterable as Iterable<unknown>);
  throw new TypeError(
    "ctx.message.from takes something to iterate over: a stream, or what `for await` would take",
  );
}

/**
 * Writes all chunks of `source` to the message. When `signal` aborts, the promise rejects and the source's iterator is
 * closed, without waiting for the source, which may never answer.
 */
export async function writeModelStream(
  source: unknown,
  message: MessageDraft,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const iterator = iteratorOf(source);
  let stop: ((reason: unknown) => void) | undefined;
  const onAbort = () => stop?.(signal.reason);
  signal.addEventListener("abort", onAbort);
  const next = () =>
    new Promise<IteratorResult<unknown>>((resolve, reject) => {
      stop = reject;
      Promise.resolve(iterator.next()).then(resolve, reject);
    });
  let done = false;
  try {
    for (let nth = 1; ; nth++) {
      const result = await next();
      // The signal may have aborted between two chunks.
      signal.throwIfAborted();
      if (result.done === true) {
        done = true;
        return;
      }
      writeChunk(result.value, message, nth);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!done) release(iterator);
  }
}

/** Closes the iterator, and does not wait until it is closed: the `return` of a generator that hangs never resolves. */
function release(iterator: AsyncIterator<unknown> | Iterator<unknown>): void {
  try {
    Promise.resolve(iterator.return?.()).catch(() => undefined);
  } catch {
    // Ignores errors of the source while it closes.
  }
}

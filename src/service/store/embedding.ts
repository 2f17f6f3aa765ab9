import { ServiceError } from "../../model/errors.ts";
import type { Scheduler } from "../../ports/scheduler.ts";

/** The configuration of semantic search. */
export interface StoreIndex {
  /** Returns a vector of `dims` numbers for each text, in order. */
  readonly embed: (texts: string[]) => unknown;
  readonly dims: number;
  /** Paths, within an item's value, of the texts to embed. A put may name its own paths instead. */
  readonly fields: readonly string[];
}

/** Milliseconds that one call of the embedder may take. */
const EMBEDDING_TIMEOUT_MS = 60_000;

/**
 * Embeds texts as vectors of length 1.
 * @throws ServiceError `store.embedding` when the embedder fails, takes too long, or returns anything but one vector of `dims` numbers for
 * each text
 */
export async function embedTexts(
  { embed: call, dims }: StoreIndex,
  texts: readonly string[],
  scheduler: Scheduler,
): Promise<readonly Float32Array[]> {
  if (texts.length === 0) return [];
  let given: unknown;
  try {
    given = await inTime(() => call([...texts]), scheduler);
  } catch (cause) {
    throw failed(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (!Array.isArray(given) || given.length !== texts.length) {
    throw failed(`it has to give ${texts.length} vectors, one for each text`);
  }
  return given.map((vector) => unit(vector, dims));
}

function inTime(call: () => unknown, scheduler: Scheduler): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const cancel = scheduler.after(EMBEDDING_TIMEOUT_MS, () =>
      reject(new Error(`it gave no answer in ${EMBEDDING_TIMEOUT_MS / 1000} s`)),
    );
    // Calls the embedder inside a promise, so that an error that it throws synchronously becomes a rejection too.
    new Promise((given) => given(call())).then(resolve, reject).finally(cancel);
  });
}

function unit(given: unknown, dims: number): Float32Array {
  const vector = Float32Array.from(isNumbers(given) ? given : []);
  if (vector.length !== dims) throw failed(`it has to give vectors of ${dims} numbers (store.index.dims)`);
  let square = 0;
  for (const x of vector) square += x * x;
  if (!Number.isFinite(square)) throw failed("it gave a number that is not finite");
  // A zero vector cannot be normalised and stays as it is. It is similar to no other vector.
  if (square > 0) for (let i = 0; i < dims; i++) vector[i] = (vector[i] as number) / Math.sqrt(square);
  return vector;
}

function isNumbers(given: unknown): given is ArrayLike<number> {
  if (given instanceof Float32Array || given instanceof Float64Array) return true;
  return Array.isArray(given) && given.every((x) => typeof x === "number");
}

/**
 * The cosine of two vectors of length 1; undefined when they have different numbers of dimensions, because different embedders made them.
 */
export function cosine(a: Float32Array, b: Float32Array): number | undefined {
  if (a.length !== b.length) return undefined;
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

function failed(why: string, cause?: unknown): ServiceError {
  return new ServiceError("store.embedding", `The embedder of the store failed: ${why}`, { cause });
}

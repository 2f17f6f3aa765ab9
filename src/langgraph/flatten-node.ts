import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import type { LangGraphLibrary } from "./user-library.ts";
import type { RunnableFunction } from "./untraced-runnable-maker.ts";

/** A LangChain runnable that runs other runnables one after the other. */
interface Sequence {
  readonly steps: readonly Runnable[];
}

export const isSequence = (part: object): part is Runnable & Sequence =>
  "steps" in part && Array.isArray(part.steps);

/** LangGraph's `RunnableCallable`, which wraps a function. Its class is not exported. */
interface Plain {
  readonly func: RunnableFunction;
  /** Whether a runnable that the function returns is run too. */
  readonly recurse: boolean;
}

/**
 * LangGraph's `ChannelWrite`, which writes to channels. The `mapper` of an entry of `writes` converts the node's result to the value that
 * is written.
 */
interface Writer {
  readonly writes: readonly object[];
  _write(value: unknown, options: RunnableConfig): Promise<unknown>;
}

/**
 * Flattens a node into one runnable. LangGraph makes a sequence of the user's function and of the writers of its result. Each part gets a
 * configuration and a tracing root of its own, and is raced against the abort signal, although only the user's function needs this. If
 * callbacks are set, the unflattened sequence runs, because callbacks must see each part.
 * @param whole the runnable that LangGraph runs for the node
 * @param body the part of `whole` that runs the user's function; undefined if the node has none
 */
export function flattenNode(library: LangGraphLibrary, whole: Runnable, body: unknown): Runnable {
  const parts = isSequence(whole) ? whole.steps : [whole];
  const steps = parts.map((part) => (part === body ? bodyStep(part) : plainStep(library, part)));
  return library.makeRunnable(whole.getName(), async (input, options) => {
    if (isWatched(options)) return whole.invoke(input, options) as Promise<unknown>;
    let value = input;
    // oxlint-disable-next-line no-await-in-loop -- each part takes the result of the part before
    for (const step of steps) value = await step(value, options);
    return value;
  });
}

const isWatched = ({ callbacks }: RunnableConfig): boolean =>
  Array.isArray(callbacks) ? callbacks.length > 0 : callbacks !== undefined;

const bodyStep =
  (body: Runnable): RunnableFunction =>
  (value, options) =>
    unlessAborted(body.invoke(value, options) as Promise<unknown>, options.signal);

/** Runs the functions of LangGraph's own runnables directly, without their wrappers. Other runnables are invoked. */
function plainStep(library: LangGraphLibrary, part: Runnable): RunnableFunction {
  if (!isPlain(part)) return (value, options) => part.invoke(value, options);
  const { func, recurse } = part;
  const run = isWriter(part) ? writing(library, part) : func;
  if (!recurse) return run;
  return async (value, options) => {
    const returned = await run(value, options);
    return library.runnables.Runnable.isRunnable(returned) ? returned.invoke(value, options) : returned;
  };
}

function writing(library: LangGraphLibrary, writer: Writer): RunnableFunction {
  const bare = (entry: object) =>
    "mapper" in entry && isPlain(entry.mapper)
      ? { ...entry, mapper: library.makeRunnable("mapper", plainStep(library, entry.mapper)) }
      : entry;
  const copy = Object.assign(Object.create(Object.getPrototypeOf(writer) as object) as Writer, writer, {
    writes: writer.writes.map(bare),
  });
  // oxlint-disable-next-line no-underscore-dangle -- LangGraph's own name for it
  return (value, options) => copy._write(value, options);
}

const isPlain = (part: unknown): part is Runnable & Plain =>
  typeof part === "object" &&
  part !== null &&
  "func" in part &&
  typeof part.func === "function" &&
  "recurse" in part &&
  "trace" in part &&
  part.trace === false;

const isWriter = (part: object): part is Runnable & Plain & Writer =>
  "writes" in part && Array.isArray(part.writes) && "_write" in part;

/** Rejects when the signal aborts, even if the node function ignores the signal. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const leave = () => reject(reasonOf(signal));
    const stay = () => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    work.then(
      (value) => {
        stay();
        resolve(value);
      },
      (error: unknown) => {
        stay();
        reject(error as Error);
      },
    );
  });
}

function reasonOf({ reason }: AbortSignal): Error {
  if (reason instanceof Error) return reason;
  return new Error(typeof reason === "string" ? reason : "Aborted", { cause: reason });
}

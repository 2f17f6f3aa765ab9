import { graph, list, value } from "../../../src/index.ts";

/** A promise that is resolved once by hand. Waiting before or after that makes no difference. */
export interface Latch {
  readonly passed: Promise<void>;
  pass(): void;
}

export function latch(): Latch {
  let pass: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  return { passed, pass: () => pass() };
}

/** Returns latches by name. Each is created at its first use. */
export function latches(): (name: string) => Latch {
  const made = new Map<string, Latch>();
  return (name) => {
    const known = made.get(name) ?? latch();
    made.set(name, known);
    return known;
  };
}

/** Waits for a latch, or until the run is aborted. */
export async function unlessAborted(passed: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const stop = latch();
  signal.addEventListener("abort", stop.pass, { once: true });
  await Promise.race([passed, stop.passed]);
  signal.throwIfAborted();
}

/**
 * A graph whose runs wait in their second node until the test releases them. Runs are identified by the `name` in their
 * input.
 */
export function gated() {
  const reached = latches();
  const opened = latches();
  const held = graph({
    state: { log: list<string>(), name: value("nobody") },
    nodes: {
      begin: async ({ name }) => ({ log: [`${name} began`] }),
      hold: async ({ name }, ctx) => {
        reached(name).pass();
        await unlessAborted(opened(name).passed, ctx.signal);
        return { log: [`${name} ended`] };
      },
    },
    edges: { start: "begin", begin: "hold" },
  });
  return {
    held,
    /** Resolves when the run waits. */
    waits: (name: string) => reached(name).passed,
    open: (name: string) => opened(name).pass(),
  };
}

/** A promise actor of a machine, whose n-th call waits until the test ends it. */
export function heldCalls<T>() {
  const waiting: {
    readonly input: unknown;
    readonly signal: AbortSignal;
    open(value: T): void;
    fail(error: Error): void;
  }[] = [];
  const came: (() => void)[] = [];
  const work = ({ input, signal }: { readonly input: unknown; readonly signal: AbortSignal }) =>
    new Promise<T>((open, fail) => {
      waiting.push({ input, signal, open, fail });
      for (const tell of came.splice(0)) tell();
    });
  const calls = async (count: number) => {
    // oxlint-disable-next-line no-await-in-loop -- polls until the calls have begun
    while (waiting.length < count) await new Promise<void>((tell) => came.push(tell));
    return waiting;
  };
  return { work, calls, waiting };
}

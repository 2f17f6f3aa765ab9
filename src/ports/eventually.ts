/** A value, or a promise of it. LevelDB answers small reads synchronously; another storage may not. */
export type Eventually<T> = T | Promise<T>;

/**
 * Calls `next` with the value: synchronously if the value is not a promise, so that a synchronous storage costs no turn of the event loop.
 */
export function andThen<T, R>(value: Eventually<T>, next: (value: T) => Eventually<R>): Eventually<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * Like {@link andThen}, for code that every run executes: `next` gets its data as `context`, so that it can be a function of the module. A
 * closure would be allocated at each call.
 */
export function andThenWith<T, C, R>(
  value: Eventually<T>,
  context: C,
  next: (value: T, context: C) => Eventually<R>,
): Eventually<R> {
  return value instanceof Promise ? whenResolved(value, context, next) : next(value, context);
}

async function whenResolved<T, C, R>(
  value: Promise<T>,
  context: C,
  next: (value: T, context: C) => Eventually<R>,
): Promise<R> {
  return next(await value, context);
}

/** All values, in order. Returns a promise only if one of the values is a promise. */
export function allEventually<T>(values: readonly Eventually<T>[]): Eventually<readonly T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);
}

/**
 * Calls `next` for each item in order, and waits for a returned promise before the next call. Synchronous if no call
 * returns a promise. For `context` see {@link andThenWith}.
 */
export function forEachInOrder<T, C>(
  items: readonly T[],
  context: C,
  next: (item: T, context: C, index: number) => Eventually<void>,
): Eventually<void> {
  for (let i = 0; i < items.length; i++) {
    const done = next(items[i] as T, context, i);
    if (done instanceof Promise) return finishInOrder(items, context, next, done, i + 1);
  }
}

async function finishInOrder<T, C>(
  items: readonly T[],
  context: C,
  next: (item: T, context: C, index: number) => Eventually<void>,
  before: Promise<void>,
  from: number,
): Promise<void> {
  await before;
  for (let i = from; i < items.length; i++) await next(items[i] as T, context, i);
}

/**
 * A computation with several reads: a generator that yields the promises that it has to wait for (see
 * {@link awaitValue}). The same code works with storages that answer synchronously and with those that do
 * not. A generator costs a few hundred bytes, so code that every run executes and that seldom waits uses
 * {@link andThen} instead.
 */
export type Steps<T> = Generator<Promise<unknown>, T, unknown>;

/** Waits for a value within {@link Steps}: `yield* awaitValue(promise)` evaluates to its result. Pauses only if the value is a promise. */
export function* awaitValue<T>(value: Eventually<T>): Steps<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs the steps to their end: synchronously if they never have to wait. Throws, or rejects with, the error of a step. */
export function runSteps<T>(steps: Steps<T>): Eventually<T> {
  const step = steps.next();
  return step.done === true ? step.value : finish(steps, step.value);
}

async function finish<T>(steps: Steps<T>, first: Promise<unknown>): Promise<T> {
  for (let waited = first; ;) {
    let value: unknown;
    let failure: { readonly cause: unknown } | undefined;
    try {
      value = await waited;
    } catch (cause) {
      failure = { cause };
    }
    const step = failure === undefined ? steps.next(value) : steps.throw(failure.cause);
    if (step.done === true) return step.value;
    waited = step.value;
  }
}

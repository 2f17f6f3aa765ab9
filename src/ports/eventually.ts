/** A value, or a promise of it. LevelDB answers small reads synchronously; another storage may not. */
export type Eventually<T> = T | Promise<T>;

/** Calls `next` with the value: synchronously when it is available, so that a synchronous storage costs no turn. */
export function andThen<T, R>(value: Eventually<T>, next: (value: T) => Eventually<R>): Eventually<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** All values, in order. A promise only if one of the values is a promise. */
export function allOf<T>(values: readonly Eventually<T>[]): Eventually<readonly T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);
}

/** Calls `next` for each item, in order and never overlapping: synchronously, unless one of the calls returns a promise. */
export function forEachInOrder<T>(
  items: readonly T[],
  next: (item: T, index: number) => Eventually<void>,
): Eventually<void> {
  for (let i = 0; i < items.length; i++) {
    const done = next(items[i] as T, i);
    if (done instanceof Promise) return finishInOrder(items, next, done, i + 1);
  }
}

async function finishInOrder<T>(
  items: readonly T[],
  next: (item: T, index: number) => Eventually<void>,
  before: Promise<void>,
  from: number,
): Promise<void> {
  await before;
  for (let i = from; i < items.length; i++) await next(items[i] as T, i);
}

/**
 * A computation with several reads, written as a generator that yields the promises it has to wait for, see {@link awaitValue}. The same code
 * serves storages that answer synchronously and those that do not. A generator costs some hundred bytes, so code that every run executes
 * and that seldom has to wait uses {@link andThen} instead.
 */
export type Steps<T> = Generator<Promise<unknown>, T, unknown>;

/** Waits for a value within {@link Steps}: `yield* wait(value)` evaluates to it. Pauses only if it is a promise. */
export function* awaitValue<T>(value: Eventually<T>): Steps<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs the steps to their end: synchronously, unless they have to wait. Throws or rejects with their error. */
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

/** A value, or a promise of it. LevelDB answers small reads synchronously; another storage may not. */
export type Eventually<T> = T | Promise<T>;

/** Calls `next` with the value: synchronously when it is available, so that a synchronous storage costs no turn. */
export function andThen<T, R>(value: Eventually<T>, next: (value: T) => Eventually<R>): Eventually<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

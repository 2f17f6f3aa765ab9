/** A value now, or later: LevelDB answers small reads in the same turn, another storage will not. */
export type Eventually<T> = T | Promise<T>;

/** Goes on with a value at once when it is there, so that a synchronous storage costs no turn. */
export function andThen<T, R>(value: Eventually<T>, next: (value: T) => Eventually<R>): Eventually<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Keeps the process alive until the returned function is called, even if nothing else does. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => undefined, 2 ** 30);
  return () => clearInterval(timer);
}

/** Keeps the process alive while it waits for `work`: a promise alone does not, and the process would end silently. */
export async function keepAliveDuring<T>(work: Promise<T>): Promise<T> {
  const release = keepProcessAlive();
  try {
    return await work;
  } finally {
    release();
  }
}

/** Keeps the process alive until the returned function is called, even if nothing else does. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => undefined, 2 ** 30);
  return () => clearInterval(timer);
}

/** Keeps the process alive until `work` settles. Pending promises alone do not keep a Node process alive. */
export async function keepAliveDuring<T>(work: Promise<T>): Promise<T> {
  const release = keepProcessAlive();
  try {
    return await work;
  } finally {
    release();
  }
}

/** Keeps the process from ending by itself until the answer is called: nothing else may be left that does. */
export function stayAlive(): () => void {
  const timer = setInterval(() => undefined, 2 ** 30);
  return () => clearInterval(timer);
}

/** Waits for `work`, and keeps the process: a file that waits for nothing in particular would end it in silence. */
export async function awake<T>(work: Promise<T>): Promise<T> {
  const release = stayAlive();
  try {
    return await work;
  } finally {
    release();
  }
}

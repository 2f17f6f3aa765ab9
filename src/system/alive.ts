/** Keeps the process from ending by itself until the answer is called: nothing else may be left that does. */
export function stayAlive(): () => void {
  const timer = setInterval(() => undefined, 2 ** 30);
  return () => clearInterval(timer);
}

import type { Client } from "../support/clients.ts";

/** The parts of a client that contain its calls, by name: those whose class extends the base class for requests. */
export function partsOf(client: Client): readonly string[] {
  return Object.entries(client)
    .filter(([, part]) => isPart(part))
    .map(([name]) => name);
}

/** The calls of one part, as the class of this SDK version declares them. */
export function methodsOf(client: Client, part: string): readonly string[] {
  const prototype: unknown = Object.getPrototypeOf(client[part as keyof Client]);
  return Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor");
}

function isPart(part: unknown): part is object {
  return (
    typeof part === "object" && part !== null && typeof Reflect.get(part, "streamWithRetry") === "function"
  );
}

/**
 * The same client, which records the calls that succeeded, with a response or the first event of a stream. Calls that
 * its methods make themselves are not recorded.
 */
export function recorded(client: Client): { readonly client: Client; readonly called: ReadonlySet<string> } {
  const called = new Set<string>();
  const observed = new Map(
    partsOf(client).map((name) => {
      const part = client[name as keyof Client] as object;
      const note = (method: string) => called.add(`${name}.${method}`);
      return [name, new Proxy(part, { get: (target, key) => observe(target, key, note) })];
    }),
  );
  const proxy = new Proxy(client, {
    get: (target, key) => observed.get(String(key)) ?? Reflect.get(target, key),
  });
  return { client: proxy, called };
}

function observe(part: object, key: string | symbol, note: (method: string) => void): unknown {
  const member: unknown = Reflect.get(part, key);
  if (typeof member !== "function") return member;
  return (...args: readonly unknown[]) => {
    const result: unknown = Reflect.apply(member, part, args);
    const succeeded = () => note(String(key));
    if (result instanceof Promise) return result.then((value: unknown) => (succeeded(), value));
    if (isGenerator(result)) return noting(result, succeeded);
    succeeded();
    return result;
  };
}

const isGenerator = (value: unknown): value is AsyncGenerator =>
  typeof value === "object" &&
  value !== null &&
  Object.prototype.toString.call(value) === "[object AsyncGenerator]";

async function* noting(stream: AsyncGenerator, succeeded: () => void): AsyncGenerator {
  for await (const part of stream) {
    succeeded();
    yield part;
  }
}

/**
 * Lets `new Client()` of the official SDK, without an address, reach a server within this process: the SDK looks for these two symbols, as
 * `@langchain/langgraph-api` sets them.
 */
export function registerInProcessServer(fetch: (request: Request) => Promise<Response>, url: string): void {
  Object.assign(globalThis, {
    [Symbol.for("langgraph_api:fetch")]: (...given: ConstructorParameters<typeof Request>) =>
      fetch(new Request(...given)),
    [Symbol.for("langgraph_api:url")]: url,
  });
}

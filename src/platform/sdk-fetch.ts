/**
 * Lets `new Client()` of the official SDK, without an address, reach a server within this process: the SDK looks for the two global symbols
 * that are set here. `@langchain/langgraph-api` sets the same two.
 */
export function registerInProcessServer(fetch: (request: Request) => Promise<Response>, url: string): void {
  Object.assign(globalThis, {
    [Symbol.for("langgraph_api:fetch")]: (...given: ConstructorParameters<typeof Request>) =>
      fetch(new Request(...given)),
    [Symbol.for("langgraph_api:url")]: url,
  });
}

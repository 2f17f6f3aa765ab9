/**
 * Lets `new Client()` of the official SDK, without an address, call the server in this process. The SDK looks for these two global symbols,
 * which `@langchain/langgraph-api` also sets.
 */
export function registerInProcessServer(fetch: (request: Request) => Promise<Response>, url: string): void {
  Object.assign(globalThis, {
    [Symbol.for("langgraph_api:fetch")]: (...given: ConstructorParameters<typeof Request>) =>
      fetch(new Request(...given)),
    [Symbol.for("langgraph_api:url")]: url,
  });
}

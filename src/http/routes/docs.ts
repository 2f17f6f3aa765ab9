import type { HttpDeps } from "../deps.ts";
import { sendPage } from "../static-page.ts";
import type { Route } from "../router.ts";
import { JSON_HEADERS } from "../../schemas/error-responses.ts";

/** What is served, told to programs and to people. It is the same for everybody: it needs no key. */
export function docsRoutes(deps: HttpDeps, routes: () => readonly Route[]): readonly Route[] {
  const { door, about } = deps;
  const { mount, hasKeys } = door;
  let text: string | undefined;
  return [
    {
      method: "GET",
      path: "/openapi.json",
      keyless: true,
      async handle(call) {
        // At the first question: a start has better things to do.
        const { openApiOf } = await import("../openapi/document.ts");
        // What the configuration has switched off is not there.
        const served = () => routes().filter(({ path }) => door.path(`${mount}${path}`) !== undefined);
        text ??= JSON.stringify(openApiOf(served(), { version: about.version, mount, hasKeys }));
        call.send(200, { ...JSON_HEADERS, "cache-control": "no-cache" }, text);
      },
    },
    { method: "GET", path: "/docs", keyless: true, handle: (call) => sendPage(deps, call, "docs.html") },
    {
      method: "GET",
      path: "/docs/:file",
      keyless: true,
      handle: (call) => sendPage(deps, call, call.param(0)),
    },
  ];
}

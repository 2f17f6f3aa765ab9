import type { HttpDeps } from "../deps.ts";
import { sendPage } from "../static-page.ts";
import type { Route } from "../router.ts";
import { JSON_HEADERS } from "../../schemas/error-responses.ts";

/** The API's documentation. It is the same for everybody, so it needs no key. */
export function docsRoutes(deps: HttpDeps, routes: () => readonly Route[]): readonly Route[] {
  const { access, about } = deps;
  const { mount, hasKeys } = access;
  let text: string | undefined;
  return [
    {
      method: "GET",
      path: "/openapi.json",
      keyless: true,
      async handle(call) {
        // Loaded at the first request, to keep the start fast.
        const { openApiOf } = await import("../openapi/document.ts");
        // Leaves out routes that the configuration has disabled.
        const served = () => routes().filter(({ path }) => access.path(`${mount}${path}`) !== undefined);
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

import type { RouteDeps } from "../deps.ts";
import { sendPage } from "../static-page.ts";
import type { Route } from "../router.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";

/** Routes of the API documentation. They need no credentials, because the documentation is the same for everybody. */
export function docsRoutes(deps: RouteDeps, routes: () => readonly Route[]): readonly Route[] {
  const { access, about } = deps;
  const { mount, needsCredentials } = access;
  let text: string | undefined;
  return [
    {
      method: "GET",
      path: "/openapi.json",
      access: "public",
      async handle(call) {
        // This module is loaded at the first request, to keep the start fast.
        const { openApiOf } = await import("../openapi/document.ts");
        // Leaves out routes that the configuration has disabled.
        const served = () => routes().filter(({ path }) => access.path(`${mount}${path}`) !== undefined);
        text ??= JSON.stringify(openApiOf(served(), { version: about.version, mount, needsCredentials }));
        call.send(200, { ...JSON_HEADERS, "cache-control": "no-cache" }, text);
      },
    },
    { method: "GET", path: "/docs", access: "public", handle: (call) => sendPage(deps, call, "docs.html") },
    {
      method: "GET",
      path: "/docs/:file",
      access: "public",
      handle: (call) => sendPage(deps, call, call.param(0)),
    },
  ];
}

import { ServiceError } from "../../model/errors.ts";
import { parseUuid } from "../../model/ids.ts";
import { componentRequestSchema } from "../../schemas/component-request.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";

const MAX_NAME = 256;

/**
 * Routes for the UI components of a graph's messages. The first returns the HTML that loads a component, the second the files of the
 * components.
 */
export function componentRoutes({ components }: RouteDeps): readonly Route[] {
  if (components === undefined) return [];
  const bundleOf = (graph: string) => {
    const bundle = components(graph);
    if (bundle !== undefined) return bundle;
    throw new ServiceError("route.not_found", `UI not found for agent "${graph.slice(0, MAX_NAME)}"`);
  };
  return [
    {
      method: "POST",
      path: "/ui/:agent",
      access: "users",
      async handle(call) {
        const { name } = componentRequestSchema.parse(await call.body());
        // The path names a graph or, in LangGraph's own client, an assistant.
        const asked = call.param(0);
        const graph =
          parseUuid(asked) === undefined
            ? asked
            : (await call.service.assistants.resolve(call.tenant, asked)).graph_id;
        const { global, files } = await bundleOf(graph);
        const at = escaped(`${addressOf(call)}/${encodeURIComponent(graph)}`);
        const parts = [...files.keys()]
          .toSorted()
          .map((file) =>
            file.endsWith(".css")
              ? `<link rel="stylesheet" href="${at}/${file}" />`
              : `<script src="${at}/${file}" onload='${escaped(`${global}.render(${JSON.stringify(name)}, "{{shadowRootId}}")`)}'></script>`,
          );
        call.send(200, { "content-type": "text/html; charset=utf-8" }, parts.join("\n"));
      },
    },
    {
      method: "GET",
      path: "/ui/:agent/:file",
      // Public, because script tags send no credentials.
      access: "public",
      async handle(call) {
        const { files } = await bundleOf(call.param(0));
        const file = files.get(call.param(1));
        if (file === undefined) throw new ServiceError("route.not_found", "File not found");
        call.send(
          200,
          { "content-type": file.type, "cache-control": "no-cache", "x-content-type-options": "nosniff" },
          file.body,
        );
      },
    },
  ];
}

/**
 * The URL of `/ui` as the client sees it, including the path prefix of a proxy. It has no scheme, so that the browser uses the scheme of
 * the page; on localhost the scheme is `http:`.
 */
function addressOf({ request }: RouteCall): string {
  const host = request.header("host") ?? "";
  const scheme = /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(host) ? "http:" : "";
  return `${scheme}//${host}${request.path.replace(/\/ui\/[^/]*\/?$/, "/ui")}`;
}

const ENTITIES: { readonly [sign: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
};

/**
 * Escapes text for an HTML attribute. Double quotes are kept: the attribute is single-quoted, or its value is a URL without double quotes.
 */
const escaped = (text: string): string => text.replaceAll(/[&<>']/g, (sign) => ENTITIES[sign] ?? "");

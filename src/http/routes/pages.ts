import type { AuthUser } from "../../model/auth-user.ts";
import type { RouteDeps } from "../deps.ts";
import { HTML_PAGE_HEADERS, sendPage } from "../static-page.ts";
import type { Route } from "../router.ts";

/**
 * Routes of the web pages. The pages need no credentials: they are the same for everybody, and ask their user for a key. The dashboard's
 * settings (`/dashboard/settings`) do need credentials, because they are the project's own, such as prices.
 */
export function pageRoutes(deps: RouteDeps): readonly Route[] {
  const { mount } = deps.access;
  /** Sent by `/` instead of the dashboard to programs that do not accept HTML, such as curl. */
  const links = {
    ok: true,
    version: deps.about.version,
    docs: `${mount}/docs`,
    openapi: `${mount}/openapi.json`,
    health: `${mount}/ok`,
  };
  const part: Route["handle"] = (call) => sendPage(deps, call, call.param(0));
  return [
    {
      method: "GET",
      path: "/",
      access: "public",
      handle(call) {
        const { path } = call.request;
        if (!wantsPage(call.request.header("accept"))) return call.json(links);
        // The page's links are relative, so the page's path must end with a slash. The `location` of the redirect is relative too, because
        // a proxy may have removed a prefix from the path.
        if (!path.endsWith("/"))
          return call.send(307, { ...HTML_PAGE_HEADERS, location: `${path.replace(/^.*\//, "./")}/` });
        sendPage(deps, call, "dashboard.html");
      },
    },
    { method: "GET", path: "/dashboard/:file", access: "public", handle: part },
    {
      method: "GET",
      path: "/dashboard/settings",
      access: "users",
      handle: (call) =>
        call.json({
          ...deps.dashboard,
          tenant: call.tenant,
          user: call.user === undefined ? null : namesOf(call.user),
        }),
    },
    {
      method: "GET",
      path: "/inspector",
      access: "public",
      handle: (call) => sendPage(deps, call, "inspector.html"),
    },
    { method: "GET", path: "/inspector/:file", access: "public", handle: part },
  ];
}

/**
 * The fields of a user that are sent to the dashboard. A user may have other fields, from the project's authentication code, which may be
 * secret.
 */
const namesOf = ({ identity, display_name }: AuthUser) => ({ identity, display_name });

const wantsPage = (accept = ""): boolean => accept.toLowerCase().includes("text/html");

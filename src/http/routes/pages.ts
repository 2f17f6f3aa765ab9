import { ServiceError } from "../../model/errors.ts";
import type { Headers } from "../../ports/transport.ts";
import type { Call } from "../call.ts";
import type { HttpDeps } from "../deps.ts";
import type { Route } from "../router.ts";

/**
 * A page asks nobody but this server for anything, and nobody may frame it. It may open others that can talk to it: that is how
 * it hands over.
 */
const HEADERS: Headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin-allow-popups",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

/** Pages need no key: they are the same for everybody, and ask for one themselves. */
export function pageRoutes({ pages }: HttpDeps): readonly Route[] {
  const send = (call: Call, name: string) => {
    const file = pages(name);
    if (file === undefined) {
      throw new ServiceError("route.not_found", `There is no ${name} here; pages are made by npm run build`);
    }
    call.send(200, { ...HEADERS, "content-type": file.type }, file.body);
  };
  const part: Route["handle"] = (call) => send(call, call.param(0).slice(0, 100));
  return [
    {
      method: "GET",
      path: "/",
      keyless: true,
      handle(call) {
        const { path } = call.request;
        // People come with a browser, which says what it reads; programs are told what they always were.
        if (!wantsPage(call.request.header("accept"))) throw new ServiceError("route.not_found", "Not Found");
        // What the page asks for is named from where it is: below the prefix, if there is one.
        if (!path.endsWith("/"))
          return call.send(307, { ...HEADERS, location: `${path.replace(/^.*\//, "./")}/` });
        send(call, "dashboard.html");
      },
    },
    { method: "GET", path: "/dashboard/:file", keyless: true, handle: part },
    { method: "GET", path: "/inspector", keyless: true, handle: (call) => send(call, "inspector.html") },
    { method: "GET", path: "/inspector/:file", keyless: true, handle: part },
  ];
}

const wantsPage = (accept = ""): boolean => accept.toLowerCase().includes("text/html");

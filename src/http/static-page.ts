import { ServiceError } from "../model/errors.ts";
import type { Headers } from "../ports/transport.ts";
import type { RouteCall } from "./route-call.ts";
import type { RouteDeps } from "./deps.ts";

/**
 * Security headers of pages: a page may load only from this server (images also from `data:` URLs), other pages may not
 * embed it, and it may open windows that can send messages to it, which the link to Stately's viewer needs.
 */
export const HTML_PAGE_HEADERS: Headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin-allow-popups",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

export function sendPage({ pages }: Pick<RouteDeps, "pages">, call: RouteCall, name: string): void {
  const file = pages(name.slice(0, 100));
  if (file === undefined) {
    throw new ServiceError(
      "route.not_found",
      `There is no ${name.slice(0, 100)} here; pages are made by npm run build`,
    );
  }
  call.send(200, { ...HTML_PAGE_HEADERS, "content-type": file.type }, file.body);
}

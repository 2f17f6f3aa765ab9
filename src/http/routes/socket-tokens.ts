import { toIso } from "../../model/time.ts";
import type { HttpDeps } from "../deps.ts";
import { JSON_HEADERS } from "../../schemas/error-responses.ts";
import type { Route } from "../router.ts";

const UNSTORED = { ...JSON_HEADERS, "cache-control": "no-store" };

export function socketTokenRoutes({ access }: HttpDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/auth/token",
      handle(call) {
        const { token, expires } = access.token(call.tenant);
        call.json({ token, expires_at: toIso(expires) }, UNSTORED);
      },
    },
  ];
}

import { toIso } from "../../model/time.ts";
import type { RouteDeps } from "../deps.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import type { Route } from "../router.ts";

const UNSTORED = { ...JSON_HEADERS, "cache-control": "no-store" };

export function socketTokenRoutes({ access }: RouteDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/auth/token",
      access: "users",
      handle(call) {
        const { tenant, user } = call;
        const { token, expires } = access.token(user === undefined ? { tenant } : { tenant, user });
        call.json({ token, expires_at: toIso(expires) }, UNSTORED);
      },
    },
  ];
}

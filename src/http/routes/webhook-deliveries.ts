import type { DeliveryStatus } from "../../model/webhook-delivery.ts";
import type { DeliveryKey } from "../../ports/outbox.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { PAGE_LIMITS, PAGE_OFFSETS } from "../../schemas/request-schemas.ts";

const STATUSES = ["pending", "dead"] as const satisfies DeliveryStatus[];

export function webhookRoutes({ sendList }: RouteDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/webhooks/deliveries",
      async handle(call) {
        const { query, tenant } = call;
        const status = query.choice("status", STATUSES);
        const limit = query.integer("limit", PAGE_LIMITS);
        const offset = query.integer("offset", PAGE_OFFSETS);
        const page = { limit, offset, ...(status !== undefined && { status }) };
        await sendList(call, await call.service.webhooks.list(tenant, page));
      },
    },
    {
      method: "POST",
      path: "/webhooks/deliveries/:delivery_id/retry",
      async handle(call) {
        call.json(await call.service.webhooks.retry(keyOf(call)));
      },
    },
    {
      method: "DELETE",
      path: "/webhooks/deliveries/:delivery_id",
      async handle(call) {
        await call.service.webhooks.remove(keyOf(call));
        call.send(204, {});
      },
    },
  ];
}

const keyOf = (call: RouteCall): DeliveryKey => ({ tenant: call.tenant, id: call.uuid(0, "delivery_id") });

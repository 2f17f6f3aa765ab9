import type { Delivery } from "../../model/webhook-delivery.ts";
import { ServiceError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { toIso } from "../../model/time.ts";
import type { WebhookPolicy } from "../../model/webhook-policy.ts";
import type { Clock } from "../../ports/clock.ts";
import type { DeliveryKey, DeliveryQuery, Outbox } from "../../ports/outbox.ts";
import { checkWebhook } from "./webhook-url-check.ts";

export interface Webhooks {
  /**
   * Checks the webhook of a request. Returns the request, without the webhook if webhooks are disabled.
   * @throws ServiceError `validation.failed` when the webhook is not allowed
   */
  accept<Request extends { readonly webhook?: string }>(request: Request): Request;
  /** Pending deliveries first, then dead letters; in each group, the deliveries of newer runs come first. */
  list(tenant: string, query: DeliveryQuery): Promise<readonly JsonObject[]>;
  /**
   * Makes the delivery due now, even if it is a dead letter, and sets its number of attempts back to 0.
   * @throws ServiceError `delivery.not_found`
   */
  retry(key: DeliveryKey): Promise<JsonObject>;
  /**
   * Deletes the delivery, so that it is not attempted any more.
   * @throws ServiceError `delivery.not_found`
   */
  remove(key: DeliveryKey): Promise<void>;
}

interface Deps {
  readonly outbox: Outbox;
  readonly policy: WebhookPolicy;
  readonly clock: Clock;
}

export function createWebhooks({ outbox, policy, clock }: Deps): Webhooks {
  return {
    accept(request) {
      if (request.webhook === undefined) return request;
      checkWebhook(policy, request.webhook);
      if (policy.isDisabled !== true) return request;
      const { webhook: _, ...rest } = request;
      return rest as typeof request;
    },

    list: async (tenant, query) => (await outbox.list(tenant, query)).map(deliveryOf),

    async retry(key) {
      const again = (now: Delivery): Delivery => ({
        ...now,
        status: "pending",
        attempts: 0,
        due: clock.now(),
      });
      const delivery = await outbox.change(key, again, { durable: true });
      if (delivery === undefined) throw notFound();
      return deliveryOf(delivery);
    },

    async remove(key) {
      let found = false;
      const remove = () => {
        found = true;
        return null;
      };
      await outbox.change(key, remove, { durable: true });
      if (!found) throw notFound();
    },
  };
}

const notFound = () => new ServiceError("delivery.not_found", "Delivery not found");

const timeOf = (ms: number | null): string | null => (ms === null ? null : toIso(ms));

/** A delivery as the API shows it. */
function deliveryOf(delivery: Delivery): JsonObject {
  const { id, thread_id, url, status, attempts, due } = delivery;
  return {
    id,
    run_id: id,
    thread_id,
    url,
    status,
    attempts,
    created_at: toIso(delivery.created_at),
    next_attempt_at: status === "pending" ? toIso(due) : null,
    expires_at: status === "dead" ? toIso(due) : null,
    last_attempt_at: timeOf(delivery.last_attempt_at),
    last_status: delivery.last_status,
    last_error: delivery.last_error,
  };
}

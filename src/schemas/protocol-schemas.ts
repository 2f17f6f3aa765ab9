import { invalidField } from "../model/errors.ts";
import { protocolChannels, type EventFilter } from "../model/protocol-event-filter.ts";
import type { RawBody } from "./read-body.ts";
import { PAGE_LIMITS } from "./request-schemas.ts";
import { Type } from "./typebox.ts";
import { compileBodySchema } from "./body-schema.ts";

const namespace = Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 100 });
const answer = { interrupt_id: Type.String(), response: Type.Optional(Type.Unknown()) };

export const inputRespondSchema = compileBodySchema(
  Type.Object({
    interrupt_id: Type.Optional(Type.String()),
    responses: Type.Optional(Type.Array(Type.Object(answer), { minItems: 1, maxItems: 1000 })),
  }),
);

export const protocolStateGetSchema = compileBodySchema(
  Type.Object({
    namespace: Type.Optional(namespace),
    keys: Type.Optional(Type.Array(Type.String(), { maxItems: 1000 })),
  }),
);

export const listCheckpointsParamsSchema = compileBodySchema(
  Type.Object({
    namespace: Type.Optional(namespace),
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    before: Type.Optional(Type.String({ format: "uuid" })),
  }),
);

export const unsubscribeSchema = compileBodySchema(Type.Object({ subscription_id: Type.String() }));

export const subscriptionSchema = compileBodySchema(
  Type.Object({
    channels: Type.Array(Type.String({ maxLength: 200 }), { minItems: 1, maxItems: 100 }),
    namespaces: Type.Optional(Type.Array(namespace, { maxItems: 1000 })),
    depth: Type.Optional(Type.Integer({ minimum: 0 })),
    since: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  }),
);

const KNOWN: ReadonlySet<string> = new Set(protocolChannels);

/**
 * Reads the parameters of a subscription: the filter for its events, and the number of the event after which the
 * subscription starts (`since`; undefined if not given).
 * @throws ServiceError `validation.failed`
 */
export function subscriptionOf(body: RawBody): {
  readonly filter: EventFilter;
  readonly since: number | undefined;
} {
  const { channels: wanted, namespaces = [], depth, since } = subscriptionSchema.parse(body);
  for (const [i, channel] of wanted.entries()) {
    if (KNOWN.has(channel) || channel.startsWith("custom:")) continue;
    throw invalidField(`channels[${i}]`, `must be one of ${protocolChannels.join(", ")}, or custom:<name>`);
  }
  return { filter: { channels: new Set(wanted), namespaces, depth }, since };
}

import { ITEM_LIMITS, MAX_ITEM_TTL_MINUTES } from "../service/store/item-limits.ts";
import { PAGE_LIMITS, PAGE_OFFSETS } from "./request-schemas.ts";
import { Type } from "./typebox.ts";
import { compileBodySchema } from "./body-schema.ts";

const object = Type.Free();
const namespace = Type.Array(Type.String({ maxLength: ITEM_LIMITS.label }), { maxItems: ITEM_LIMITS.labels });
const key = Type.String({ minLength: 1, maxLength: ITEM_LIMITS.key });
const limit = Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most });
const offset = Type.Integer({ minimum: PAGE_OFFSETS.least, maximum: PAGE_OFFSETS.most });
const paths = Type.Array(Type.String({ minLength: 1, maxLength: ITEM_LIMITS.path }), {
  maxItems: ITEM_LIMITS.paths,
});

export const itemPutSchema = compileBodySchema(
  Type.Object({
    namespace,
    key,
    value: object,
    index: Type.Optional(Type.Union([Type.Literal(false), paths])),
    ttl: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: MAX_ITEM_TTL_MINUTES })),
  }),
);

export const itemDeleteSchema = compileBodySchema(Type.Object({ namespace: Type.Optional(namespace), key }));

export const itemSearchSchema = compileBodySchema(
  Type.Object({
    namespace_prefix: Type.Optional(namespace),
    filter: Type.Optional(object),
    query: Type.Optional(Type.String({ maxLength: 100_000 })),
    limit: Type.Optional(limit),
    offset: Type.Optional(offset),
    refresh_ttl: Type.Optional(Type.Boolean()),
  }),
);

export const namespaceListSchema = compileBodySchema(
  Type.Object({
    prefix: Type.Optional(namespace),
    suffix: Type.Optional(namespace),
    max_depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
    limit: Type.Optional(limit),
    offset: Type.Optional(offset),
  }),
);

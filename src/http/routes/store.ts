import { invalidField } from "../../model/errors.ts";
import type { FoundItem, Item, StoreOp, StoreResult } from "../../model/store-item.ts";
import { toIso } from "../../model/time.ts";
import {
  itemDeleteSchema,
  itemPutSchema,
  itemSearchSchema,
  namespaceListSchema,
} from "../../schemas/store-schemas.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import { mapIterable } from "../search-results.ts";
import type { Route } from "../router.ts";

export function storeRoutes({ sendList, sendStored }: RouteDeps): readonly Route[] {
  async function ask<O extends StoreOp>({ tenant, service }: RouteCall, op: O): Promise<StoreResult<O>> {
    const [result] = await service.store.batch({ tenant }, [op] as const);
    return result as StoreResult<O>;
  }

  return [
    {
      method: "PUT",
      path: "/store/items",
      access: "users",
      async handle(call) {
        const body = await call.body();
        // `ttl: null` means that the item does not expire; an absent `ttl` means the server's default. `call.body()` has replaced the value
        // null by undefined.
        const forEver = Object.hasOwn(body, "ttl") && body["ttl"] === undefined;
        const { namespace, key, value, index, ttl } = itemPutSchema.parse(body);
        await ask(call, { kind: "put", namespace, key, value, index, ttl: forEver ? null : ttl });
        call.send(204, {});
      },
    },
    {
      method: "GET",
      path: "/store/items",
      access: "users",
      async handle(call) {
        const { query } = call;
        const key = query.text("key");
        if (key === undefined || key === "") throw invalidField("key", "is required");
        const namespace = query.labels("namespace");
        const refresh_ttl = query.flag("refresh_ttl");
        await sendStored(call, async () => {
          const found = await ask(call, { kind: "get", namespace, key, refresh_ttl });
          return found && itemOf(found);
        });
      },
    },
    {
      method: "DELETE",
      path: "/store/items",
      access: "users",
      async handle(call) {
        const { namespace = [], key } = itemDeleteSchema.parse(await call.body());
        await ask(call, { kind: "delete", namespace, key });
        call.send(204, {});
      },
    },
    {
      method: "POST",
      path: "/store/items/search",
      access: "users",
      async handle(call) {
        const { namespace_prefix = [], ...rest } = itemSearchSchema.parse(await call.body());
        const { filter, query, limit, offset, refresh_ttl } = rest;
        const page = { limit, offset, refresh_ttl };
        const found = await ask(call, { kind: "search", namespace_prefix, filter, query, ...page });
        await sendList(call, mapIterable(found, foundOf), { open: '{"items":[', close: "]}" });
      },
    },
    {
      method: "POST",
      path: "/store/namespaces",
      access: "users",
      async handle(call) {
        const { prefix, suffix, max_depth, limit, offset } = namespaceListSchema.parse(await call.body());
        const op = { kind: "namespaces", prefix, suffix, max_depth, limit, offset } as const;
        await sendList(call, await ask(call, op), { open: '{"namespaces":[', close: "]}" });
      },
    },
  ];
}

function itemOf({ created_at, updated_at, expires_at, ...item }: Item): object {
  return {
    ...item,
    created_at: toIso(created_at),
    updated_at: toIso(updated_at),
    ...(expires_at !== undefined && { expires_at: toIso(expires_at) }),
  };
}

const foundOf = ({ score, ...item }: FoundItem): object => ({ ...itemOf(item), score });

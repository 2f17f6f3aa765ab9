import { isObject } from "../model/json.ts";
import type { StoreOp } from "../model/store-item.ts";
import type { AuthValue } from "../ports/authorizer.ts";
import type { Store } from "../ports/store.ts";
import { checkedMembers, isCount, isText, isTexts } from "./mutated-auth-value-checks.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

/** Restricts the store to what one user may do. The rules decide about each operation, and handlers may change its namespace. */
export function authorizedStore(store: Store, rules: UserAuthorizer): Store {
  /** Returns the operation as the handlers have changed it, and the permission that limits which items it reaches. */
  async function decided(op: StoreOp) {
    switch (op.kind) {
      case "put": {
        const { namespace, key, value: item } = op;
        const value: AuthValue = { namespace: [...namespace], key, value: item };
        const permission = await rules.decide("store:put", value);
        return {
          op: { ...op, ...placeIn(value), ...checkedMembers(value, { value: isObject }) },
          permission,
        };
      }
      case "get":
      case "delete": {
        const value: AuthValue = { namespace: [...op.namespace], key: op.key };
        const permission = await rules.decide(`store:${op.kind}`, value);
        return { op: { ...op, ...placeIn(value) }, permission };
      }
      case "search": {
        const { namespace_prefix, filter, query, limit = 10, offset = 0, ...rest } = op;
        const value: AuthValue = { namespace: [...namespace_prefix], filter, limit, offset, query };
        const permission = await rules.decide("store:search", value);
        const checks = { filter: isObject, limit: isCount, offset: isCount, query: isText };
        const { namespace } = namespaceIn(value);
        return { op: { ...rest, ...checkedMembers(value, checks), namespace_prefix: namespace }, permission };
      }
      case "namespaces": {
        const { prefix = [], suffix, max_depth, limit = 100, offset = 0 } = op;
        const value: AuthValue = { namespace: [...prefix], suffix, max_depth, limit, offset };
        const permission = await rules.decide("store:list_namespaces", value);
        const checks = { suffix: isTexts, max_depth: isCount, limit: isCount, offset: isCount };
        const { namespace } = namespaceIn(value);
        return { op: { kind: op.kind, ...checkedMembers(value, checks), prefix: namespace }, permission };
      }
    }
  }

  async function batch({ tenant }: Parameters<Store["batch"]>[0], ops: readonly StoreOp[]) {
    const [only, ...more] = ops;
    if (only === undefined || more.length > 0) throw new TypeError("a user's batch has one operation");
    const { op, permission } = await decided(only);
    return store.batch(permission === undefined ? { tenant } : { tenant, permission }, [op]);
  }

  return { batch: batch as Store["batch"] };
}

/** The namespace as the handler has left it; empty if the handler has removed it. */
const namespaceIn = (value: AuthValue): { readonly namespace: readonly string[] } => ({
  namespace: [],
  ...checkedMembers(value, { namespace: isTexts }),
});

const placeIn = (value: AuthValue) => ({ ...namespaceIn(value), ...checkedMembers(value, { key: isText }) });

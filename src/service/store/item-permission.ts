import { ServiceError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { memberOf, type Permission } from "../../model/permitted-resources.ts";
import type { ItemKey, Namespace } from "../../model/store-item.ts";

/**
 * The largest number of items and namespaces that one operation may skip because the caller may not reach them. Skipping an item costs as
 * much as finding one.
 */
const MAX_SKIPPED = 10_000;

/** An item. If the item does not exist, only its namespace and key are given. */
interface PlacedValue extends ItemKey {
  readonly value?: JsonObject;
}

/** Whether the caller may reach an item. If the item does not exist, its namespace and key decide. */
export function allowsItem(permission: Permission, { namespace, key, value }: PlacedValue): boolean {
  return permission.allows((name) => {
    if (name === "namespace") return namespace;
    if (name === "key") return key;
    return value && memberOf(value, name);
  });
}

/** Whether the caller may see a namespace, judged by its labels alone. */
function allowsNamespace(permission: Permission, namespace: Namespace): boolean {
  return permission.allows((name) => (name === "namespace" ? namespace : undefined));
}

/** Filters the results of one operation to what the caller may reach. */
export class ItemPermissionFilter {
  readonly #permission: Permission;
  #passed = 0;

  constructor(permission: Permission) {
    this.#permission = permission;
  }

  /** Whether the caller may reach the item. @throws ServiceError `store.scan_limit` when too many were skipped */
  letsItem(item: PlacedValue): boolean {
    return this.#counted(allowsItem(this.#permission, item));
  }

  /** Whether the caller may see the namespace. @throws ServiceError `store.scan_limit` when too many were skipped */
  letsNamespace(namespace: Namespace): boolean {
    return this.#counted(allowsNamespace(this.#permission, namespace));
  }

  #counted(isAllowed: boolean): boolean {
    if (!isAllowed && ++this.#passed > MAX_SKIPPED) {
      const message =
        "The store would have to be searched too far for what you may see: name a longer namespace";
      throw new ServiceError("store.scan_limit", message);
    }
    return isAllowed;
  }
}

import type { Namespace, NamespacesOp } from "../../model/store-item.ts";
import type { StoreItems } from "../../ports/store-items.ts";
import type { ItemPermissionFilter } from "./item-permission.ts";

const ANY = "*";

/** A page of the namespaces that match, cut to the requested depth. `gate` filters out those that the caller may not see. */
export async function listNamespaces(
  items: StoreItems,
  tenant: string,
  { prefix = [], suffix = [], max_depth = Infinity, limit = 100, offset = 0 }: NamespacesOp,
  now: number,
  gate: ItemPermissionFilter | undefined,
): Promise<readonly Namespace[]> {
  const first = prefix.indexOf(ANY);
  const lead = first < 0 ? prefix : prefix.slice(0, first);
  // Wildcards and suffixes are compared with complete namespaces. If there are any, namespaces are cut to `max_depth` after the comparison.
  const whole = first >= 0 || suffix.length > 0;
  const depth = whole ? Infinity : max_depth;
  const page: Namespace[] = [];
  let skip = offset;
  let last = "";
  for await (const found of items.namespaces(tenant, { prefix: lead, depth, now })) {
    if (whole && !matches(found, prefix, suffix)) continue;
    const namespace = found.slice(0, max_depth);
    const name = JSON.stringify(namespace);
    // Namespaces are sorted, so those that are equal after the cut are neighbours.
    if (name === last) continue;
    last = name;
    if (gate?.letsNamespace(namespace) === false) continue;
    if (skip-- > 0) continue;
    page.push(namespace);
    if (page.length >= limit) break;
  }
  return page;
}

function matches(namespace: Namespace, prefix: Namespace, suffix: Namespace): boolean {
  if (namespace.length < Math.max(prefix.length, suffix.length)) return false;
  const from = namespace.length - suffix.length;
  return (
    prefix.every((label, i) => label === ANY || label === namespace[i]) &&
    suffix.every((label, i) => label === ANY || label === namespace[from + i])
  );
}

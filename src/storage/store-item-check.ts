import { envelopeFlaw } from "./envelope.ts";
import { itemExpiryKey, itemRowKey, parseItemExpiry, parseItem } from "./keys.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { itemLabel, readItemHead } from "./store-items.ts";

/** Checks an item's key. Yields what is missing beside it; nothing for other keys. The value itself has been checked before. */
export async function* checkItem(kv: KeyValueStore, at: string, bytes: Buffer): AsyncGenerator<string> {
  if (at.startsWith("!expire/")) {
    const { tenant, due, ...place } = parseItemExpiry(at);
    const head = await kv.get(itemRowKey(tenant, "s", place));
    // A damaged record is reported under its own key.
    if (head !== undefined && envelopeFlaw(head) !== undefined) return;
    const expires = head && readItemHead(head, tenant, place).expires_at;
    if (typeof expires !== "number" || Math.ceil(expires) !== due)
      yield `${itemLabel(place)} is to expire, and is not there or lives on`;
    return;
  }
  const item = parseItem(at);
  if (item === undefined) return;
  const { tenant, kind, ...place } = item;
  if (kind !== "s") {
    if ((await kv.get(itemRowKey(tenant, "s", place))) === undefined)
      yield `${itemLabel(place)} has ${kind === "sv" ? "a value" : "vectors"} and no record`;
    return;
  }
  const { expires_at } = readItemHead(bytes, tenant, place);
  if ((await kv.get(itemRowKey(tenant, "sv", place))) === undefined) yield `${itemLabel(place)} has no value`;
  if (expires_at !== null && (await kv.get(itemExpiryKey(expires_at, tenant, place))) === undefined)
    yield `${itemLabel(place)} expires, and nothing will delete it`;
}

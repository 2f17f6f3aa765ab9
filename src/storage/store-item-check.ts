import { flaw } from "./envelope.ts";
import { expireKey, itemKey, parseExpire, parseItem } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { nameOf, readHead } from "./store-items.ts";

/** What is missing beside a key of an item; nothing for a key of something else. Its own bytes have been looked at. */
export function* checkItem(kv: Kv, at: string, bytes: Buffer): Generator<string> {
  if (at.startsWith("!expire/")) {
    const { tenant, due, ...place } = parseExpire(at);
    const head = kv.getSync(itemKey(tenant, "s", place));
    // A damaged one is told of where it lies.
    if (head !== undefined && flaw(head) !== undefined) return;
    const expires = head && readHead(head, tenant, place).expires_at;
    if (typeof expires !== "number" || Math.ceil(expires) !== due)
      yield `${nameOf(place)} is to expire, and is not there or lives on`;
    return;
  }
  const item = parseItem(at);
  if (item === undefined) return;
  const { tenant, room, ...place } = item;
  if (room !== "s") {
    if (kv.getSync(itemKey(tenant, "s", place)) === undefined)
      yield `${nameOf(place)} has ${room === "sv" ? "a value" : "vectors"} and no record`;
    return;
  }
  const { expires_at } = readHead(bytes, tenant, place);
  if (kv.getSync(itemKey(tenant, "sv", place)) === undefined) yield `${nameOf(place)} has no value`;
  if (expires_at !== null && kv.getSync(expireKey(expires_at, tenant, place)) === undefined)
    yield `${nameOf(place)} expires, and nothing will delete it`;
}

import { hex32 } from "../model/ids.ts";
import { LONGEST_INDEXED } from "../model/thread-search.ts";

/** A member of the metadata in a key: short, and no two are likely to be the same. Undefined for a value that has none: nobody searches for a text that is so long. */
export function memberOf(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "object" && value !== null)) return undefined;
  if (name.length + (typeof value === "string" ? value.length : 0) > LONGEST_INDEXED) return undefined;
  return hex32(JSON.stringify([name, value])).slice(0, 16);
}

/** Members that are remembered. Their texts come from outside, so only short ones are. */
const MOST_KNOWN = 256;
const LONGEST_KNOWN = 128;

/** Members that were asked for lately: nearly every thread has those of its graph and its assistant. */
export class Members {
  readonly #known = new Map<string, Map<string, string | undefined>>();
  #count = 0;

  of(name: string, value: unknown): string | undefined {
    if (typeof value !== "string" || value.length > LONGEST_KNOWN || name.length > LONGEST_KNOWN) {
      return memberOf(name, value);
    }
    let values = this.#known.get(name);
    if (values?.has(value)) return values.get(value);
    if (this.#count >= MOST_KNOWN) {
      this.#known.clear();
      this.#count = 0;
      values = undefined;
    }
    if (values === undefined) this.#known.set(name, (values = new Map()));
    const member = memberOf(name, value);
    values.set(value, member);
    this.#count++;
    return member;
  }
}

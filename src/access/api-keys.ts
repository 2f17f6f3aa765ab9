import { hash, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";

interface Key {
  readonly digest: Buffer;
  readonly tenant: string;
}

const TENANT = /^[a-z0-9_-]{1,64}$/;
/** What can stand in a header. A comma cannot be part of a key: it ends it. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** Who may come in, by key. Only digests are kept. */
export class Keys {
  readonly #keys: readonly Key[];

  /**
   * `entries`: a key of the default tenant, or `tenant:key` for another one.
   * @throws ServiceError `config.invalid`; it never repeats a key
   */
  constructor(entries: readonly string[]) {
    this.#keys = entries.map((entry, i) => keyOf(entry.trim(), i + 1));
    const seen = new Set(this.#keys.map(({ digest }) => digest.toString("hex")));
    if (seen.size < this.#keys.length) throw refusal("two of the keys are the same");
  }

  get none(): boolean {
    return this.#keys.length === 0;
  }

  /** Are there keys of more than one tenant? */
  get hasTenants(): boolean {
    return new Set(this.#keys.map(({ tenant }) => tenant)).size > 1;
  }

  /** Whose key this is. All are compared, each in constant time: how long it takes tells nothing. */
  tenantOf(given: string): string | undefined {
    const digest = digestOf(given);
    let tenant: string | undefined;
    for (const key of this.#keys) {
      if (timingSafeEqual(key.digest, digest)) tenant = key.tenant;
    }
    return tenant;
  }
}

/** The entries of a list with commas. @throws ServiceError `config.invalid` where there is none among them */
export function keyList(text: string): readonly string[] {
  const entries = text.split(",").map((entry) => entry.trim());
  const found = entries.filter((entry) => entry !== "");
  // Taken for "no key", it would leave a server open that its owner believes to be closed.
  if (found.length === 0) throw refusal("the list of keys holds none");
  return found;
}

function keyOf(entry: string, place: number): Key {
  const colon = entry.indexOf(":");
  const named = colon > 0 && TENANT.test(entry.slice(0, colon));
  const key = named ? entry.slice(colon + 1) : entry;
  if (!SENDABLE.test(key)) throw refusal(`key ${place} is empty, or has characters that no header can carry`);
  return { digest: digestOf(key), tenant: named ? entry.slice(0, colon) : DEFAULT_TENANT };
}

const digestOf = (text: string): Buffer => hash("sha256", text, "buffer");

const refusal = (what: string): ServiceError =>
  new ServiceError("config.invalid", `The API keys (HEDDLE_API_KEYS) cannot be used: ${what}`);

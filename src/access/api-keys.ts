import { hash, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";

interface Key {
  readonly digest: Buffer;
  readonly tenant: string;
}

const TENANT = /^[a-z0-9_-]{1,64}$/;
/** Matches keys that a header can carry. A key in a comma-separated list ({@link parseKeyList}) cannot contain a comma either. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** The API keys. Only digests of the keys are stored. */
export class ApiKeys {
  readonly #keys: readonly Key[];

  /**
   * @param entries each is a key of the default tenant, or `tenant:key`
   * @throws ServiceError `config.invalid`; the message never contains a key
   */
  constructor(entries: readonly string[]) {
    this.#keys = entries.map((entry, i) => keyOf(entry.trim(), i + 1));
    const seen = new Set(this.#keys.map(({ digest }) => digest.toString("hex")));
    if (seen.size < this.#keys.length) throw refusal("two of the keys are the same");
  }

  get isEmpty(): boolean {
    return this.#keys.length === 0;
  }

  /** Whether the keys belong to more than one tenant. */
  get hasTenants(): boolean {
    return new Set(this.#keys.map(({ tenant }) => tenant)).size > 1;
  }

  /**
   * The tenant of a key; undefined if the key is unknown. The given key is compared with every stored key, each time in constant time, so
   * that the duration reveals nothing.
   */
  tenantOf(given: string): string | undefined {
    const digest = digestOf(given);
    let tenant: string | undefined;
    for (const key of this.#keys) {
      if (timingSafeEqual(key.digest, digest)) tenant = key.tenant;
    }
    return tenant;
  }
}

/** Splits a list of keys separated by commas. @throws ServiceError `config.invalid` if the list contains no key */
export function parseKeyList(text: string): readonly string[] {
  const entries = text.split(",").map((entry) => entry.trim());
  const found = entries.filter((entry) => entry !== "");
  // If an empty list meant "no keys", a server would be open that its owner believes to be protected.
  if (found.length === 0) throw refusal("the list of keys holds none");
  return found;
}

function keyOf(entry: string, position: number): Key {
  const colon = entry.indexOf(":");
  const named = colon > 0 && TENANT.test(entry.slice(0, colon));
  const key = named ? entry.slice(colon + 1) : entry;
  if (!SENDABLE.test(key))
    throw refusal(`key ${position} is empty, or has characters that no header can carry`);
  return { digest: digestOf(key), tenant: named ? entry.slice(0, colon) : DEFAULT_TENANT };
}

const digestOf = (text: string): Buffer => hash("sha256", text, "buffer");

const refusal = (what: string): ServiceError =>
  new ServiceError("config.invalid", `The API keys (HEDDLE_API_KEYS) cannot be used: ${what}`);

import { sha256Hex } from "../model/ids.ts";
import { isObject, toStorable } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { CacheRule, NodeRule } from "../graph/node.ts";

/** The most cached results of one node. */
const MAX_RESULTS = 1_000;
/** The most characters of JSON text of all cached results of one node. */
const MAX_LENGTH = 16 * 1024 * 1024;

interface Entry {
  readonly text: string;
  readonly until: number;
}

/**
 * An in-memory cache of node results, for tasks with the same cache key. The results of a graph definition
 * that was replaced are dropped.
 */
export class NodeResultCache {
  readonly #nodes = new WeakMap<NodeRule, Results>();

  /** The cache key of a call; null if its input (or the result of `key`) cannot be converted to JSON. */
  keyOf(rule: CacheRule, { tenant, input, context }: NodeCall): string | null {
    const given = rule.key === undefined ? [input, context] : [rule.key(input as never, context as never)];
    try {
      return sha256Hex(JSON.stringify([tenant, ...given.map((part) => sorted(toStorable(part, "key")))]));
    } catch {
      return null;
    }
  }

  /** Returns a copy of the cached result; undefined if there is none, or if it has expired. */
  get(node: NodeRule, key: string, now: number): { readonly value: unknown } | undefined {
    const text = this.#nodes.get(node)?.get(key, now);
    return text === undefined ? undefined : { value: JSON.parse(text) as unknown };
  }

  put(node: NodeRule, rule: CacheRule, key: string, value: unknown, now: number): void {
    let text: string;
    try {
      text = JSON.stringify(toStorable(value, "result"));
    } catch {
      return;
    }
    let results = this.#nodes.get(node);
    if (results === undefined) this.#nodes.set(node, (results = new Results()));
    results.put(key, { text, until: rule.ttl === null ? Infinity : now + rule.ttl });
  }
}

class Results {
  readonly #entries = new Map<string, Entry>();
  #length = 0;

  get(key: string, now: number): string | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (now < entry.until) return entry.text;
    this.#drop(key, entry);
    return undefined;
  }

  put(key: string, entry: Entry): void {
    const before = this.#entries.get(key);
    if (before !== undefined) this.#drop(key, before);
    this.#entries.set(key, entry);
    this.#length += entry.text.length;
    // The oldest entries are dropped first.
    for (const [old, kept] of this.#entries) {
      if (this.#entries.size <= MAX_RESULTS && this.#length <= MAX_LENGTH) break;
      this.#drop(old, kept);
    }
  }

  #drop(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#length -= entry.text.length;
  }
}

/** A copy with sorted keys, so that the same data always gives the same JSON text. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  // The copy has no prototype, so that a key such as `__proto__` is an ordinary property.
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value).sort()) copy[key] = sorted(value[key]);
  return copy;
}

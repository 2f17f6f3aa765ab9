import { digest } from "../model/ids.ts";
import { isObject, toStorable } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { CacheRule, NodeRule } from "../graph/node.ts";

/** Results kept of one node, and how long their JSON texts may be together. */
const MOST = 1_000;
const LENGTH = 16 * 1024 * 1024;

interface Entry {
  readonly text: string;
  readonly until: number;
}

/** What nodes returned, kept in memory for tasks with the same input. A definition that is replaced takes its entries along. */
export class ResultCache {
  readonly #nodes = new WeakMap<NodeRule, Results>();

  /** By what a call's result is found; null when its input is nothing that could be compared. */
  keyOf(rule: CacheRule, { tenant, input, context }: NodeCall): string | null {
    const given = rule.key === undefined ? [input, context] : [rule.key(input as never, context as never)];
    try {
      return digest(JSON.stringify([tenant, ...given.map((part) => sorted(toStorable(part, "key")))]));
    } catch {
      return null;
    }
  }

  /** What was returned, a copy of its own. */
  find(node: NodeRule, key: string, now: number): { readonly value: unknown } | undefined {
    const text = this.#nodes.get(node)?.find(key, now);
    return text === undefined ? undefined : { value: JSON.parse(text) as unknown };
  }

  keep(node: NodeRule, rule: CacheRule, key: string, value: unknown, now: number): void {
    let text: string;
    try {
      text = JSON.stringify(toStorable(value, "result"));
    } catch {
      return;
    }
    let results = this.#nodes.get(node);
    if (results === undefined) this.#nodes.set(node, (results = new Results()));
    results.keep(key, { text, until: rule.ttl === null ? Infinity : now + rule.ttl });
  }
}

class Results {
  readonly #entries = new Map<string, Entry>();
  #length = 0;

  find(key: string, now: number): string | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (now < entry.until) return entry.text;
    this.#drop(key, entry);
    return undefined;
  }

  keep(key: string, entry: Entry): void {
    const before = this.#entries.get(key);
    if (before !== undefined) this.#drop(key, before);
    this.#entries.set(key, entry);
    this.#length += entry.text.length;
    // The oldest goes first.
    for (const [old, kept] of this.#entries) {
      if (this.#entries.size <= MOST && this.#length <= LENGTH) break;
      this.#drop(old, kept);
    }
  }

  #drop(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#length -= entry.text.length;
  }
}

/** The same text for the same data, in whatever order its keys were written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  // No prototype: a key is never one of its setters.
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value).sort()) copy[key] = sorted(value[key]);
  return copy;
}
